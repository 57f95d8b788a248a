"""What every rule can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.graph.graph import GraphDelta
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.base import Progress

Rows = NDArray[np.int64]


class Rule(Protocol):
    """How vectors move: at the start, with every step of the graph, and when all of them are corrected."""

    one_by_one: ClassVar[bool]  # whether a batch is a sequence of arrivals, each acting before the next is known
    rows_shortened: int  # rows that the last batch made longer than they may be, and that were therefore scaled back

    @property
    def precision(self) -> type[np.floating[Any]]:
        """What rows are stored as."""

    @property
    def ready(self) -> bool:
        """Whether arrivals can be placed: there has been a start."""

    @property
    def scaling(self) -> ViewScaling:
        """How rows are scaled before they are compared."""

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Embed the graph as it is from nothing."""

    def apply(self, store: VectorStore, delta: GraphDelta, sequence: int) -> Rows:
        """Let a step of the graph move vectors; the rows that may have moved."""

    def apply_arrival(
        self, store: VectorStore, names: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, int]:
        """Let the first of `names` arrive with edges to the others, graph and all; its row, edges and rows changed.

        −1, with nothing done, where the rule has no quick way for it: then the graph is to be changed first.
        """

    def anchor(self, store: VectorStore, sequence: int, threshold: float) -> Rows:
        """Correct all vectors; the rows that moved more than the threshold."""

    def reset(self, store: VectorStore) -> None:
        """Begin anew, if nothing is left that could place a newcomer: the graph has lost its last edge."""

    def preview(self, store: VectorStore, neighbors: Rows, weights: NDArray[np.float32]) -> NDArray[Any]:
        """The row a newcomer with these edges would be given on arrival; zero where it could not be placed."""

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Inside rows as readers get them."""

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """`serve` as it is now, whatever anchors come later."""

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Served vectors in inside coordinates."""

    def orthogonality_error(self, store: VectorStore) -> float:
        """How far the columns are from the inner products they should have."""

    def copy(self) -> Rule:
        """A rule that has learned the same; what either learns from now on, the other does not."""

    def state(self) -> dict[str, NDArray[Any]]:
        """What the rule has learned, as arrays."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
