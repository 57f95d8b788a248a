"""ProNE (Zhang et al., 2019): a sparse factorization, propagated with a band-pass filter in the graph's spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.special import iv

from ripplevec.lab.baselines.base import as_weight_matrix, check_settings, linked_part
from ripplevec.views.solvers import fix_signs

NOISE_POWER = 0.75  # negative samples are drawn by column sums to this power, as in word2vec
OVERSAMPLING = 10  # additional random directions of the randomized SVD
POWER_STEPS = 5  # its subspace iterations

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProNE:
    """ProNE: the matrix of edges log p_uv − log n_v is factorized, then filtered.

    p is the transition matrix of the graph, and n the distribution of negative samples. The rows of the factor are
    replaced by A (I − g(L)) R, where g is the expansion of exp(−θ ((L − μ)² / 2 − 1)) in `terms` Chebyshev polynomials,
    and A and L are the adjacency matrix and the random-walk Laplacian with a self-loop at every vertex. The result is
    made orthogonal by a dense SVD, and all rows have length one, as in the authors' program.
    """

    dim: int = 128
    terms: int = 10
    mu: float = 0.2
    theta: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Factorize and propagate; return a vector per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        linked, matrix = linked_part(matrix)
        if linked.size:
            rows = self.propagate(matrix, self.factorize(matrix))
            vectors[linked, : rows.shape[1]] = rows
        return vectors

    def factorize(self, matrix: csr_array) -> Matrix:
        """Return the rows of the sparse factorization of a graph without isolated vertices."""
        left, values = randomized_svd(log_ratio_matrix(matrix), self.dim, self.seed)
        return _unit_rows(left * np.sqrt(values))

    def propagate(self, matrix: csr_array, rows: Matrix) -> Matrix:
        """Return A (I − g(L)) R, made orthogonal."""
        looped = csr_array(matrix + eye_array(matrix.shape[0]))
        left, values, _ = svd(looped @ (rows - self.filter_rows(looped, rows)), full_matrices=False)
        return _unit_rows(fix_signs(left[:, : self.dim]) * np.sqrt(values[: self.dim]))

    def filter_rows(self, looped: csr_array, rows: Matrix) -> Matrix:
        """Return g(L) R: the Chebyshev expansion of exp(−θ X) with X = (L − μ)² / 2 − 1."""
        transition = csr_array(diags_array(1 / looped.sum(axis=1)) @ looped)

        def shift(block: Matrix) -> Matrix:
            return (1 - self.mu) * block - transition @ block

        def apply(block: Matrix) -> Matrix:
            return shift(shift(block)) / 2 - block

        previous, current = rows, apply(rows)
        total = iv(0, self.theta) * rows
        for term in range(1, self.terms):
            total += 2 * (-1) ** term * iv(term, self.theta) * current
            previous, current = current, 2 * apply(current) - previous
        return total


def log_ratio_matrix(matrix: csr_array) -> csr_array:
    """Return log p_uv − log n_v for every edge of a graph without isolated vertices, zero elsewhere."""
    transition = csr_array(diags_array(1 / matrix.sum(axis=1)) @ matrix)
    noise = np.asarray(transition.sum(axis=0)).ravel() ** NOISE_POWER
    ratios = np.log(transition.data) - np.log(noise / noise.sum())[transition.indices]
    return csr_array((ratios, transition.indices, transition.indptr), shape=matrix.shape)


def randomized_svd(matrix: csr_array, count: int, seed: int) -> tuple[Matrix, Matrix]:
    """Return at most `count` leading left singular vectors and values, by subspace iteration from random columns."""
    size = matrix.shape[0]
    columns = min(count + OVERSAMPLING, size)
    basis = np.random.default_rng(seed).standard_normal((size, columns))
    for _ in range(POWER_STEPS):
        basis = qr(matrix.T @ qr(matrix @ basis, mode="economic")[0], mode="economic")[0]
    basis = qr(matrix @ basis, mode="economic")[0]
    left, values, _ = svd((matrix.T @ basis).T, full_matrices=False)
    return fix_signs(basis @ left[:, :count]), values[:count]


def _unit_rows(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
