"""Incremental truncated SVD of the adjacency matrix (after Brand, 2006), updated after every few arrivals.

The matrix is symmetric, A ≈ U Λ Uᵀ, with singular values |λ|. Arriving vertices s with neighbors N(s) add the low-rank
matrix Σ_s (e_s 1_Nᵀ + 1_N e_sᵀ). A small eigenproblem in the span of U and of the new columns' residuals gives the new
leading eigenpairs. A vector is a row of U |Λ|^½, rotated so that coordinates change as little as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, polar, qr
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh

from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.streaming.base import GrowingVectors, check_arrival
from ripplevec.views.solvers import MAX_DENSE_SIZE

ROUNDING = 1e-9  # singular values and lengths below this share of the largest are rounding errors

Matrix = NDArray[np.float64]


@dataclass(kw_only=True)
class IncrementalSVD:
    """Incremental SVD that updates after every `chunk` arrivals and reorthonormalizes U every `renew` updates.

    Until its chunk is complete a new vertex is folded in: its row of A is projected onto U.
    """

    dim: int = 128
    chunk: int = 8
    renew: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Compute the eigenpairs of largest magnitude of the initial graph."""
        values, self._basis = leading_eigenpairs(as_weight_matrix(graph), self.dim, self.seed)
        self._values, self._rotation = values, np.eye(self.dim)[: len(values)]
        self._known, self._updates = graph.shape[0], 0
        self._pending: list[tuple[int, list[int]]] = []
        self._refresh_vectors()

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the row of the adjacency matrix with these neighbors, folded in."""
        total = self._vectors.placed_rows(neighbors).sum(axis=0, dtype=np.float64)
        folded: NDArray[np.float32] = (total @ self._fold_in).astype(np.float32)
        return folded

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Fold a new vertex in; update if it completes a chunk. Return its vector."""
        check_arrival(v, neighbors, self._known)
        self._known = max(self._known, v + 1)
        if not self._vectors.is_placed(v):
            self._vectors.set_row(v, self.preview(neighbors))
        self._pending.append((v, list(neighbors)))
        if len(self._pending) == self.chunk:
            self._update()
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the last update and those folded in since, read-only."""
        return self._vectors.read_only()

    def _update(self) -> None:
        """Add the pending edges to U and Λ."""
        basis = np.zeros((self._known, len(self._values)))
        basis[: len(self._basis)] = self._basis
        columns = _edge_columns(self._pending, self._known)
        projection = basis.T @ columns
        residual_basis = orthonormal_basis(columns - basis @ projection)
        extended_basis = np.hstack([basis, residual_basis])
        coefficients = np.vstack([projection, residual_basis.T @ columns])
        half = coefficients.shape[1] // 2
        crossed = coefficients[:, :half] @ coefficients[:, half:].T
        small = crossed + crossed.T
        rank = len(self._values)
        small[np.arange(rank), np.arange(rank)] += self._values
        self._values, mixed = _largest_eigenpairs(small, self.dim)
        self._basis, self._pending = extended_basis @ mixed, []
        self._align(mixed[:rank].T)
        self._updates += 1
        if self._updates % self.renew == 0:
            self._orthonormalize()
        self._refresh_vectors()

    def _orthonormalize(self) -> None:
        """Remove accumulated rounding errors from U; the represented matrix does not change."""
        self._basis, triangle = qr(self._basis, mode="economic")
        self._values, mixed = _largest_eigenpairs((triangle * self._values) @ triangle.T, self.dim)
        self._basis = self._basis @ mixed
        self._align(mixed.T @ triangle)

    def _align(self, overlap: Matrix) -> None:
        """Rotate the coordinates so that vectors move least; `overlap` is the new columns of U times the old ones."""
        self._rotation = polar(overlap @ self._rotation)[0]

    def _refresh_vectors(self) -> None:
        self._vectors = GrowingVectors((self._basis * np.sqrt(np.abs(self._values))) @ self._rotation)
        self._fold_in = (self._rotation.T / self._values) @ self._rotation


def leading_eigenpairs(graph: csr_array, count: int, seed: int) -> tuple[Matrix, Matrix]:
    """Return at most `count` eigenpairs of a symmetric matrix, largest magnitude first, without rounding errors."""
    size = graph.shape[0]
    if size <= max(MAX_DENSE_SIZE, 2 * count):
        return _largest_eigenpairs(graph.toarray(), count)
    initial = np.random.default_rng(seed).standard_normal(size)
    values, vectors = eigsh(graph, k=count, which="LM", v0=initial)
    return _select_largest(values, vectors, count)


def _largest_eigenpairs(matrix: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """Return at most `count` eigenpairs of a symmetric matrix, largest magnitude first, without rounding errors."""
    values, vectors = eigh(matrix) if len(matrix) else (np.zeros(0), np.zeros((0, 0)))
    return _select_largest(values, vectors, count)


def _select_largest(values: Matrix, vectors: Matrix, count: int) -> tuple[Matrix, Matrix]:
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    order = order[np.abs(values[order]) > ROUNDING * np.abs(values).max(initial=0.0)]
    return values[order], vectors[:, order]


def _edge_columns(arrivals: list[tuple[int, list[int]]], size: int) -> Matrix:
    """Return indicator columns of the new edges: one per arriving vertex, then one per neighborhood."""
    columns = np.zeros((size, 2 * len(arrivals)))
    for column, (v, neighbors) in enumerate(arrivals):
        columns[v, column] = 1
        columns[neighbors, len(arrivals) + column] = 1
    return columns


def orthonormal_basis(columns: Matrix) -> Matrix:
    """Return an orthonormal basis of the span of the columns."""
    directions, triangle, _ = qr(columns, mode="economic", pivoting=True)
    lengths = np.abs(np.diag(triangle))
    basis: Matrix = directions[:, lengths > ROUNDING * max(lengths.max(initial=0.0), 1.0)]
    return basis
