from __future__ import annotations

from typing import Any

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.synthetic import preferential_attachment
from ripplevec.lab.experiments.measurements import check_trial, run_trial

TRIAL: dict[str, Any] = {
    "kind": "local_action",
    "dataset": "preferential_attachment",
    "seed": 3,
    "vertices": 120,
    "edges_per_vertex": 4,
    "start": 40,
    "arrivals": 50,
    "dim": 4,
}


def test_local_action_measures_time_and_influenced_vertices() -> None:
    trial = run_trial(TRIAL)
    graph = preferential_attachment(120, 4, seed=3)
    assert trial.metrics["degree"] == 2 * len(graph.edges) / 120
    assert trial.metrics["arrival_us"] > 0
    assert 1 <= trial.metrics["influenced"] <= 4  # at least one neighbor moves, and at depth 1 no other vertex
    assert (trial.parameters["rule"], trial.parameters["threads"], trial.parameters["depth"]) == ("paper", 1, 1)


def test_local_action_with_more_rounds_influences_more_vertices() -> None:
    assert run_trial(TRIAL | {"depth": None}).metrics["influenced"] > run_trial(TRIAL).metrics["influenced"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dataset": "cora"}, "dataset: expected one of 'preferential_attachment', got 'cora'"),
        ({"vertices": 0}, "vertices: expected an integer ≥ 1, got 0"),
        ({"arrivals": 80}, "arrivals: expected fewer than the vertices after the start, got 80"),
        ({"depth": -1}, "depth: expected"),
        ({"threads": 1}, "parameters: expected only .*got 'threads'"),
    ],
)
def test_check_trial_with_invalid_local_action_raises(change: dict[str, Any], expected: str) -> None:
    check_trial(TRIAL)
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(TRIAL | change)
