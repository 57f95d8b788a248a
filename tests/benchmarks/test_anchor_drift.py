"""The benchmark of drift signals, on small graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_every_generated_graph_connects_vertices_to_earlier_ones(benchmark: Any) -> None:
    for generate in benchmark("anchor_drift").GRAPHS.values():
        edges = generate(2_000, 0)
        assert (edges.min(axis=1) >= 0).all()
        assert (edges.max(axis=1) < 2_000).all()
        assert (edges[:, 0] != edges[:, 1]).all()


def test_purchases_connect_users_with_items_only(benchmark: Any) -> None:
    edges = benchmark("anchor_drift").arriving_purchases(500, groups=5, seed=3)
    side = np.full(500, -1)
    side[edges[0, 0]] = 0
    for _ in range(500):  # a two-coloring, from one vertex on
        known = side[edges] >= 0
        one_known = known.any(axis=1) & ~known.all(axis=1)
        if not one_known.any():
            break
        pairs = np.where(known[one_known][:, :1], edges[one_known], edges[one_known][:, ::-1])
        side[pairs[:, 1]] = 1 - side[pairs[:, 0]]
    colored = edges[(side[edges] >= 0).all(axis=1)]
    assert len(colored) > 0.9 * len(edges)
    assert (side[colored[:, 0]] != side[colored[:, 1]]).all()


def test_relative_movement_compares_vertices_of_the_same_degree(benchmark: Any) -> None:
    degree = np.repeat([2, 2, 7, 7], 50)
    recent = np.tile(np.repeat([True, False], 50), 2)
    moved = np.where(degree == 2, 0.4, 0.1)
    drift = benchmark("anchor_drift")
    assert drift.compare_movement(moved, degree, recent) == pytest.approx(1.0)
    assert drift.compare_movement(np.where(recent, 3 * moved, moved), degree, recent) == pytest.approx(3.0)
    few = np.arange(200) % 50 < 5  # too few of each degree to compare
    assert drift.compare_movement(moved[few], degree[few], recent[few]) == 1.0


def test_drift_record_contains_all_documented_metrics(
    benchmark: Any, render_block: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drift = benchmark("anchor_drift")
    monkeypatch.setattr(drift, "VERTICES", 400)
    names = ("random", "appearing communities")
    block = render_block(
        "anchor_drift", {key: v for name in names for key, v in drift.measure_signals(name, 2).items()}
    )
    assert len(block.splitlines()) == 2 + len(names) * len(drift.GROWTHS)
    assert "| appearing communities | 60 % |" in block
