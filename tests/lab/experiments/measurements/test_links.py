from __future__ import annotations

from typing import Any

import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.streaming import NeighborMean, StreamingBaselineAdapter
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import score_link_prediction
from ripplevec.lab.experiments.measurements import run_trial

LINKS = {"kind": "links", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8, "method": "ripplevec"}


@pytest.mark.parametrize("edges", ["together", "spread"])
def test_ours_foretells_what_link_prediction_says(edges: str, graph: Dataset) -> None:
    measured = run_trial(LINKS | {"edges": edges})
    expected = score_link_prediction(Embedder(dim=8, seed=3), graph, 0.5, 3, edges=edges)
    assert measured.metrics["auc"] == pytest.approx(100 * expected.auc)
    assert measured.metrics["mrr"] == pytest.approx(100 * expected.mrr)
    assert measured.metrics["scored_edges"] == expected.edges
    assert (measured.parameters["dim"], measured.parameters["rule"]) == (8, "ripple")


def test_a_streaming_baseline_is_judged_like_ours(graph: Dataset) -> None:
    measured = run_trial(LINKS | {"method": "neighbor_mean"})
    expected = score_link_prediction(StreamingBaselineAdapter(NeighborMean(dim=8, seed=3)), graph, 0.5, 3)
    assert measured.metrics["auc"] == pytest.approx(100 * expected.auc)
    assert measured.parameters["dim"] == 8


def test_there_are_no_times_as_other_work_runs_beside_it() -> None:
    assert run_trial(LINKS).metrics.keys() == {"auc", "mrr", "scored_edges"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"method": "deepwalk"}, "method: expected one that vertices can arrive at, got 'deepwalk'"),
        ({"method": "shallowwalk"}, "method: expected one of"),
        ({"start": 1.0}, "start: expected a share"),
        ({"edges": "never"}, "edges: expected one of"),
        ({"arrival_order": "index"}, "parameters: expected those of the kind of cell.*'arrival_order'"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(LINKS | change)
