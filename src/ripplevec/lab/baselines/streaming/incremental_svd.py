"""Incremental truncated SVD (after Brand, 2006): the adjacency matrix's leading part, updated with every few arrivals.

The matrix is symmetric, A ≈ U Λ Uᵀ, and the singular values are |λ|. Sources s that bring neighbors N(s) add
Σ_s (e_s 1_Nᵀ + 1_N e_sᵀ), of low rank: a small eigenproblem in the space of U and what sticks out of it gives the new
leading part. A vector is a row of U |Λ|^½, turned so that coordinates stay as still as they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh

from ripplevec.lab.baselines.base import check_settings, checked
from ripplevec.lab.baselines.streaming.base import Rows, check_arrival

NEGLIGIBLE = 1e-9  # of the largest: singular values and lengths below are rounding
DENSE = 400

Matrix = NDArray[np.float64]


@dataclass(kw_only=True)
class IncrementalSVD:
    """Updates once per `chunk` of arrivals, makes U orthonormal again every `renew` updates.

    A newcomer is folded in (its row of A, projected onto U) until its chunk is complete.
    """

    dim: int = 128
    chunk: int = 8
    renew: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Solve for the eigenvalues of largest magnitude."""
        values, self._basis = _leading(checked(graph), self.dim, self.seed)
        self._values, self._turn = values, np.eye(self.dim)[: len(values)]
        self._known, self._updates = graph.shape[0], 0
        self._waiting: list[tuple[int, list[int]]] = []
        self._serve()

    def place(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """The newcomer's row of the adjacency matrix, folded in."""
        total = self._rows.placed(neighbors).sum(axis=0, dtype=np.float64)
        folded: NDArray[np.float32] = (total @ self._fold).astype(np.float32)
        return folded

    def arrive(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Fold a newcomer in; with the last of a chunk, update."""
        check_arrival(v, neighbors, self._known)
        self._known = max(self._known, v + 1)
        if v == len(self._rows) or not self._rows.view[v].any():
            self._rows.put(v, self.place(neighbors))
        self._waiting.append((v, list(neighbors)))
        if len(self._waiting) == self.chunk:
            self._update()
        return self._rows.view[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """The vectors as the last update left them, and those folded in since."""
        return self._rows.reading()

    def _update(self) -> None:
        """U and Λ with the waiting edges added."""
        basis = np.zeros((self._known, len(self._values)))
        basis[: len(self._basis)] = self._basis
        added = _added(self._waiting, self._known)
        inside = basis.T @ added
        outside = _orthonormal(added - basis @ inside)
        whole = np.hstack([basis, outside])
        part = np.vstack([inside, outside.T @ added])
        half = part.shape[1] // 2
        crossed = part[:, :half] @ part[:, half:].T
        small = crossed + crossed.T
        held = len(self._values)
        small[np.arange(held), np.arange(held)] += self._values
        self._values, mixed = _largest(small, self.dim)
        self._basis, self._waiting = whole @ mixed, []
        self._follow(mixed[:held].T)
        self._updates += 1
        if self._updates % self.renew == 0:
            self._orthonormalize()
        self._serve()

    def _orthonormalize(self) -> None:
        """Undo what rounding has done to U; the matrix it stands for stays the same."""
        self._basis, triangle = qr(self._basis, mode="economic")
        self._values, mixed = _largest((triangle * self._values) @ triangle.T, self.dim)
        self._basis = self._basis @ mixed
        self._follow(mixed.T @ triangle)

    def _follow(self, overlap: Matrix) -> None:
        """Turn the served coordinates so that they move least; `overlap` is of the new columns of U with the old."""
        left, _, right = svd(overlap @ self._turn, full_matrices=False)
        self._turn = left @ right

    def _serve(self) -> None:
        self._rows = Rows((self._basis * np.sqrt(np.abs(self._values))) @ self._turn)
        self._fold = (self._turn.T / self._values) @ self._turn


def _leading(graph: csr_array, count: int, seed: int) -> tuple[Matrix, Matrix]:
    size = graph.shape[0]
    if size <= max(DENSE, 2 * count):
        return _largest(graph.toarray(), count)
    first = np.random.default_rng(seed).standard_normal(size)
    values, vectors = eigsh(graph, k=count, which="LM", v0=first)
    return _sorted(values, vectors, count)


def _largest(matrix: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """At most `count` eigenpairs of a symmetric matrix, largest magnitude first, none that is only rounding."""
    values, vectors = eigh(matrix) if len(matrix) else (np.zeros(0), np.zeros((0, 0)))
    return _sorted(values, vectors, count)


def _sorted(values: Matrix, vectors: Matrix, count: int) -> tuple[Matrix, Matrix]:
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    order = order[np.abs(values[order]) > NEGLIGIBLE * np.abs(values).max(initial=0.0)]
    return values[order], vectors[:, order]


def _added(waiting: list[tuple[int, list[int]]], size: int) -> Matrix:
    """The new edges as columns: a mark for every source, then, in the same order, its neighbors."""
    columns = np.zeros((size, 2 * len(waiting)))
    for column, (v, neighbors) in enumerate(waiting):
        columns[v, column] = 1
        columns[neighbors, len(waiting) + column] = 1
    return columns


def _orthonormal(columns: Matrix) -> Matrix:
    """An orthonormal basis of what the columns span."""
    directions, triangle, _ = qr(columns, mode="economic", pivoting=True)
    lengths = np.abs(np.diag(triangle))
    kept: Matrix = directions[:, lengths > NEGLIGIBLE * max(lengths.max(initial=0.0), 1.0)]
    return kept
