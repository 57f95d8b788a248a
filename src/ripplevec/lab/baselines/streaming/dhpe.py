"""DHPE (Zhu et al., 2018): the Katz proximity, factorized and then updated by generalized eigen-perturbation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import eigsh

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import check_settings
from ripplevec.lab.baselines.streaming.eigen_perturbation import EigenPerturbation, Matrix, QuadraticForms
from ripplevec.views.solvers import MAX_DENSE_SIZE

PSEUDO_INVERSE_TOLERANCE = 1e-6  # singular values below this share of the largest are ignored
MIN_DENOMINATOR = 0.1  # of λ / (1 + λ): exact eigenvalues of the proximity are above −½


@dataclass(kw_only=True)
class DHPE(EigenPerturbation):
    """DHPE of an undirected graph: β A x = λ (I − β A) x, as in the authors' program.

    λ are the eigenvalues of the Katz proximity Σ (βA)^r. A vector is a row of X |Λ|^½, as in HOPE; the second half of
    a HOPE vector differs only in signs. β is `decay` over the spectral radius of the initial graph, and is lowered when
    the radius grows.
    """

    decay: float = 0.8

    def __post_init__(self) -> None:
        check_settings(self)
        if self.decay >= 1:
            raise InvalidValueError.of("DHPE.decay", "a number above 0, below 1", self.decay)

    def solve(self, graph: csr_array) -> tuple[Matrix, Matrix]:
        """Return the eigenvalues of the proximity of largest magnitude, and eigenvectors with xᵀ(I − βA)x = 1."""
        size = graph.shape[0]
        values, vectors = np.zeros(self.dim), np.zeros((size, self.dim))
        if size <= max(MAX_DENSE_SIZE, 2 * self.dim + 2):
            found, columns = eigh(graph.toarray()) if size else (values[:0], vectors[:, :0])
        else:
            initial = np.random.default_rng(self.seed).standard_normal(size)
            ends = [eigsh(graph, k=self.dim, which=which, v0=initial) for which in ("LA", "SA")]
            found, columns = np.concatenate([ends[0][0], ends[1][0]]), np.hstack([ends[0][1], ends[1][1]])
        self._beta = self.decay / max(float(np.abs(found).max(initial=0.0)), 1e-12)
        proximity = self._beta * found / (1 - self._beta * found)
        order = np.argsort(-np.abs(proximity), kind="stable")[: self.dim]
        values[: order.size] = proximity[order]
        vectors[:, : order.size] = columns[:, order] * np.sqrt(1 + values[: order.size])
        return values, vectors

    def matrices(self, graph: csr_array) -> tuple[csr_array, csr_array]:
        """Return β A and I − β A."""
        katz = csr_array(self._beta * graph)
        return katz, csr_array(eye_array(graph.shape[0]) - katz)

    def row_factors(self, values: Matrix, degree: int) -> Matrix:
        """Return β (1 + λ) / λ, from the equation β Σ x_u = λ (x − β Σ x_u); zero for λ = 0."""
        return np.where(values == 0, 0.0, self._beta * (1 + values) / np.where(values == 0, 1.0, values))

    def scale(self, values: Matrix) -> Matrix:
        """Return |λ|^½ over the length of an eigenvector, (1 + λ)^½."""
        return np.sqrt(np.abs(values) / np.maximum(1 + values, MIN_DENOMINATOR))

    def mix(self, before: QuadraticForms, change: QuadraticForms, values: Matrix) -> Matrix:
        """Return I + G, where column i of G solves the changed equation of x_i in the span of X."""
        norms = np.maximum(before.q.diagonal() + change.q.diagonal(), MIN_DENOMINATOR)
        shift = (change.p - change.q * values).diagonal() / norms
        mixture = np.eye(values.size)
        for i in np.flatnonzero(values):
            new = values[i] + shift[i]
            system = new * (before.q + change.q) - (before.p + change.p)
            target = change.p[:, i] - new * change.q[:, i] - shift[i] * before.q[:, i]
            system[i], target[i] = 0, 0
            system[i, i] = 1
            mixture[:, i] += np.linalg.lstsq(system, target, rcond=PSEUDO_INVERSE_TOLERANCE)[0]
        return mixture

    def adjust(self, values: Matrix) -> Matrix:
        """Lower β if the spectral radius has grown; return the eigenvalues of the proximity for the new β."""
        adjacency = values / (self._beta * np.maximum(1 + values, MIN_DENOMINATOR))
        self._beta = min(self._beta, self.decay / max(float(np.abs(adjacency).max()), 1e-12))
        return self._beta * adjacency / (1 - self._beta * adjacency)
