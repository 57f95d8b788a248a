"""The vectors of a growing graph: one row beside each row of the graph."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.graph import Graph, GraphDelta
from ripplevec.util.growable_array import GrowableArray


class Lineage:
    """What a store and its copies have in common: an index of one is an index of the other."""


class VectorStore:
    """Vectors by row; which of them have been placed is noted beside what else is known of a vertex.

    Half-precision rows are float16 to everybody but the kernels, which see their bits in `cells`.
    """

    def __init__(self, graph: Graph, dim: int, kind: Any, directory: str | PathLike[str] | None = None) -> None:
        self.graph, self._dim, self._kind, self._directory = graph, dim, kind, directory
        self.lineage = Lineage()
        self.replace_rows(self.new_rows())

    def new_rows(self) -> GrowableArray:
        """Rows of the same kind, in the same place, none yet."""
        return GrowableArray(self._kind, (self._dim,), directory=self._directory)

    def make_rows(self, rows: NDArray[Any]) -> GrowableArray:
        """The same kind of rows, with these numbers."""
        own = self.new_rows()
        own.grow(len(rows))[:] = rows
        return own

    def grow(self) -> None:
        """Have a row for every row of the graph."""
        if len(self.vectors) < self.graph.adjacency.capacity:
            self.replace_rows(self._rows)

    def reserve(self, newcomers: int, rows: GrowableArray | None = None) -> None:
        """Have room on the disk, where rows lie there, before a batch is applied: afterwards it would be too late."""
        if self._directory is not None:
            (self._rows if rows is None else rows).grow(self.graph.adjacency.capacity + newcomers)

    def replace_rows(self, rows: GrowableArray) -> None:
        """Have these rows from now on."""
        self._rows = rows
        self.vectors: NDArray[Any] = rows.grow(self.graph.adjacency.capacity)
        self.kernel_array = self.as_kernel_array(self.vectors)

    @staticmethod
    def as_kernel_array(rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the kernels see them."""
        return rows.view(np.uint16) if rows.dtype == np.float16 else rows

    def empty_for(self, graph: Graph) -> VectorStore:
        """Vectors of the same kind for another graph, all zero."""
        return VectorStore(graph, self._dim, self._kind, self._directory)

    def copy(self, graph: Graph) -> VectorStore:
        """The same vectors for a copy of the graph, in an array of their own."""
        other = self.empty_for(graph)
        other.vectors[: graph.row_count] = self.vectors[: graph.row_count]
        other.lineage = self.lineage
        return other

    @property
    def placed(self) -> NDArray[np.uint8]:
        """Whether a row has a vector."""
        return self.graph.adjacency.placed

    @property
    def seen(self) -> NDArray[np.int64]:
        """Stamps: who has been reached in this batch."""
        return self.graph.adjacency.seen

    def apply_delta(self, delta: GraphDelta) -> GraphDelta:
        """Keep up with a step of the graph: rows for newcomers, nothing left of those who went."""
        self.grow()
        if delta.vacated_rows.size:
            self.vectors[delta.vacated_rows] = 0
            self.placed[delta.vacated_rows] = 0
        return delta
