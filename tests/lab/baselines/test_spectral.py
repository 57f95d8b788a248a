from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.spectral import Spectral
from ripplevec.lab.datasets.synthetic import planted_partition

GRAPH = planted_partition(communities=2, size=40, inside=8, elsewhere=1)


def test_columns_are_the_eigenvectors_after_the_trivial_one() -> None:
    matrix = GRAPH.adjacency().toarray() * np.random.default_rng(0).integers(1, 4, (80, 80))
    matrix = matrix + matrix.T
    root = np.sqrt(matrix.sum(axis=1))
    exact = np.linalg.eigh(np.eye(80) - matrix / np.outer(root, root))[1][:, 1:9]
    vectors = Spectral(dim=8).embed(csr_array(matrix))
    np.testing.assert_allclose(abs(exact.T @ vectors), np.eye(8), atol=1e-5)


def test_two_communities_separate_by_the_sign_of_the_first_column() -> None:
    vectors = Spectral(dim=2).embed(GRAPH.adjacency())
    assert abs(((vectors[:, 0] > 0) == GRAPH.labels).mean() - 0.5) > 0.45


def test_the_same_graph_gives_the_same_vectors() -> None:
    large = planted_partition(communities=5, size=100).adjacency()
    np.testing.assert_array_equal(Spectral(dim=8).embed(large), Spectral(dim=8).embed(large))


def test_vertices_without_edges_and_columns_beyond_the_graph_are_zero() -> None:
    vectors = Spectral(dim=4).embed(csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])))
    assert vectors.any(axis=1).tolist() == [True, True, False]
    assert vectors.any(axis=0).tolist() == [True, False, False, False]
    assert not Spectral(dim=4).embed(csr_array((3, 3))).any()


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidValueError, match=r"Spectral\.dim: expected a whole number"):
        Spectral(dim=0)
