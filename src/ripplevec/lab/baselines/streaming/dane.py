"""DANE (Li et al., 2017) without attributes: Laplacian eigenvectors that follow the graph by matrix perturbation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import laplacian

from ripplevec.lab.baselines.base import build_adjacency
from ripplevec.lab.baselines.streaming.eigen_perturbation import EigenPerturbation, Matrix, QuadraticForms
from ripplevec.views.laplacian import laplacian_vectors

MIN_SHARE = 0.1  # 1 − λ is at least this in the row of a new vertex, so that errors do not grow along arrivals


@dataclass(kw_only=True)
class DANE(EigenPerturbation):
    """DANE, topology only: L x = λ D x, with the first-order perturbation of the paper's online model.

    Without attributes, the consensus embedding of the paper is the one of the graph. The trivial eigenvector of every
    component is left out. The formula divides by differences of eigenvalues. Where the result is above `limit`, they
    are too close for a first-order formula, and the two eigenvectors are not mixed: without this limit, a few updates
    turn the coordinates into noise.
    """

    limit: float = 0.1

    def solve(self, graph: csr_array) -> tuple[Matrix, Matrix]:
        """Return the smallest non-trivial eigenvalues, and eigenvectors with XᵀDX = I."""
        adjacency = build_adjacency(graph)
        vectors = laplacian_vectors(adjacency, graph.shape[0], self.dim, "random-walk", components="separate")
        return np.einsum("ij,ij->j", vectors, laplacian(graph) @ vectors), vectors

    def matrices(self, graph: csr_array) -> tuple[csr_array, csr_array]:
        """Return L and D."""
        return csr_array(laplacian(graph)), csr_array(diags_array(graph.sum(axis=1)))

    def row_factors(self, values: Matrix, degree: int) -> Matrix:
        """Return 1 / (d (1 − λ)): the equation of a vertex is Σ x_u = d (1 − λ) x."""
        return 1 / (degree * np.maximum(1 - values, MIN_SHARE))

    def scale(self, values: Matrix) -> Matrix:
        """Return ones: the vectors are the eigenvectors."""
        return np.ones(values.size)

    def mix(self, before: QuadraticForms, change: QuadraticForms, values: Matrix) -> Matrix:
        """Return I + C, where Δx_i = Σ_j C_ji x_j to first order."""
        numerator, gaps = change.p - change.q * values, values - values[:, None]
        valid = np.abs(numerator) < self.limit * np.abs(gaps)
        mixture = np.where(valid, numerator / np.where(valid, gaps, 1.0), 0.0)
        np.fill_diagonal(mixture, 1 - change.q.diagonal() / 2)
        return mixture
