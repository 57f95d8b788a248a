from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplet.baselines import DeepWalk
from ripplet.datasets import Dataset
from ripplet.errors import InvalidValueError
from ripplet.evaluation import classify, cluster
from ripplet.experiments.cells import check, measure

RETRAINED = {
    "kind": "retrained", "baseline": "deepwalk", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8, "walks": 5
}  # fmt: skip


def test_a_baseline_sees_the_final_graph(graph: Dataset) -> None:
    measured = measure(RETRAINED)
    vectors = DeepWalk(dim=8, walks=5, seed=3).embed(graph.adjacency())
    order = np.random.default_rng(3).permutation(240)
    scores = classify(vectors, graph.labels, order[:120], order[120:])
    assert measured.figures["current_micro"] == pytest.approx(100 * scores.micro)
    assert measured.figures["current_macro"] == pytest.approx(100 * scores.macro)
    assert measured.figures["nmi"] == pytest.approx(100 * cluster(vectors, graph.labels).nmi)
    assert (measured.parameters["walks"], measured.parameters["window"]) == (5, DeepWalk().window)


def test_another_share_for_training_needs_no_other_embedding(embedded: list[int]) -> None:
    measure(RETRAINED)
    measure(RETRAINED | {"start": 0.3})
    assert embedded.count(240) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"baseline": "shallowwalk"}, "baseline: expected one of"),
        ({"wlaks": 1}, "'wlaks'"),
        ({"start": 1}, "start: expected a share"),
    ],
)
def test_a_baseline_that_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(RETRAINED | change)
