"""Tests of the benchmark of GraphSAGE with attributes: settings are selected on training vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.lab.baselines.graphsage import GraphSAGE
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.protocols import Arrivals

GRAPH = planted_partition(communities=2, size=40, inside=8, elsewhere=1)


def test_candidates_include_the_defaults(benchmark: Any) -> None:
    module = benchmark("attribute_graphsage")
    candidates = [GraphSAGE(**settings) for settings in benchmark("_tuning").expand_grids(module.GRIDS)]
    assert GraphSAGE() in candidates
    assert len(candidates) == 7


def test_select_candidates_takes_the_best_of_each_data_set(benchmark: Any) -> None:
    module, tuning = benchmark("attribute_graphsage"), benchmark("_tuning")
    texts = [tuning.describe_settings(settings) for settings in tuning.expand_grids(module.GRIDS)]
    trials = {
        name: {text: {"micro": float(text == best)} for text in texts}
        for name, best in (("blog", texts[3]), ("flickr", texts[5]))
    }
    best = module.select_candidates(trials)
    assert [tuning.describe_settings(best[name]) for name in ("blog", "flickr")] == [texts[3], texts[5]]


def test_validation_ignores_labels_of_test_vertices(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    module = benchmark("attribute_graphsage")
    order = Arrivals.from_dataset(GRAPH, 0).order
    labels = GRAPH.labels.copy()
    labels[order[40:]] = 1 - labels[order[40:]]
    attributes = csr_array(np.eye(80))
    monkeypatch.setattr(module, "read_attributes", lambda name: attributes)
    scores = []
    for shown in (GRAPH.labels, labels):
        dataset = Dataset.from_pairs("graph", GRAPH.edges, shown)
        monkeypatch.setattr(module, "load", lambda name, dataset=dataset: dataset)
        scores.append([module.train("graph", {"steps": 20}, 0, validate)["micro"] for validate in (True, False)])
    assert scores[0][0] == scores[1][0]
    assert scores[0][1] != scores[1][1]
