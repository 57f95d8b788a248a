from __future__ import annotations

from typing import Any

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.experiments.measurements import check_trial, run_trial

FAKE = {"kind": "fake", "dataset": "cora", "seed": 3, "start": 0.5}


def test_run_trial_uses_measurement_of_kind(calls: list[dict[str, Any]]) -> None:
    assert run_trial(FAKE).metrics == {"score": 4.0}
    assert calls == [FAKE]


def test_check_trial_accepts_published_and_generated_data_sets(calls: list[dict[str, Any]]) -> None:
    for dataset in ("flickr", "nested_communities"):
        check_trial(FAKE | {"dataset": dataset})
    assert not calls


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kind": "faked"}, "kind: expected one of .*'stream'.*got 'faked'"),
        ({"kind": None}, "kind: expected one of .*got None"),
        ({"dataset": "moon"}, "dataset: expected one of .*'cora'.*'nested_communities'.*got 'moon'"),
        ({"start": 7}, "start: expected a share"),
        ({"wrong": 1}, "parameters: expected those of the kind of measurement, got .*'wrong'"),
    ],
)
def test_check_trial_with_invalid_configuration_raises(
    calls: list[dict[str, Any]], change: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(FAKE | change)


def test_check_trial_with_missing_parameter_names_it(calls: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidValueError, match=r"parameters: expected those of the kind of measurement, got .*start"):
        check_trial({name: value for name, value in FAKE.items() if name != "start"})
