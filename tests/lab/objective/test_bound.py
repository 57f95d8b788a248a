from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from ripplevec.lab.datasets.synthetic import preferential_attachment
from ripplevec.lab.objective import bound as bounds
from ripplevec.lab.objective import homophily, polar
from ripplevec.lab.objective.bound import least_homophily, smallest_eigenvalues

Matrix = NDArray[np.float64]


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), edges=st.integers(0, 40), count=st.integers(1, 15))
def test_the_values_are_those_of_the_dense_matrix(
    randomly: Callable[..., csr_array], laplacian: Callable[[csr_array], Matrix], seed: int, edges: int, count: int
) -> None:
    graph = randomly(seed, edges=edges)
    expected = np.linalg.eigvalsh(laplacian(graph))[:count]
    np.testing.assert_allclose(smallest_eigenvalues(graph, count), expected, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 12))
def test_no_vectors_have_less_loss(randomly: Callable[..., csr_array], seed: int, columns: int) -> None:
    graph = randomly(seed)
    vectors = polar(np.random.default_rng(seed).standard_normal((12, columns)))
    assert homophily(vectors, graph) >= least_homophily(graph, columns) - 1e-9


def test_values_shared_by_many_components_are_all_found(laplacian: Callable[[csr_array], Matrix]) -> None:
    path = csr_array(np.diag(np.ones(2), 1) + np.diag(np.ones(2), -1))
    graph = csr_array(block_diag([path] * 30))
    np.testing.assert_allclose(smallest_eigenvalues(graph, 70), np.repeat([0.0, 1.0, 3.0], [30, 30, 10]), atol=1e-9)


def test_large_components_are_iterated_to_the_same_values(
    laplacian: Callable[[csr_array], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = preferential_attachment(vertices=600, edges_per_vertex=4, seed=0).adjacency()
    exact = np.linalg.eigvalsh(laplacian(graph))[:10]
    monkeypatch.setattr(bounds, "DENSE", 50)
    np.testing.assert_allclose(smallest_eigenvalues(graph, 10), exact, rtol=1e-4, atol=1e-6)
    assert smallest_eigenvalues(graph, 1) == pytest.approx(0.0, abs=1e-9)
