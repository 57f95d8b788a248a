"""Tests of the anchor benchmarks: the grown graph, its rows before and after an anchor, and the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

VERTICES = 2_000


@pytest.fixture
def anchors(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    module = benchmark("_anchors")
    monkeypatch.setattr(module, "CHUNK_VERTICES", 300)
    return module


def test_grow_graph_places_new_vertices_at_the_mean_of_their_neighbors(anchors: Any) -> None:
    grown = anchors.grow_graph(VERTICES, 1)
    links, rows = grown.adjacency.links, grown.rows.astype(np.float64)
    assert 0.9 * 10 * VERTICES < grown.adjacency.edge_count <= 10 * (VERTICES - 1)
    placed = np.zeros_like(rows)
    start_size = VERTICES // 100
    placed[:start_size] = rows[:start_size]
    for row in range(start_size, VERTICES):
        slots = slice(links.begin[row], links.begin[row] + links.degree[row])
        assert 5 < np.count_nonzero(links.neighbor[slots] < row) <= 10  # edges may repeat
        placed[row] = links.weight[slots] @ placed[links.neighbor[slots]] / links.strength[row]
    np.testing.assert_allclose(rows, placed, atol=2e-3 * np.abs(placed).max())


def test_with_bases_replaces_the_rows(anchors: Any) -> None:
    grown = anchors.grow_graph(VERTICES, 1)
    bases, seconds = anchors.compute_anchor(grown, 1)
    expected = np.hstack([basis.rows for basis in bases]).astype(np.float16)
    after = grown.with_bases(bases)
    assert seconds > 0
    assert np.array_equal(after.rows, expected)
    assert np.array_equal(after.coordinates.mu, np.concatenate([basis.mu for basis in bases]))


def test_anchor_record_contains_all_documented_metrics(
    benchmark: Callable[[str], Any], render_block: Callable[..., str], tmp_path: Any
) -> None:
    metrics = benchmark("anchor").measure(VERTICES)
    names = ("vertices", "edges", "threads", "gpu_seconds", "cpu_over_gpu", "values_apart", "inner_products_apart")
    benchmark("_report").write_record(tmp_path / "anchor_gpu.json", dict.fromkeys(names, 1))
    assert "2,000 vertices" in render_block("anchor", metrics)
    assert metrics["same_bits"] == 1
    assert metrics["two_over_one"] == metrics["one_thread_seconds"] / metrics["two_threads_seconds"]
    assert 0.5 < metrics["found_by_the_first"] < metrics["found_by_the_second"] < 1.0
