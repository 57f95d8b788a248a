"""Small graphs with dense matrices, as references for the matrix-free code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.batch import Batch, Op
from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.graph import Graph

Matrix = NDArray[np.float64]


class Sample:
    """A graph on rows 0 … n−1 and its dense matrices."""

    def __init__(self, vertices: int, edges: Iterable[tuple[Any, ...]]) -> None:
        graph, edges = Graph(), [edge for edge in edges if edge[0] != edge[1]]
        list(graph.apply(Batch.vertices(np.arange(vertices), Op.VERTEX)))
        list(graph.apply(Batch.from_any(edges)))
        self.rows, self.graph = vertices, graph

    @property
    def adjacency(self) -> Adjacency:
        return self.graph.adjacency

    @property
    def matrix(self) -> Matrix:
        return self.adjacency.to_csr().toarray()[: self.rows, : self.rows]

    @property
    def active(self) -> NDArray[np.bool_]:
        return self.matrix.any(axis=1)

    @property
    def degree(self) -> Matrix:
        return self.matrix.sum(axis=1)

    def row_weights(self, tau: float) -> Matrix:
        return np.where(self.active, self.degree + tau, 0.0)

    def operator_matrix(self, tau: float) -> Matrix:
        """Return W = (D+τ)⁻¹(A − (1/n) 1 dᵀ), zero for rows without edges."""
        count = max(int(self.active.sum()), 1)
        full = (self.matrix - np.outer(self.active, self.degree) / count) / (self.degree + tau + ~self.active)[:, None]
        return np.where(self.active[:, None], full, 0.0)

    def spectrum(self, tau: float) -> Matrix:
        """Return the eigenvalues of S on vertices with edges, largest first, without the trivial one."""
        part = self.matrix[np.ix_(self.active, self.active)]
        root = np.sqrt(self.degree[self.active] + tau)
        regular = (part + tau / len(part)) / np.outer(root, root)
        trivial = root / np.linalg.norm(root)
        np.testing.assert_allclose(regular @ trivial, trivial, atol=1e-9)
        return np.linalg.eigvalsh(regular - 3 * np.outer(trivial, trivial))[:0:-1]


def create_random_sample(seed: int, vertices: int = 30, edges: int = 70, weighted: bool = True) -> Sample:
    """Return a graph of random edges with weights over two decades; few edges leave components and lone vertices."""
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, vertices, (edges, 2)).tolist()
    weights = 10 ** draw.uniform(-1, 1, edges) if weighted else np.ones(edges)
    return Sample(vertices, [(u, v, w) for (u, v), w in zip(ends, weights.tolist(), strict=True)])


def create_community_sample(
    seed: int = 0, groups: int = 5, size: int = 24, inside: int = 8, across: int = 40
) -> Sample:
    """Return a graph with clear communities, whose leading eigenvalues are separated from the others."""
    draw = np.random.default_rng(seed)
    edges = [
        (group * size + u, group * size + int(v))
        for group in range(groups)
        for u in range(size)
        for v in draw.integers(0, size, inside)
    ]
    edges += draw.integers(0, groups * size, (across, 2)).tolist()
    return Sample(groups * size, edges)


@pytest.fixture
def create_sample() -> type[Sample]:
    return Sample


@pytest.fixture(scope="session")
def random_sample() -> Callable[..., Sample]:
    return create_random_sample


@pytest.fixture(scope="session")
def community_sample() -> Callable[..., Sample]:
    return create_community_sample
