"""A minimal model with the methods of an embedder, to test the evaluation without one."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op


class NeighborMean:
    """Start from eigenvectors, place a new vertex at the mean of its neighbors, rotate all vectors at every anchor."""

    def __init__(self, dim: int = 4, anchor_every: int | None = None, angle: float = 0.0) -> None:
        self.dim, self.anchor_every = dim, anchor_every
        self.rotation = np.eye(dim)
        self.rotation[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        self.rows: dict[int, np.ndarray] = {}
        self.edges: set[tuple[int, int]] = set()
        self.calls: list[str] = []

    def fit(self, batch: Batch) -> None:
        self.calls.append("fit")
        vertices, edges = self._parts(batch)
        self.edges |= set(edges)
        row_of = {vertex: row for row, vertex in enumerate(vertices)}
        matrix = np.zeros((len(row_of), len(row_of)))
        for u, v in edges:
            matrix[row_of[u], row_of[v]] = matrix[row_of[v], row_of[u]] = 1
        vectors = np.linalg.eigh(matrix)[1][:, -self.dim :] * matrix.any(axis=1)[:, None]
        self.rows = dict(zip(vertices, vectors, strict=True))

    def add_vertex(self, vertex: int, neighbors: list[int]) -> np.ndarray:
        self.calls.append("add_vertex")
        return self._add(vertex, neighbors)

    def preview(self, neighbors: list[int]) -> np.ndarray:
        self.calls.append("preview")
        return self._mean(neighbors)

    def partial_fit(self, batch: Batch) -> Any:
        self.calls.append("partial_fit")
        vertices, edges = self._parts(batch)
        new = [vertex for vertex in vertices if vertex not in self.rows]
        for vertex in new:
            self._add(vertex, [v for u, v in edges if u == vertex])
        self.edges |= {(u, v) for u, v in edges if u not in new}
        anchored = bool(self.anchor_every) and len(self.rows) % self.anchor_every == 0
        if anchored:
            self.rows = {vertex: row @ self.rotation for vertex, row in self.rows.items()}
        return SimpleNamespace(ids=vertices, vectors=self.vectors(np.array(vertices)), anchored=anchored)

    def vectors(self, ids: np.ndarray) -> np.ndarray:
        return np.array([self.rows[vertex] for vertex in ids.tolist()])

    def _add(self, vertex: int, neighbors: list[int]) -> np.ndarray:
        assert vertex not in self.rows
        self.edges |= {(vertex, other) for other in neighbors}
        self.rows[vertex] = self._mean(neighbors)
        return self.rows[vertex]

    def _mean(self, neighbors: list[int]) -> np.ndarray:
        return np.mean([self.rows[other] for other in neighbors], axis=0) if neighbors else np.zeros(self.dim)

    @staticmethod
    def _parts(batch: Batch) -> tuple[list[int], list[tuple[int, int]]]:
        added = np.ones(len(batch.src), bool) if batch.op is None else batch.op == Op.ADD
        edges = zip(batch.src[added].tolist(), batch.dst[added].tolist(), strict=True)
        return list(dict.fromkeys(batch.src.tolist())), list(edges)


@pytest.fixture
def neighbor_mean() -> type[NeighborMean]:
    return NeighborMean
