"""The objective of the paper: vectors that change little between two states and differ little along edges.

F holds the current vectors, one row per vertex; P those of the previous state; J selects the rows of the vertices of P
from F; A is the current weighted adjacency matrix, D its strengths (row sums), |V| and |E| the numbers of vertices and
edges. Section 4.2 of the paper:

    L_s(F) = Σ_v |f_v − p_v|², over the vertices of P            = ‖JF − P‖²
    L_h(F) = ½ Σ_u Σ_v a_uv |f_u − f_v|²                         = tr Fᵀ(D − A)F
    L(F)   = γ_s L_s + γ_h L_h,   γ_s = 1/|V|,   γ_h = 1/(4|E|)

The double sum counts every edge twice and the ½ compensates: L_h is the sum over edges, once each.

Where the paper leaves room, this module reads it as follows:

- |V| includes new vertices, although L_s has no term for them, because they have no previous vector.
- γ_h is printed as 1/|4E|. It is four times the number of edges, each counted once: the proof of Lemma 2 has
  1/(8|E|) before the double sum, which agrees. In a graph without edges L_h is 0 and so is γ_h.
- The paper has no weights. Here a_uv enters L_h while |E| remains a number of edges, so the unit of the weights decides
  how much homophily counts relative to smoothness; divide the weights by their mean to have it count as in an
  unweighted graph.
- The paper only adds vertices, so its J is the identity without the last rows. Here `rows` may state other rows of the
  vertices of P; a removed vertex is left out of P.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import RowArray

Matrix = NDArray[np.float64]

MAX_ASYMMETRY = 1e-6
"""Largest |a_uv − a_vu| relative to the largest weight; float32 weights may have been summed in two orders."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The two losses without weights, and their weighted sum."""

    smoothness: float
    homophily: float
    total: float


@dataclass(frozen=True, slots=True)
class LossWeights:
    """Weights of the two losses in their sum."""

    smoothness: float  # γ_s
    homophily: float  # γ_h

    @classmethod
    def from_graph(cls, adjacency: csr_array) -> LossWeights:
        """Return the weights of the paper for one graph: γ_s = 1/|V|, γ_h = 1/(4|E|)."""
        vertices, edges = adjacency.shape[0], count_edges(adjacency)
        return cls(1 / vertices if vertices else 0.0, 1 / (4 * edges) if edges else 0.0)


def count_edges(adjacency: csr_array) -> int:
    """Count the edges of a symmetric matrix, each once and without self-loops."""
    return (int(adjacency.count_nonzero()) - int(np.count_nonzero(adjacency.diagonal()))) // 2


def smoothness_loss(vectors: NDArray[Any], before: NDArray[Any], rows: RowArray | None = None) -> float:
    """Return L_s: the sum of squared distances between previous and current vectors of the same vertices.

    `rows` holds the current row of each vertex of `before`; by default the first rows.
    """
    current = vectors[: len(before)] if rows is None else vectors[rows]
    return float(np.square(np.subtract(current, before, dtype=np.float64)).sum())


def homophily_loss(vectors: NDArray[Any], adjacency: csr_array) -> float:
    """Return L_h: the weighted sum of squared distances along edges, each edge counted once."""
    return Objective(adjacency).loss(vectors).homophily


