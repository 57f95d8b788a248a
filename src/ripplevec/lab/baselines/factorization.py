"""Baselines that factorize a matrix of the whole graph: spectral embedding and NetMF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, vstack
from scipy.sparse.linalg import eigsh

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.baselines.base import as_weight_matrix, build_adjacency, check_settings, linked_part
from ripplevec.util.parallel import block_ranges
from ripplevec.views.laplacian import COMPONENTS, laplacian_vectors
from ripplevec.views.solvers import LANCZOS_TOLERANCE, MAX_DENSE_SIZE, fix_signs

MAX_EXACT_VERTICES = 5_000  # up to here powers of the transition matrix are fast enough
ROWS_PER_BLOCK = 1_024  # rows that are dense at a time

RowBlock = Callable[[int, int], NDArray[np.float64]]
"""Computes the dense rows `first` to `last - 1` of a matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectral:
    """Exact spectral embedding, without regularization of the degrees.

    The vectors are the rows of F with FᵀF = I: eigenvectors of I − D^-½ A D^-½ for its smallest eigenvalues, except the
    trivial one. Rule `paper` starts from them. On a graph with several components, the first columns tell components
    apart; with `components="separate"`, they are left out. Weights are rounded to single precision, self-loops are
    ignored.
    """

    dim: int = 128
    components: str = "together"
    seed: int = 0  # unused: every baseline has a seed, but this one is deterministic

    def __post_init__(self) -> None:
        check_settings(self)
        check_choice("Spectral.components", self.components, COMPONENTS)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Return a vector per row; zero for vertices without edges."""
        adjacency = build_adjacency(graph)
        return laplacian_vectors(adjacency, graph.shape[0], self.dim, "symmetric", components=self.components).astype(
            np.float32
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetMF:
    """NetMF (Qiu et al., 2018): an explicit factorization of the matrix that DeepWalk factorizes implicitly.

    The vectors are the leading singular vectors of log max(M, 1), each times the square root of its singular value.
    For a window of T vertices and b = `negatives`,

        M = vol(G) / (b T) · (P + P² + … + P^T) D⁻¹,   P = D⁻¹ A.

    With `approximate`, the sum of powers is computed from the leading `rank` eigenpairs of D^-½ A D^-½ alone, as the
    authors do for large windows; by default on graphs of more than 5,000 vertices.
    """

    dim: int = 128
    window: int = 10
    negatives: int = 1
    approximate: bool | None = None
    rank: int = 256
    seed: int = 0  # unused: every baseline has a seed, but this one is deterministic

    def __post_init__(self) -> None:
        check_settings(self)
        if self.approximate not in (None, True, False):
            raise InvalidValueError.of("NetMF.approximate", "True, False or None", self.approximate)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Build the matrix and factorize it; return a vector per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        linked, matrix = linked_part(matrix)
        if not linked.size:
            return vectors
        values, singular_vectors = _leading_eigenpairs(self.log_matrix(matrix), self.dim, "LM")
        vectors[linked, : values.size] = fix_signs(singular_vectors) * np.sqrt(np.abs(values))
        return vectors

    def log_matrix(self, matrix: csr_array) -> csr_array:
        """Return log max(M, 1) for a graph without isolated vertices, computed in blocks of rows."""
        approximate = matrix.shape[0] > MAX_EXACT_VERTICES if self.approximate is None else self.approximate
        rows = self._approximate_rows(matrix) if approximate else self._exact_rows(matrix)
        scale = matrix.sum() / self.negatives
        parts = [
            csr_array(np.log(np.maximum(scale * rows(*block), 1)))
            for block in block_ranges(matrix.shape[0], ROWS_PER_BLOCK)
        ]
        return csr_array(vstack(parts))

    def _exact_rows(self, matrix: csr_array) -> RowBlock:
        """Return rows of (1/T) Σ Pʳ D⁻¹.

        The matrix is symmetric, so rows are computed as columns: T products of a sparse matrix with a thin one.
        """
        inverse = diags_array(1 / matrix.sum(axis=1))
        transition = csr_array(inverse @ matrix)

        def rows(first: int, last: int) -> NDArray[np.float64]:
            total = columns = inverse.tocsc()[:, first:last].toarray()
            for _ in range(self.window - 1):
                total = columns + transition @ total
            return (transition @ total).T / self.window

        return rows

    def _approximate_rows(self, matrix: csr_array) -> RowBlock:
        """Return rows of D^-½ U f(Λ) Uᵀ D^-½, where f(λ) is the mean of λ, λ², … λ^T, but at least 0."""
        root = 1 / np.sqrt(matrix.sum(axis=1))
        scale = diags_array(root)
        values, vectors = _leading_eigenpairs(csr_array(scale @ matrix @ scale), self.rank, "LA")
        gains = np.mean([values**power for power in range(1, self.window + 1)], axis=0)
        left = vectors * root[:, None]
        right = (left * np.maximum(gains, 0)).T
        return lambda first, last: left[first:last] @ right


def _leading_eigenpairs(matrix: csr_array, count: int, which: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return at most `count` eigenpairs of a symmetric matrix: largest values (LA) or magnitudes (LM) first."""
    size = matrix.shape[0]
    if size <= max(MAX_DENSE_SIZE, count + 1):
        values, vectors = eigh(matrix.toarray())
    else:
        initial = np.random.Generator(np.random.Philox(0)).standard_normal(size)
        values, vectors = eigsh(matrix, k=count, which=which, v0=initial, tol=LANCZOS_TOLERANCE)
    order = np.argsort(-np.abs(values) if which == "LM" else -values, kind="stable")[:count]
    return values[order], vectors[:, order]
