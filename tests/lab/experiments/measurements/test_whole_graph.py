from __future__ import annotations

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.multilabel import MultiLabelGraph
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.experiments.measurements import check_trial, run_trial, whole_graph

TRIAL = {"kind": "whole_graph", "dataset": "ppi_3890", "seed": 0, "dim": 16}


@pytest.fixture(autouse=True)
def graph(monkeypatch: pytest.MonkeyPatch) -> MultiLabelGraph:
    """A graph of communities; members of even communities have a second label."""
    data = planted_partition(communities=6, size=60, inside=8, elsewhere=1, seed=0)
    labels = np.column_stack([data.labels[:, None] == np.arange(6), data.labels % 2 == 0])
    graph = MultiLabelGraph("planted", data.edges, labels)
    monkeypatch.setattr(whole_graph, "_load", lambda name: graph)
    return graph


def test_whole_graph_scores_ripplevec_and_reports_its_choice() -> None:
    metrics = run_trial(TRIAL | {"method": "ripplevec", "threads": 1}).metrics
    assert metrics["whole_micro"] > 90
    assert metrics["recipe"] in range(5)
    assert 20 < metrics["hidden_edges"] <= 100


def test_whole_graph_scores_a_recipe_and_a_baseline() -> None:
    for settings in ({"method": "ripplevec", "threads": 1, "views": "communities"}, {"method": "prone"}):
        metrics = run_trial(TRIAL | settings).metrics
        assert metrics["whole_micro"] > 80
        assert "recipe" not in metrics


@pytest.mark.parametrize("wrong", [{"method": "nothing"}, {"method": "ripplevec", "views": "nothing"}, {}])
def test_invalid_whole_graph_trial_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        check_trial(TRIAL | wrong)
