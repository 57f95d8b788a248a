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
