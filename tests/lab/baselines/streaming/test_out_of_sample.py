from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.lab.baselines.streaming import NeighborMean, Nystrom, out_of_sample


def test_out_of_sample_start_equals_exact_view_of_embedder(small_stream: Any) -> None:
    method, exact = NeighborMean(dim=8), Embedder(dim=8, normalize=False)
    method.start(small_stream.graph)
    exact.fit(small_stream.graph)
    np.testing.assert_allclose(method.vectors(), exact.to_numpy(), atol=1e-5)


def test_out_of_sample_placed_vertices_never_move(small_stream: Any) -> None:
    method = NeighborMean(dim=8)
    method.start(small_stream.graph)
    before = method.vectors().copy()
    vector = method.add_vertex(80, [0, 1, 2])
    method.add_vertex(81, [80, 3])
    np.testing.assert_array_equal(method.add_vertex(80, [5]), vector)
    np.testing.assert_array_equal(method.vectors()[:80], before)


def test_neighbor_mean_places_vertex_at_mean_of_neighbors(small_stream: Any) -> None:
    method = NeighborMean(dim=8)
    method.start(small_stream.graph)
    first = method.add_vertex(80, [0, 1, 2])
    np.testing.assert_allclose(first, method.vectors()[:3].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(method.add_vertex(81, [80, 3]), (first + method.vectors()[3]) / 2, rtol=1e-6)


def test_nystrom_places_twin_at_original_vertex(monkeypatch: pytest.MonkeyPatch, small_stream: Any) -> None:
    monkeypatch.setattr(out_of_sample, "MIN_EIGENVALUE_SHARE", 0.0)
    method = Nystrom(dim=6)
    method.start(small_stream.graph)
    for vertex in (0, 7, 33):
        neighbors = small_stream.graph[[vertex]].indices.tolist()
        np.testing.assert_allclose(method.preview(neighbors), method.vectors()[vertex], atol=1e-4)


def test_nystrom_errors_do_not_grow_along_chain_of_arrivals(small_stream: Any) -> None:
    method = Nystrom(dim=40)
    method.start(small_stream.graph)
    method.add_vertex(80, [0])
    for v in range(81, 100):
        method.add_vertex(v, [v - 1, 0, 1])
    assert np.linalg.norm(method.vectors()[99]) < 10 * np.linalg.norm(method.vectors()[:2], axis=1).max()
