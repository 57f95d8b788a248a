"""The protocol that every update rule implements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta
from ripplevec.influence.cascade import RowReads
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.base import Progress


class PreviewReads(RowReads, Protocol):
    """Reads of a state, which may be distributed, that a preview needs."""

    def store_with(self, rows: RowArray) -> tuple[VectorStore, RowArray]:
        """Return a store that contains these rows, and their positions in it."""


class Rule(Protocol):
    """How vectors are initialized, how they move with each change of the graph, and how all of them are corrected.

    Rows are in internal coordinates; `to_served` converts them to the vectors that users get. `sequence` is the number
    of the current batch, `threshold` a distance between served vectors.
    """

    one_by_one: ClassVar[bool]  # whether a batch is applied arrival by arrival
    rows_shortened: int  # number of rows that exceeded the length bound in the last batch and were shortened

    @property
    def precision(self) -> type[np.floating[Any]]:
        """Floating-point type of stored rows."""

    @property
    def ready(self) -> bool:
        """Whether arrivals can be placed, that is, whether there has been a start."""

    @property
    def scaling(self) -> ViewScaling:
        """Scaling of rows before they are compared."""

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Embed the current graph from scratch."""

    def apply(self, store: VectorStore, delta: GraphDelta, sequence: int) -> RowArray:
        """Move vectors after a change of the graph; return the rows that may have moved."""

    def apply_arrival(
        self, store: VectorStore, ids: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, RowArray]:
        """Add the first vertex of `ids` with edges to the others: change the graph and move the vectors.

        Returns its row, the number of changed edges and the rows that may have moved. The row is −1, and nothing has
        changed, if the rule has no fast path for this arrival; the caller then changes the graph and calls `apply`.
        """

    def anchor(self, store: VectorStore, sequence: int, threshold: float) -> RowArray:
        """Correct all vectors; return the rows whose served vector moved by more than the threshold."""

    def reset(self, store: VectorStore) -> None:
        """Return to the state before the start if no vectors are left; called when the graph has lost its last edge."""

    def preview(self, reads: PreviewReads, neighbors: RowArray, weights: NDArray[np.float32]) -> NDArray[Any]:
        """Return the row that a new vertex with these edges would get; zero if it could not be placed."""

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Convert internal rows to served vectors."""

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """Return `to_served` with the current coordinates, unaffected by later anchors."""

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Rotate served vectors back to the axes of internal rows; the scaling of served vectors remains."""

    def orthogonality_error(self, store: VectorStore) -> float:
        """Return how far the inner products of columns deviate from their intended values."""

    def copy(self) -> Rule:
        """Return an independent copy of the rule."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of the rule as arrays, for saving."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
