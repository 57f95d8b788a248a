from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.lab.baselines.streaming import IncrementalSVD, incremental_svd


def grow(method: IncrementalSVD, start: int, arrivals: list[list[int]], seed: int) -> np.ndarray:
    """Stream a random graph; return its final adjacency matrix."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((start + len(arrivals),) * 2)
    upper = np.triu(rng.random((start, start)) < 0.4, 1)
    matrix[:start, :start] = upper + upper.T
    method.start(csr_array(matrix[:start, :start]))
    for v, chosen in enumerate(arrivals, start):
        neighbors = sorted({other % v for other in chosen})
        method.add_vertex(v, neighbors)
        matrix[v, neighbors] = matrix[neighbors, v] = 1
    return matrix


def singular_values(method: IncrementalSVD) -> np.ndarray:
    """Return the singular values of the represented matrix, whose square roots are the lengths of the columns."""
    return np.linalg.svd(method.vectors().astype(np.float64), compute_uv=False) ** 2


@settings(max_examples=40)
@given(
    st.integers(1, 8),
    st.lists(st.lists(st.integers(0, 100), max_size=4), max_size=8),
    st.integers(1, 3),
    st.integers(0, 1000),
)
def test_incremental_svd_with_enough_columns_is_exact(
    start: int, arrivals: list[list[int]], chunk: int, seed: int
) -> None:
    method = IncrementalSVD(dim=20, chunk=chunk, renew=2)
    matrix = grow(method, start, arrivals[: len(arrivals) // chunk * chunk], seed)
    basis, values = method._basis, method._values
    rebuilt = np.zeros_like(matrix)
    rebuilt[: len(basis), : len(basis)] = (basis * values) @ basis.T
    np.testing.assert_allclose(rebuilt, matrix, atol=1e-6)
    np.testing.assert_allclose(basis.T @ basis, np.eye(len(values)), atol=1e-6)


def test_incremental_svd_vectors_are_leading_part_of_matrix(small_stream: Any) -> None:
    method = IncrementalSVD(dim=8)
    method.start(small_stream.final)
    values = np.linalg.eigvalsh(small_stream.final.toarray())
    largest = np.sort(np.abs(values))[::-1][:8]
    np.testing.assert_allclose(singular_values(method), largest, rtol=1e-5)


def test_incremental_svd_truncated_updates_stay_near_exact_values(small_stream: Any) -> None:
    method = small_stream.run(IncrementalSVD(dim=30, chunk=4))
    exact = np.sort(np.abs(np.linalg.eigvalsh(small_stream.final.toarray())))[::-1][:5]
    np.testing.assert_allclose(singular_values(method)[:5], exact, rtol=0.1)


def test_incremental_svd_lanczos_agrees_with_dense_solver(monkeypatch: pytest.MonkeyPatch, small_stream: Any) -> None:
    dense, lanczos = IncrementalSVD(dim=8), IncrementalSVD(dim=8)
    dense.start(small_stream.final)
    monkeypatch.setattr(incremental_svd, "MAX_DENSE_SIZE", 10)
    lanczos.start(small_stream.final)
    np.testing.assert_allclose(lanczos._values, dense._values, rtol=1e-8)


def test_incremental_svd_update_keeps_coordinates_stable(small_stream: Any) -> None:
    method = IncrementalSVD(dim=8, chunk=1, renew=1)
    method.start(small_stream.graph)
    before = method.vectors().copy()
    method.add_vertex(80, [0, 1, 2])
    moved = np.linalg.norm(method.vectors()[:80] - before) / np.linalg.norm(before)
    assert moved < 0.3


def test_incremental_svd_preview_of_twin_equals_original_vertex(small_stream: Any) -> None:
    method = IncrementalSVD(dim=8)
    method.start(small_stream.graph)
    twin = method.preview(small_stream.graph[[5]].indices.tolist())
    np.testing.assert_allclose(twin, method.vectors()[5], atol=1e-5)


def test_incremental_svd_orthonormalization_keeps_matrix(small_stream: Any) -> None:
    method = IncrementalSVD(dim=8)
    method.start(small_stream.graph)
    method._basis += 1e-3 * np.random.default_rng(0).standard_normal(method._basis.shape)
    before = (method._basis * method._values) @ method._basis.T
    method._orthonormalize()
    np.testing.assert_allclose((method._basis * method._values) @ method._basis.T, before, atol=1e-10)
    np.testing.assert_allclose(method._basis.T @ method._basis, np.eye(8), atol=1e-10)
