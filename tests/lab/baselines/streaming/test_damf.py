from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.streaming import DAMF, IncrementalSVD


def test_damf_vectors_solve_the_pagerank_equation_of_the_factors(small_stream: Any) -> None:
    method = DAMF(dim=8, chunk=4, rounds=60)
    small_stream.run(method)
    graph = small_stream.final.toarray()
    degree = np.maximum(graph.sum(axis=1, keepdims=True), 1)
    exact = 0.3 * np.linalg.solve(np.eye(len(graph)) - 0.7 * graph / degree, method._factors.vectors())
    np.testing.assert_allclose(method.vectors(), exact, atol=1e-4)


def test_damf_without_smoothing_is_the_incremental_svd(small_stream: Any) -> None:
    factors = small_stream.run(IncrementalSVD(dim=8, chunk=4)).vectors()
    np.testing.assert_allclose(small_stream.run(DAMF(dim=8, chunk=4, restart=1.0)).vectors(), factors, atol=1e-6)


def test_damf_arrival_between_updates_solves_its_own_equation(small_stream: Any) -> None:
    method = DAMF(dim=8, chunk=100)
    method.start(small_stream.graph)
    v, neighbors = small_stream.arrivals[0]
    placed = [row for row in method.vectors()[neighbors] if row.any()]
    expected = 0.3 * method._factors.preview(neighbors) + 0.7 * np.mean(placed, axis=0)
    np.testing.assert_allclose(method.add_vertex(v, neighbors), expected, atol=1e-6)


def test_damf_with_restart_above_one_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"DAMF.restart: expected a number above 0, at most 1, got 1.5"):
        DAMF(restart=1.5)
