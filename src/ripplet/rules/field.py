"""The vectors of a growing graph: one row beside each row of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.graph.adjacency import grown
from ripplet.graph.graph import Delta, Graph


class Field:
    """Vectors, and which of them have been placed, by row."""

    def __init__(self, graph: Graph, dim: int, kind: Any) -> None:
        self.graph = graph
        self.vectors: NDArray[Any] = np.zeros((0, dim), kind)
        self.placed: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.seen: NDArray[np.int64] = np.zeros(0, np.int64)  # stamps: who has been reached in this batch
        self.grow()

    def grow(self) -> None:
        """Have a row for every row of the graph."""
        size = self.graph.adjacency.rows
        if self.placed.size < size:
            self.vectors = grown(self.vectors, size)
            self.placed = grown(self.placed, size)
            self.seen = grown(self.seen, size)

    def follow(self, delta: Delta) -> Delta:
        """Keep up with a step of the graph: rows for newcomers, nothing left of those who went."""
        self.grow()
        if delta.vacated.size:
            self.vectors[delta.vacated] = 0
            self.placed[delta.vacated] = 0
        return delta
