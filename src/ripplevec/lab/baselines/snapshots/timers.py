"""TIMERS (Zhang et al., 2018): an incremental factorization that restarts when its error may have grown too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh

from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.snapshots.base import extend_matrix
from ripplevec.lab.baselines.streaming.incremental_svd import leading_eigenpairs
from ripplevec.views.solvers import MAX_DENSE_SIZE

MIN_VALUE = 1e-9  # eigenvalues below this count as zero


@dataclass(kw_only=True)
class Timers:
    """TIMERS on the adjacency matrix: A ≈ U Λ Uᵀ, and the vectors are the rows of U |Λ|^½.

    Between restarts, new vertices get the row A U Λ⁻¹, and the eigenpairs are those of A in the span of the old U. A
    restart computes them anew. It happens if the squared error exceeds a lower bound of the smallest possible one by
    more than the share `margin`. With the matrix S of the last restart,

        bound = error(S) + tr(A² − S²) − sum of the `dim` largest eigenvalues of A² − S².
    """

    dim: int = 128
    margin: float = 0.17
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        self.restarts = 0
        self._origin: csr_array | None = None

    def update(self, graph: csr_array) -> NDArray[np.float32]:
        """Update the factors, or restart; return a vector per row."""
        matrix = as_weight_matrix(graph)
        extend_matrix(self._origin, matrix.shape[0])  # raises if there are fewer rows than before
        if self._origin is None or not self._refine(matrix):
            self._restart(matrix)
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        vectors[:, : len(self._values)] = self._basis * np.sqrt(np.abs(self._values))
        return vectors

    def lower_bound(self, matrix: csr_array) -> float:
        """Return a lower bound of the squared error of every factorization with `dim` eigenpairs."""
        origin = extend_matrix(self._origin, matrix.shape[0])
        growth = _squared_norm(matrix) - _squared_norm(origin)
        size = matrix.shape[0]
        count = min(self.dim, size)
        if size <= max(MAX_DENSE_SIZE, 2 * count):
            largest = np.linalg.eigvalsh((matrix @ matrix - origin @ origin).toarray())[-count:]
        else:
            change = LinearOperator(
                (size, size), matvec=lambda x: matrix @ (matrix @ x) - origin @ (origin @ x), dtype=np.float64
            )
            initial = np.random.default_rng(self.seed).standard_normal(size)
            largest = eigsh(change, k=count, which="LA", v0=initial, tol=1e-2, return_eigenvectors=False)
        return self._error + growth - float(np.maximum(largest, 0).sum())

    def _restart(self, matrix: csr_array) -> None:
        self._values, self._basis = leading_eigenpairs(matrix, self.dim, self.seed)
        self._origin, self._error = matrix, _squared_norm(matrix) - float(np.square(self._values).sum())
        self.restarts += 1

    def _refine(self, matrix: csr_array) -> bool:
        """Update the factors; return False, without changes, if the error is too large."""
        extended = np.zeros((matrix.shape[0], len(self._values)))
        extended[: len(self._basis)] = self._basis
        extended[len(self._basis) :] = (matrix[len(self._basis) :] @ extended) / self._values
        basis = qr(extended, mode="economic")[0]
        values, mixture = eigh(basis.T @ (matrix @ basis))
        error = _squared_norm(matrix) - float(np.square(values).sum())
        if error > (1 + self.margin) * max(self.lower_bound(matrix), 0.0):
            return False
        order = np.argsort(-np.abs(values), kind="stable")
        order = order[np.abs(values[order]) > MIN_VALUE]
        self._values, self._basis = values[order], basis @ mixture[:, order]
        return True


def _squared_norm(matrix: csr_array) -> float:
    return float(np.square(matrix.data).sum())
