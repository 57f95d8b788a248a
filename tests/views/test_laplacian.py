from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from ripplevec.views import laplacian as module
from ripplevec.views.laplacian import NORMALIZATIONS, laplacian_vectors


def laplacian_of(sample: Any, normalization: str) -> np.ndarray:
    """Return the dense Laplacian of the vertices with edges."""
    part = sample.matrix[np.ix_(sample.active, sample.active)]
    degree = part.sum(axis=1)
    if normalization == "unnormalized":
        return np.diag(degree) - part
    if normalization == "symmetric":
        return np.eye(len(part)) - part / np.sqrt(np.outer(degree, degree))
    return np.eye(len(part)) - part / degree[:, None]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    vertices=st.integers(1, 25),
    edges=st.integers(0, 50),
    columns=st.integers(1, 8),
    normalization=st.sampled_from(NORMALIZATIONS),
)
def test_laplacian_vectors_are_eigenvectors_of_the_smallest_eigenvalues(
    random_sample: Any, seed: int, vertices: int, edges: int, columns: int, normalization: str
) -> None:
    sample = random_sample(seed, vertices, edges)
    vectors = laplacian_vectors(sample.adjacency, vertices, columns, normalization)
    count = min(columns, max(int(sample.active.sum()) - 1, 0))
    assert vectors.shape == (vertices, columns)
    assert not vectors[~sample.active].any()
    assert not vectors[:, count:].any()
    weight = sample.degree if normalization == "random-walk" else np.ones(vertices)
    np.testing.assert_allclose(vectors.T @ (weight[:, None] * vectors), np.diag(np.arange(columns) < count), atol=1e-9)
    if count:
        matrix, found = laplacian_of(sample, normalization), vectors[sample.active, :count]
        values = np.einsum("ij,ij->j", found, matrix @ found) / (found**2).sum(axis=0)
        np.testing.assert_allclose(matrix @ found, found * values, atol=1e-7)
        np.testing.assert_allclose(np.sort(values), np.sort(np.linalg.eigvals(matrix).real)[1 : count + 1], atol=1e-6)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_laplacian_vectors_of_dense_and_iterative_solver_agree(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch, normalization: str
) -> None:
    sample = community_sample()
    dense = laplacian_vectors(sample.adjacency, sample.rows, 4, normalization)
    monkeypatch.setattr(module, "MAX_DENSE_SIZE", 0)
    iterative = laplacian_vectors(sample.adjacency, sample.rows, 4, normalization)
    assert iterative.tobytes() == laplacian_vectors(sample.adjacency, sample.rows, 4, normalization).tobytes()
    assert subspace_angles(dense, iterative).max() < 1e-5
    weight = sample.degree if normalization == "random-walk" else np.ones(sample.rows)
    np.testing.assert_allclose(iterative.T @ (weight[:, None] * iterative), np.eye(4), atol=1e-9)


def copies_of_a_graph(copies: int, size: int, pairs: int) -> list[tuple[int, int]]:
    """Return the edges of identical connected graphs of this size, and of further components of two vertices."""
    draw = np.random.default_rng(3)
    ring = [(u, (u + 1) % size) for u in range(size)]
    chords = [(int(u), int(v)) for u, v in draw.integers(0, size, (size // 2, 2))]
    edges = [(copy * size + u, copy * size + v) for copy in range(copies) for u, v in ring + chords]
    return edges + [(copies * size + 2 * pair, copies * size + 2 * pair + 1) for pair in range(pairs)]


def check_eigenvectors(sample: Any, vectors: np.ndarray, normalization: str, expected: np.ndarray) -> None:
    """Check that the columns are orthonormal eigenvectors of the expected eigenvalues, repeated ones included."""
    weight = sample.degree if normalization == "random-walk" else np.ones(sample.rows)
    np.testing.assert_allclose(vectors.T @ (weight[:, None] * vectors), np.eye(vectors.shape[1]), atol=1e-8)
    matrix = laplacian_of(sample, normalization)
    values = np.einsum("ij,ij->j", vectors, matrix @ vectors) / (vectors**2).sum(axis=0)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-6)
    np.testing.assert_allclose(values, expected, atol=1e-6)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("columns", [12, 40])
@pytest.mark.parametrize("dense", [False, True])
def test_laplacian_vectors_of_many_components_include_every_copy_of_an_eigenvalue(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch, normalization: str, columns: int, dense: bool
) -> None:
    """Of 27 components, 26 copies of the eigenvalue 0 come first; then each eigenvalue of the copies seven times."""
    sample = create_sample(7 * 60 + 40, copies_of_a_graph(7, 60, 20))
    monkeypatch.setattr(module, "MAX_DENSE_SIZE", 10**6 if dense else 0)
    vectors = laplacian_vectors(sample.adjacency, sample.rows, columns, normalization)
    expected = np.sort(np.linalg.eigvals(laplacian_of(sample, normalization)).real)[1 : columns + 1]
    check_eigenvectors(sample, vectors, normalization, expected)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_laplacian_vectors_of_separate_components_leave_out_every_trivial_eigenvector(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch, normalization: str
) -> None:
    sample = create_sample(7 * 60 + 40, copies_of_a_graph(7, 60, 20))
    monkeypatch.setattr(module, "MAX_DENSE_SIZE", 0)
    vectors = laplacian_vectors(sample.adjacency, sample.rows, 14, normalization, components="separate")
    expected = np.sort(np.linalg.eigvals(laplacian_of(sample, normalization)).real)[27:41]
    check_eigenvectors(sample, vectors, normalization, expected)
    trivial = np.ones(sample.rows) if normalization == "unnormalized" else sample.degree**0.5
    weight = sample.degree**0.5 if normalization == "random-walk" else np.ones(sample.rows)
    for copy in range(7):
        inside = slice(copy * 60, copy * 60 + 60)
        np.testing.assert_allclose((trivial * weight)[inside] @ vectors[inside], 0, atol=1e-8)


def test_laplacian_vectors_of_one_component_include_every_copy_of_an_eigenvalue(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub with 30 identical arms: their eigenvalues are repeated 29 times inside one component."""
    arms = [(0 if step == 0 else 10 * arm + step, 10 * arm + step + 1) for arm in range(30) for step in range(10)]
    sample = create_sample(301, arms)
    monkeypatch.setattr(module, "MAX_DENSE_SIZE", 0)
    vectors = laplacian_vectors(sample.adjacency, sample.rows, 50, "symmetric")
    expected = np.linalg.eigvalsh(laplacian_of(sample, "symmetric"))[1:51]
    check_eigenvectors(sample, vectors, "symmetric", expected)


def test_laplacian_vectors_prefer_large_components_where_eigenvalues_are_equal(create_sample: Any) -> None:
    """With fewer columns than components, the columns tell the largest components apart."""
    edges = [(2 * pair, 2 * pair + 1) for pair in range(6)] + [(u, u + 1) for u in range(12, 24)] + [(25, 26), (26, 27)]
    sample = create_sample(28, edges)
    vectors = laplacian_vectors(sample.adjacency, sample.rows, 1, "symmetric")
    assert np.flatnonzero(vectors[:, 0]).tolist() == [*range(12, 28)]
    separate = laplacian_vectors(sample.adjacency, sample.rows, 3, "symmetric", components="separate")
    assert np.flatnonzero(separate.any(axis=1)).tolist() == [*range(12, 25)]
