"""The vectors of a growing graph: one row beside each row of the graph."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.graph import Delta, Graph
from ripplevec.util.growable_array import Growing


class Lineage:
    """What a field and its copies have in common: an index of one is an index of the other."""


class Field:
    """Vectors by row; which of them have been placed is noted beside what else is known of a vertex.

    Half-precision rows are float16 to everybody but the kernels, which see their bits in `cells`.
    """

    def __init__(self, graph: Graph, dim: int, kind: Any, directory: str | PathLike[str] | None = None) -> None:
        self.graph, self._dim, self._kind, self._directory = graph, dim, kind, directory
        self.lineage = Lineage()
        self.take(self.empty())

    def empty(self) -> Growing:
        """Rows of the same kind, in the same place, none yet."""
        return Growing(self._kind, (self._dim,), directory=self._directory)

    def filled(self, rows: NDArray[Any]) -> Growing:
        """The same kind of rows, with these numbers."""
        own = self.empty()
        own.grow(len(rows))[:] = rows
        return own

    def grow(self) -> None:
        """Have a row for every row of the graph."""
        if len(self.vectors) < self.graph.adjacency.rows:
            self.take(self._rows)

    def expect(self, newcomers: int, rows: Growing | None = None) -> None:
        """Have room on the disk, where rows lie there, before a batch is applied: afterwards it would be too late."""
        if self._directory is not None:
            (self._rows if rows is None else rows).grow(self.graph.adjacency.rows + newcomers)

    def take(self, rows: Growing) -> None:
        """Have these rows from now on."""
        self._rows = rows
        self.vectors: NDArray[Any] = rows.grow(self.graph.adjacency.rows)
        self.cells = self.as_cells(self.vectors)

    @staticmethod
    def as_cells(rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the kernels see them."""
        return rows.view(np.uint16) if rows.dtype == np.float16 else rows

    def on(self, graph: Graph) -> Field:
        """Vectors of the same kind for another graph, all zero."""
        return Field(graph, self._dim, self._kind, self._directory)

    def copy(self, graph: Graph) -> Field:
        """The same vectors for a copy of the graph, in an array of their own."""
        other = self.on(graph)
        other.vectors[: graph.rows] = self.vectors[: graph.rows]
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

    def follow(self, delta: Delta) -> Delta:
        """Keep up with a step of the graph: rows for newcomers, nothing left of those who went."""
        self.grow()
        if delta.vacated.size:
            self.vectors[delta.vacated] = 0
            self.placed[delta.vacated] = 0
        return delta
