from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines import Spectral
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import classify
from ripplevec.lab.experiments.measurements import base, run_trial

VALIDATION = {"kind": "validation", "dataset": "planted", "seed": 3, "start": 0.5, "method": "spectral", "dim": 8}
ORDER = np.random.default_rng(3).permutation(240)


def scores() -> dict[str, float]:
    """All figures but the time."""
    return {name: value for name, value in run_trial(VALIDATION).metrics.items() if name != "retrain_seconds"}


def test_the_last_fifth_of_the_training_set_is_judged_by_the_rest(graph: Dataset) -> None:
    expected = classify(Spectral(dim=8).embed(graph.adjacency()), graph.labels, ORDER[:96], ORDER[96:120])
    assert scores() == pytest.approx(
        {"validation_micro": 100 * expected.micro, "validation_macro": 100 * expected.macro}
    )


@pytest.mark.parametrize(("part", "seen"), [(slice(120, None), False), (slice(96, 120), True), (slice(96), True)])
def test_no_label_of_the_test_set_is_seen(
    graph: Dataset, monkeypatch: pytest.MonkeyPatch, part: slice, seen: bool
) -> None:
    before, labels = scores(), graph.labels.copy()
    labels[ORDER[part]] = np.random.default_rng(0).permutation(labels[ORDER[part]])
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: replace(graph, labels=labels))
    assert (scores() != before) == seen


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"method": "ripplevec"}, "method: expected one that is retrained, got 'ripplevec'"),
        ({"method": "shallowwalk"}, "method: expected one of"),
        ({"start": 2.0}, "start: expected a share"),
        ({"shares": [0.5]}, "parameters: expected those of the kind of cell.*'shares'"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(VALIDATION | change)
