"""DANE with attributes (Li et al., 2017), online: it follows two eigenproblems by perturbation, and their consensus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.attributed_dane import check_attributes, scale_rows, solve_consensus, solve_cosines
from ripplevec.lab.baselines.base import check_settings
from ripplevec.lab.baselines.streaming.base import GrowingVectors
from ripplevec.lab.baselines.streaming.dane import DANE
from ripplevec.lab.baselines.streaming.eigen_perturbation import Matrix, Mix, QuadraticForms, perturb

MIN_SHARE = 1e-3  # 1 − λ is at least this in the row of a new vertex


class CosineEigenvectors:
    """Eigenvectors of the graph whose weights are the cosines of attributes, L y = λ D y, for a growing set of rows.

    The weights U Uᵀ of the unit rows U are never computed: YᵀU Uᵀ Y follows from UᵀY.
    """

    def __init__(self, attributes: csr_array, dim: int, seed: int) -> None:
        self._units = scale_rows(attributes)  # the rows that the eigenvectors are updated for
        self._appended: list[csr_array] = []  # those of later vertices; joined by updates only, because it copies all
        self._values, basis = solve_cosines(self._units, dim, seed)
        self._set_basis(basis)

    @property
    def basis(self) -> Matrix:
        """The eigenvectors as columns."""
        return self._basis.rows.astype(np.float64)

    def preview(self, attributes: csr_array) -> Matrix:
        """Return the row of a vertex with these attributes, from the equation Σ w_u y_u = d (1 − λ) y."""
        unit = scale_rows(attributes)
        strength = float((unit @ self._total)[0])
        if strength <= 0:
            return np.zeros(self._values.size)
        row: Matrix = (unit @ self._sums)[0] / (strength * np.maximum(1 - self._values, MIN_SHARE))
        return row

    def add(self, attributes: csr_array) -> Matrix:
        """Append a vertex and return its row. Later rows depend on it only after an update, so errors do not add up."""
        row = self.preview(attributes)
        self._basis.set_row(len(self._basis), row)
        self._appended.append(scale_rows(attributes))
        return row

    def update(self, mix: Mix) -> None:
        """Update the eigenpairs for the vertices that have been appended."""
        before = self._forms()
        self._units = csr_array(vstack([self._units, *self._appended]))
        self._appended.clear()
        self._values, basis = perturb(self._values, self.basis, before, self._forms(), mix)
        self._set_basis(basis)

    def _forms(self) -> QuadraticForms:
        """Return YᵀLY and YᵀDY of the vertices that have been joined."""
        units, basis = self._units, self.basis[: self._units.shape[0]]
        strength = units @ np.asarray(units.sum(axis=0)).ravel()
        sums = units.T @ basis
        q = basis.T @ (strength[:, None] * basis)
        return QuadraticForms(q - sums.T @ sums, q)

    def _set_basis(self, basis: Matrix) -> None:
        self._basis = GrowingVectors(basis)
        self._total = np.asarray(self._units.sum(axis=0)).ravel()
        self._sums = np.asarray(self._units.T @ basis)


@dataclass(kw_only=True)
class OnlineAttributedDANE:
    """DANE with attributes: `AttributedDANE` at the start, updated after every `chunk` arrivals.

    An update perturbs the eigenvectors of the graph and of the cosines of attributes, and solves the consensus again.
    Between updates, new vertices get rows from their neighbors and from the vertices with similar attributes.
    """

    dim: int = 128
    chunk: int = 64
    limit: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array, attributes: csr_array) -> None:
        """Compute the vectors of the initial graph; rows of attributes must be nonnegative."""
        check_attributes(attributes, graph.shape[0])
        self._edges = DANE(dim=self.dim, chunk=self.chunk, limit=self.limit, seed=self.seed)
        self._edges.start(graph)
        self._cosines = CosineEigenvectors(attributes, self.dim, self.seed)
        self._vectors = GrowingVectors(np.zeros((graph.shape[0], self.dim)))
        self._arrivals = 0
        self._solve_consensus()

    def preview(self, neighbors: Sequence[int], attributes: csr_array) -> NDArray[np.float32]:
        """Return the vector that a new vertex with these neighbors and attributes would get, without adding it."""
        return self._join(self._edges.preview(neighbors), self._cosines.preview(attributes))

    def add_vertex(self, v: int, neighbors: Sequence[int], attributes: csr_array) -> NDArray[np.float32]:
        """Add the next vertex with its edges and attributes; update everything if it completes a chunk."""
        if v != len(self._vectors):
            raise InvalidValueError.of("v", f"the next vertex, {len(self._vectors)}", v)
        row = self._edges.add_vertex(v, neighbors)
        self._vectors.set_row(v, self._join(row, self._cosines.add(attributes)))
        self._arrivals += 1
        if self._arrivals % self.chunk == 0:
            self._cosines.update(self._edges.mix)
            self._solve_consensus()
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the last update and those of the vertices placed since, read-only."""
        return self._vectors.read_only()

    def _join(self, of_edges: NDArray[np.float32], of_attributes: Matrix) -> NDArray[np.float32]:
        return (np.concatenate([of_edges, of_attributes]) @ self._combinations).astype(np.float32)

    def _solve_consensus(self) -> None:
        """Combine both embeddings; a column keeps its sign as far as possible."""
        both = self._edges.vectors().astype(np.float64), self._cosines.basis
        self._combinations = solve_consensus(*both, self.dim)
        vectors = np.hstack(both) @ self._combinations
        signs = np.where(np.einsum("ij,ij->j", vectors, self._vectors.rows) < 0, -1.0, 1.0)
        self._combinations *= signs
        self._vectors = GrowingVectors(vectors * signs)
