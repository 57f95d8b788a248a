"""The grown graph that anchors correct: its edges, its rows before an anchor and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

VERTICES = 2_000


@pytest.fixture
def anchors(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    made = benchmark("_anchors")
    monkeypatch.setattr(made, "AT_ONCE", 300)
    return made


def test_a_grown_graph_has_ten_edges_a_vertex_and_newcomers_from_their_neighbors(anchors: Any) -> None:
    grown = anchors.grow(VERTICES, 1)
    links, rows = grown.adjacency.links, grown.rows.astype(np.float64)
    assert 0.9 * 10 * VERTICES < grown.adjacency.edge_count <= 10 * (VERTICES - 1)
    placed = np.zeros_like(rows)
    few = VERTICES // 100
    placed[:few] = rows[:few]
    for row in range(few, VERTICES):
        slots = slice(links.begin[row], links.begin[row] + links.degree[row])
        assert 5 < np.count_nonzero(links.neighbor[slots] < row) <= 10  # an edge may come twice
        placed[row] = links.weight[slots] @ placed[links.neighbor[slots]] / links.strength[row]
    np.testing.assert_allclose(rows, placed, atol=2e-3 * np.abs(placed).max())


def test_the_bases_of_an_anchor_take_the_place_of_the_rows(anchors: Any) -> None:
    grown = anchors.grow(VERTICES, 1)
    bases, seconds = anchors.anchored(grown, 1)
    side_by_side = np.hstack([basis.rows for basis in bases]).astype(np.float16)
    after = grown.after(bases)
    assert seconds > 0
    assert np.array_equal(after.rows, side_by_side)
    assert np.array_equal(after.space.mu, np.concatenate([basis.mu for basis in bases]))


def test_a_record_says_what_the_page_asks_for(
    benchmark: Callable[[str], Any], page_of: Callable[..., str], tmp_path: Any
) -> None:
    figures = benchmark("anchor").measure(VERTICES)
    names = ("vertices", "edges", "threads", "gpu_seconds", "cpu_over_gpu", "values_apart", "inner_products_apart")
    benchmark("_report").write(tmp_path / "anchor_gpu.json", dict.fromkeys(names, 1))
    assert "2,000 vertices" in page_of("anchor", figures)
    assert figures["same_bits"] == 1
    assert figures["two_over_one"] == figures["one_thread_seconds"] / figures["two_threads_seconds"]
    assert 0.5 < figures["found_by_the_first"] < figures["found_by_the_second"] < 1.0
