"""What the paper minimizes: vectors that move little between two states and differ little along the edges.

F holds the vectors now, one row per vertex; P those of the state before; J picks the rows of the vertices of P out of
F; A is the weighted adjacency now, D its strengths, |V| and |E| its vertices and edges. Section 4.2 of the paper:

    L_s(F) = Σ_v |f_v − p_v|², over the vertices of P            = ‖JF − P‖²
    L_h(F) = ½ Σ_u Σ_v a_uv |f_u − f_v|²                         = tr Fᵀ(D − A)F
    L(F)   = γ_s L_s + γ_h L_h,   γ_s = 1/|V|,   γ_h = 1/(4|E|)

The double sum meets every edge twice and the ½ takes that back: L_h is the sum over edges, once each.

Our reading, where the paper leaves room:

- |V| counts the newcomers, though L_s has no term for them: they have nothing to be close to.
- γ_h is printed as 1/|4E|. It is four times the number of edges, each counted once: the proof of Lemma 2 has
  1/(8|E|) before the double sum, which agrees. Without an edge L_h is 0 and so is γ_h.
- The paper has no weights. Here a_uv enters L_h and |E| stays a number of edges, so the unit of the weights decides how
  much homophily counts beside smoothness; divide the weights by their mean to have it count as in a plain graph.
- The paper only adds vertices, so its J is the identity without the last rows. Here `rows` may say where else the
  vertices of P are; one that is gone is left out of P.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]

ONE_SIDED = (
    1e-6  # how far a_uv and a_vu may be apart, relative to the largest weight: float32 weights summed in two orders
)


@dataclass(frozen=True, slots=True)
class Loss:
    """The two losses as they are, and their weighted sum."""

    smoothness: float
    homophily: float
    total: float


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each loss counts in the sum."""

    smoothness: float  # γ_s
    homophily: float  # γ_h

    @classmethod
    def of(cls, adjacency: csr_array) -> Weights:
        """Those of the paper for one graph: γ_s = 1/|V|, γ_h = 1/(4|E|)."""
        vertices, edges = adjacency.shape[0], count_edges(adjacency)
        return cls(1 / vertices if vertices else 0.0, 1 / (4 * edges) if edges else 0.0)


def count_edges(adjacency: csr_array) -> int:
    """How many edges a symmetric matrix holds, each counted once and self-loops not at all."""
    return (int(adjacency.count_nonzero()) - int(np.count_nonzero(adjacency.diagonal()))) // 2


def smoothness(vectors: NDArray[Any], before: NDArray[Any], rows: Rows | None = None) -> float:
    """L_s: the squared distances between the vectors before and those of the same vertices now, summed.

    `rows` says which row each vertex of `before` has now; the first ones if not given.
    """
    now = vectors[: len(before)] if rows is None else vectors[rows]
    return float(np.square(np.subtract(now, before, dtype=np.float64)).sum())


def homophily(vectors: NDArray[Any], adjacency: csr_array) -> float:
    """L_h: the squared distances along the edges, times their weights, summed over edges once each."""
    return Objective(adjacency).loss(vectors).homophily


class Objective:
    """The weighted sum for one graph and one state before it; without one there is no smoothness loss (Eq. 1)."""

    def __init__(
        self,
        adjacency: csr_array,
        before: NDArray[Any] | None = None,
        rows: Rows | None = None,
        *,
        weights: Weights | None = None,
    ) -> None:
        self.adjacency = _checked(adjacency)
        self.strength: Matrix = np.asarray(self.adjacency.sum(axis=1), np.float64).ravel()
        self.weights = Weights.of(self.adjacency) if weights is None else weights
        self.before = None if before is None else np.asarray(before, np.float64)
        known = 0 if before is None else len(before)
        self.rows = np.arange(known) if rows is None else np.asarray(rows, np.int64)
        _check_rows(self.rows, known, self.vertices)

    @property
    def vertices(self) -> int:
        """|V|: how many rows F has."""
        return int(self.adjacency.shape[0])

    @property
    def steepness(self) -> float:
        """A bound on how fast the gradient changes: 2(γ_s + γ_h λ), as no eigenvalue λ of D − A exceeds 2 max d."""
        moved = self.weights.smoothness if self.rows.size else 0.0
        return 2 * (moved + self.weights.homophily * 2 * float(self.strength.max(initial=0.0)))

    def loss(self, vectors: NDArray[Any]) -> Loss:
        """Both losses and their weighted sum."""
        return self.loss_and_gradient(vectors)[0]

    def gradient(self, vectors: NDArray[Any]) -> Matrix:
        """The derivative of the weighted sum by F: 2γ_s Jᵀ(JF − P) + 2γ_h (D − A)F."""
        return self.loss_and_gradient(vectors)[1]

    def loss_and_gradient(self, vectors: NDArray[Any]) -> tuple[Loss, Matrix]:
        """Both, for the price of one product with the adjacency."""
        vectors = self._as_rows(vectors)
        gradient = self.strength[:, None] * vectors - self.adjacency @ vectors
        # It is a sum of squares: what rounding puts below zero is zero.
        homophily, smoothness = max(float(np.vdot(vectors, gradient)), 0.0), 0.0
        gradient *= 2 * self.weights.homophily
        if self.before is not None:
            moved = vectors[self.rows] - self.before
            smoothness = float(np.vdot(moved, moved))
            gradient[self.rows] += 2 * self.weights.smoothness * moved
        total = self.weights.smoothness * smoothness + self.weights.homophily * homophily
        return Loss(smoothness, homophily, total), gradient

    def _as_rows(self, vectors: NDArray[Any]) -> Matrix:
        columns = "any number of" if self.before is None else self.before.shape[1]
        shape = np.shape(vectors)
        if len(shape) != 2 or shape[0] != self.vertices or shape[1] != getattr(self.before, "shape", shape)[1]:
            expected = f"one row for each of {self.vertices} vertices and {columns} columns"
            raise InvalidValueError.of("vectors", expected, f"an array of shape {shape}")
        return np.asarray(vectors, np.float64)


def _checked(adjacency: csr_array) -> csr_array:
    """The caller's matrix as one that products are quick with; a copy, as repeated entries are added up in place."""
    matrix = csr_array(adjacency, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    weights = matrix.data
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError.of("adjacency", "a square matrix", f"one of shape {matrix.shape}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidValueError.of("adjacency", "finite weights, none of them negative", weights.min())
    if abs(matrix - matrix.T).max() > ONE_SIDED * weights.max(initial=0.0):
        raise InvalidValueError.of("adjacency", "a symmetric matrix", "one whose edges differ by direction")
    return matrix


def _check_rows(rows: Rows, known: int, vertices: int) -> None:
    if rows.shape != (known,):
        raise InvalidValueError.of("rows", f"one row for each of the {known} vectors before", rows.tolist())
    inside = rows.size == 0 or (rows.min() >= 0 and rows.max() < vertices)
    if not inside or np.unique(rows).size != rows.size:
        raise InvalidValueError.of("rows", f"different rows from 0 to {vertices - 1}", rows.tolist())
