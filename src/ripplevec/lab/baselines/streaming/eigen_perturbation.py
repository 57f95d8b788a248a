"""Base class of baselines that follow a generalized eigenproblem P x = λ Q x by perturbation, a chunk at a time.

P and Q are matrices of the graph, and the columns of X are leading eigenvectors. The first-order change of an
eigenvector is a mixture of the eigenvectors that are kept. New vertices have no row in these, so their rows would stay
zero: a new vertex gets the row that satisfies its own equation, given the rows of its neighbors. After every update,
columns are normalized to xᵀQx = 1 and eigenvalues are set to xᵀPx, because first-order formulas alone diverge on a
stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_unit_edges, check_arrival

MIN_NORM = 1e-12  # xᵀQx of a column that counts as zero

Matrix = NDArray[np.float64]


class QuadraticForms(NamedTuple):
    """XᵀPX and XᵀQX of a graph."""

    p: Matrix
    q: Matrix


Mix = Callable[[QuadraticForms, QuadraticForms, Matrix], Matrix]
Eigenpairs = tuple[Matrix, Matrix]


@dataclass(kw_only=True)
class EigenPerturbation(ABC):
    """Eigenvectors of the start, updated by perturbation after every `chunk` arrivals."""

    dim: int = 128
    chunk: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Compute the eigenpairs of the initial graph."""
        self._graph = as_weight_matrix(graph)
        self._values, basis = self.solve(self._graph)
        self._basis = GrowingVectors(basis)
        self._vectors = GrowingVectors(basis * self.scale(self._values))
        self._pending: list[tuple[int, int]] = []
        self._arrivals = 0

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the vector that follows from the equation of the new vertex."""
        return (self._solve_row(neighbors) * self.scale(self._values)).astype(np.float32)

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Place a new vertex; update the eigenvectors if it completes a chunk. Return its vector."""
        check_arrival(v, neighbors, len(self._basis))
        if not self._basis.is_placed(v):
            row = self._solve_row(neighbors)
            self._basis.set_row(v, row)
            self._vectors.set_row(v, row * self.scale(self._values))
        self._pending += [(v, other) for other in neighbors]
        self._arrivals += 1
        if self._arrivals % self.chunk == 0:
            self._update()
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the last update and those of the vertices placed since, read-only."""
        return self._vectors.read_only()

    @abstractmethod
    def solve(self, graph: csr_array) -> tuple[Matrix, Matrix]:
        """Return `dim` leading eigenvalues and eigenvectors; zero beyond those of the graph."""

    @abstractmethod
    def matrices(self, graph: csr_array) -> tuple[csr_array, csr_array]:
        """Return P and Q of a graph."""

    @abstractmethod
    def row_factors(self, values: Matrix, degree: int) -> Matrix:
        """Return the factors that turn the sum of the neighbors' rows into the row of a vertex."""

    @abstractmethod
    def scale(self, values: Matrix) -> Matrix:
        """Return the factors that turn columns of eigenvectors into columns of vectors."""

    @abstractmethod
    def mix(self, before: QuadraticForms, change: QuadraticForms, values: Matrix) -> Matrix:
        """Return the matrix by which X is multiplied, from the forms before a chunk and their change."""

    def adjust(self, values: Matrix) -> Matrix:
        """Adjust the eigenproblem after an update, if necessary; return the adjusted eigenvalues."""
        return values

    def _solve_row(self, neighbors: Sequence[int]) -> Matrix:
        rows = self._basis.placed_rows(neighbors)
        return rows.sum(axis=0, dtype=np.float64) * self.row_factors(self._values, max(len(rows), 1))

    def _update(self) -> None:
        """Apply the pending edges to the eigenpairs."""
        size, basis = len(self._basis), self._basis.rows.astype(np.float64)
        self._graph.resize((size, size))
        grown = add_unit_edges(self._graph, self._pending)
        before, after = (
            QuadraticForms(*(basis.T @ (part @ basis) for part in self.matrices(graph)))
            for graph in (self._graph, grown)
        )
        values, basis = perturb(self._values, basis, before, after, self.mix)
        self._values = self.adjust(values)
        self._graph, self._pending = grown, []
        self._basis = GrowingVectors(basis)
        self._vectors = GrowingVectors(basis * self.scale(self._values))


def perturb(values: Matrix, basis: Matrix, before: QuadraticForms, after: QuadraticForms, mix: Mix) -> Eigenpairs:
    """Return the eigenpairs after a change: mixed by the first-order formula, and then normalized to xᵀQx = 1."""
    mixture = mix(before, QuadraticForms(after.p - before.p, after.q - before.q), values)
    norms = np.einsum("ji,jk,ki->i", mixture, after.q, mixture)
    mixture = np.where(norms > MIN_NORM, mixture / np.sqrt(np.maximum(norms, MIN_NORM)), 0.0)
    return np.einsum("ji,jk,ki->i", mixture, after.p, mixture), basis @ mixture
