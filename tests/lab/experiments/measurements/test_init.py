from __future__ import annotations

from typing import Any

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.experiments.measurements import check_trial, run_trial

FAKE = {"kind": "fake", "dataset": "cora", "seed": 3, "start": 0.5}


def test_a_cell_is_measured_by_its_kind(calls: list[dict[str, Any]]) -> None:
    assert run_trial(FAKE).metrics == {"score": 4.0}
    assert calls == [FAKE]


def test_generated_data_sets_are_known_like_published_ones(calls: list[dict[str, Any]]) -> None:
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
def test_what_could_not_be_run_is_refused(calls: list[dict[str, Any]], change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(FAKE | change)


def test_a_parameter_that_is_missing_is_named(calls: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidValueError, match=r"parameters: expected those of the kind of measurement, got .*start"):
        check_trial({name: value for name, value in FAKE.items() if name != "start"})
