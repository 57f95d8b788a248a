"""Tests of the benchmark of approximate search on a small stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import growing_communities

AnnIndex = pytest.importorskip("ripplevec.search.ann", reason="approximate search requires usearch").AnnIndex


@pytest.fixture
def ann(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    module = benchmark("ann")
    for name, value in {"QUERIES": 10, "NEAREST": 5, "ROUNDS": 3, "CHURN_ROUNDS": 2}.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.fixture
def model() -> Embedder:
    return Embedder(dim=8, search="ann").fit(growing_communities(300, 4, 4, seed=1).edges)


def test_recall_counts_results_of_exact_search(ann: Any, model: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.update_index(model)
    recall, index_seconds, exact_seconds = ann.measure_search(model, np.random.default_rng(0))
    assert recall == 1
    assert min(index_seconds, exact_seconds) > 0
    original = AnnIndex.nearest
    for skipped, expected in ((2, 0.6), (5, 0.0)):
        monkeypatch.setattr(
            AnnIndex,
            "nearest",
            lambda index, target, query, count, skipped=skipped: tuple(
                part[:, skipped:] for part in original(index, target, query, count + skipped)
            ),
        )
        assert ann.measure_search(model, np.random.default_rng(0))[0] == pytest.approx(expected, abs=0.05)


def test_remove_vertices_removes_the_given_number(ann: Any, model: Embedder) -> None:
    ann.remove_vertices(model, np.random.default_rng(0), 30)
    assert len(model) == 270


def test_ann_record_contains_all_documented_metrics(ann: Any, render_block: Callable[..., str]) -> None:
    metrics = ann.measure(600)
    assert "600 vertices" in render_block("ann", metrics)
    assert metrics["recall_least"] <= metrics["recall_mean"] <= 1
    assert metrics["churn_share"] == pytest.approx(0.1)
    assert metrics["anchors"] > 0
