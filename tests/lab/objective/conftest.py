"""Small weighted graphs as sparse matrices, and the dense Laplacian to compare with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

Matrix = NDArray[np.float64]


def random_graph(seed: int, vertices: int = 12, edges: int = 20, weighted: bool = True) -> csr_array:
    """Return a graph with random edges, some vertices without any, and weights over two decades."""
    draw = np.random.default_rng(seed)
    dense = np.zeros((vertices, vertices))
    for u, v in draw.integers(0, vertices, (edges, 2)):
        if u != v:
            dense[u, v] = dense[v, u] = 10 ** draw.uniform(-1, 1) if weighted else 1.0
    return csr_array(dense)


def planted_graph(groups: int = 4, size: int = 15, across: int = 12, seed: int = 0) -> csr_array:
    """Return complete communities with a few edges across, whose smallest eigenvalues, one each, stand apart."""
    draw = np.random.default_rng(seed)
    dense = np.kron(np.eye(groups), np.ones((size, size)))
    for u, v in draw.integers(0, groups * size, (across, 2)):
        dense[u, v] = dense[v, u] = 1.0
    np.fill_diagonal(dense, 0.0)
    return csr_array(dense)


def dense_laplacian(adjacency: csr_array) -> Matrix:
    dense = adjacency.toarray()
    return np.diag(dense.sum(axis=1)) - dense


@pytest.fixture(scope="session")
def make_random_graph() -> Callable[..., csr_array]:
    return random_graph


@pytest.fixture(scope="session")
def make_planted_graph() -> Callable[..., csr_array]:
    return planted_graph


@pytest.fixture(scope="session")
def laplacian() -> Callable[[csr_array], Matrix]:
    return dense_laplacian
