"""NetMF (Qiu et al., 2018): the matrix that DeepWalk factorizes without saying so, factorized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, vstack
from scipy.sparse.linalg import eigsh

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import check_settings, checked
from ripplevec.util.parallel import block_ranges
from ripplevec.views.solvers import DENSE, TOLERANCE
from ripplevec.views.subspace import fix_signs

EXACT = 5_000  # vertices: up to here powers of the walk's matrix are quick enough
BLOCK = 1_024  # rows that are dense at a time

Rows = Callable[[int, int], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetMF:
    """The leading singular vectors of log max(M, 1), each times the root of its singular value.

    For walks read with a window of T vertices and `negatives` b,

        M = vol(G) / (b T) · (P + P² + … + P^T) D⁻¹,   P = D⁻¹ A.

    `approximate`: the sum of powers by the leading `rank` eigenpairs of D^-½ A D^-½ alone (the authors' way for large
    windows); None: on graphs of more than 5,000 vertices.
    """

    dim: int = 128
    window: int = 10
    negatives: int = 1
    approximate: bool | None = None
    rank: int = 256
    seed: int = 0  # every baseline has one; nothing here is random

    def __post_init__(self) -> None:
        check_settings(self)
        if self.approximate not in (None, True, False):
            raise InvalidValueError.of("NetMF.approximate", "True, False or None", self.approximate)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Build the matrix and factorize it; vertices without edges have zero vectors."""
        matrix = checked(graph)
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        linked = np.flatnonzero(np.diff(matrix.indptr))
        if not linked.size:
            return vectors
        values, found = _leading(self.logarithm(csr_array(matrix[linked][:, linked])), self.dim, "LM")
        vectors[linked, : values.size] = fix_signs(found) * np.sqrt(np.abs(values))
        return vectors

    def logarithm(self, matrix: csr_array) -> csr_array:
        """log max(M, 1) of a graph in which every vertex has an edge, a block of rows at a time."""
        large = matrix.shape[0] > EXACT if self.approximate is None else self.approximate
        rows = self._few_eigenpairs(matrix) if large else self._powers(matrix)
        scale = matrix.sum() / self.negatives
        parts = [csr_array(np.log(np.maximum(scale * rows(*block), 1))) for block in block_ranges(matrix.shape[0], BLOCK)]
        return csr_array(vstack(parts))

    def _powers(self, matrix: csr_array) -> Rows:
        """Rows of (1/T) Σ Pʳ D⁻¹; as it is symmetric, found as columns: T products of a sparse with a slim matrix."""
        inverse = diags_array(1 / matrix.sum(axis=1))
        walk = csr_array(inverse @ matrix)

        def rows(first: int, last: int) -> NDArray[np.float64]:
            total = own = inverse.tocsc()[:, first:last].toarray()
            for _ in range(self.window - 1):
                total = own + walk @ total
            return (walk @ total).T / self.window

        return rows

    def _few_eigenpairs(self, matrix: csr_array) -> Rows:
        """Rows of D^-½ U f(Λ) Uᵀ D^-½, where f(λ) is the mean of λ, λ², … λ^T, not below 0."""
        root = 1 / np.sqrt(matrix.sum(axis=1))
        scale = diags_array(root)
        values, vectors = _leading(csr_array(scale @ matrix @ scale), self.rank, "LA")
        gains = np.mean([values**power for power in range(1, self.window + 1)], axis=0)
        left = vectors * root[:, None]
        right = (left * np.maximum(gains, 0)).T
        return lambda first, last: left[first:last] @ right


def _leading(matrix: csr_array, count: int, which: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenpairs of a symmetric matrix, at most `count`: of the largest values (LA) or magnitudes (LM) first."""
    size = matrix.shape[0]
    if size <= max(DENSE, count + 1):
        values, vectors = eigh(matrix.toarray())
    else:
        first = np.random.Generator(np.random.Philox(0)).standard_normal(size)
        values, vectors = eigsh(matrix, k=count, which=which, v0=first, tol=TOLERANCE)
    order = np.argsort(-np.abs(values) if which == "LM" else -values, kind="stable")[:count]
    return values[order], vectors[:, order]