class Objective:
    """The weighted sum of the losses for one graph and one previous state.

    Without a previous state there is no smoothness loss (Eq. 1 of the paper).

    Parameters
    ----------
    adjacency : sparse array of shape (n, n)
        Symmetric matrix of weights.
    before : array of shape (m, k), optional
        Vectors of the previous state.
    rows : array of shape (m,), optional
        Current row of each vertex of `before`; by default the first m rows.
    weights : LossWeights, optional
        Weights of the two losses; by default those of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from ripplevec.lab.objective import Objective
    >>> path = csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> Objective(path).loss(np.array([[0.0], [1.0], [3.0]])).homophily
    5.0
    """

    def __init__(
        self,
        adjacency: csr_array,
        before: NDArray[Any] | None = None,
        rows: RowArray | None = None,
        *,
        weights: LossWeights | None = None,
    ) -> None:
        self.adjacency = _check_adjacency(adjacency)
        self.strength: Matrix = np.asarray(self.adjacency.sum(axis=1), np.float64).ravel()
        self.weights = LossWeights.from_graph(self.adjacency) if weights is None else weights
        self.before = None if before is None else np.asarray(before, np.float64)
        known = 0 if before is None else len(before)
        self.rows = np.arange(known) if rows is None else np.asarray(rows, np.int64)
        _check_rows(self.rows, known, self.vertices)

    @property
    def vertices(self) -> int:
        """Number of vertices |V|, which is the number of rows of F."""
        return int(self.adjacency.shape[0])

    @property
    def lipschitz_bound(self) -> float:
        """Lipschitz bound of the gradient: 2(γ_s + γ_h λ), as no eigenvalue λ of D − A exceeds 2 max d."""
        smoothness = self.weights.smoothness if self.rows.size else 0.0
        return 2 * (smoothness + self.weights.homophily * 2 * float(self.strength.max(initial=0.0)))

    def loss(self, vectors: NDArray[Any]) -> Loss:
        """Return both losses and their weighted sum."""
        return self.loss_and_gradient(vectors)[0]

    def gradient(self, vectors: NDArray[Any]) -> Matrix:
        """Return the derivative of the weighted sum by F: 2γ_s Jᵀ(JF − P) + 2γ_h (D − A)F."""
        return self.loss_and_gradient(vectors)[1]

    def loss_and_gradient(self, vectors: NDArray[Any]) -> tuple[Loss, Matrix]:
        """Return losses and gradient, at the cost of one product with the adjacency matrix."""
        vectors = self._check_vectors(vectors)
        gradient = self.strength[:, None] * vectors - self.adjacency @ vectors
        # A sum of squares: negative values are rounding errors.
        homophily, smoothness = max(float(np.vdot(vectors, gradient)), 0.0), 0.0
        gradient *= 2 * self.weights.homophily
        if self.before is not None:
            moved = vectors[self.rows] - self.before
            smoothness = float(np.vdot(moved, moved))
            gradient[self.rows] += 2 * self.weights.smoothness * moved
        total = self.weights.smoothness * smoothness + self.weights.homophily * homophily
        return Loss(smoothness, homophily, total), gradient

    def _check_vectors(self, vectors: NDArray[Any]) -> Matrix:
        columns = "any number of" if self.before is None else self.before.shape[1]
        shape = np.shape(vectors)
        if len(shape) != 2 or shape[0] != self.vertices or shape[1] != getattr(self.before, "shape", shape)[1]:
            expected = f"one row for each of {self.vertices} vertices and {columns} columns"
            raise InvalidValueError.of("vectors", expected, f"an array of shape {shape}")
        return np.asarray(vectors, np.float64)


def _check_adjacency(adjacency: csr_array) -> csr_array:
    """Convert a matrix to CSR and check it; a copy, because duplicate entries are summed in place."""
    matrix = csr_array(adjacency, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    weights = matrix.data
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError.of("adjacency", "a square matrix", f"shape {matrix.shape}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidValueError.of("adjacency", "finite weights, none negative", weights.min())
    if abs(matrix - matrix.T).max() > MAX_ASYMMETRY * weights.max(initial=0.0):
        raise InvalidValueError.of("adjacency", "a symmetric matrix", "one with asymmetric weights")
    return matrix


def _check_rows(rows: RowArray, known: int, vertices: int) -> None:
    if rows.shape != (known,):
        raise InvalidValueError.of("rows", f"one row for each of the {known} previous vectors", rows.tolist())
    inside = rows.size == 0 or (rows.min() >= 0 and rows.max() < vertices)
    if not inside or np.unique(rows).size != rows.size:
        raise InvalidValueError.of("rows", f"different rows from 0 to {vertices - 1}", rows.tolist())
