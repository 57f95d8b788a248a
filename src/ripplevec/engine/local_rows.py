"""Access to the rows of a state in the memory of this process: of an engine, of its snapshot, or of one shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph


class LocalRows:
    """A graph with its vectors, and reads of some of its rows."""

    graph: Graph

    @property
    def vectors(self) -> NDArray[Any]:
        """The stored vectors of all rows."""
        raise NotImplementedError

    @property
    def next_arrival(self) -> int:
        """Arrival number of the next new vertex."""
        return self.graph.next_arrival

    def find_rows(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices, −1 for unknown ones."""
        return self.graph.ids.find_rows(column)

    def rows_by_arrival(self, select: Callable[[RowArray], NDArray[np.bool_]] | None = None) -> RowArray:
        """Return the rows of all vertices, or of those whose arrival numbers `select` marks, in order of arrival."""
        return self.graph.rows_by_arrival(select)

    def id_column_of(self, rows: RowArray) -> IdColumn:
        """Return the ids of rows as a column."""
        return self.graph.ids.to_column(rows)

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of each row.

        `attribute` is "vectors" (as stored), "placed", "arrival", "degree", "strength" or "in_strength".
        """
        return self._column(attribute)[rows]

    def read_row(self, row: int, attributes: Sequence[str]) -> list[Any]:
        """Return some attributes of one row, as numbers; see `read_rows`."""
        return [self._column(attribute)[row] for attribute in attributes]

    def _column(self, attribute: str) -> NDArray[Any]:
        if attribute == "vectors":
            return self.vectors
        adjacency = self.graph.adjacency
        column: NDArray[Any] = getattr(adjacency if attribute in ("placed", "arrival") else adjacency.links, attribute)
        return column

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of all edges of rows, row by row.

        `attribute` is "neighbor" (its row), or one of the stored weights: "weight", "outgoing" or "incoming".
        """
        return self._read_slots(self.graph.adjacency.slots(rows), attribute)

    def list_neighbors(self, row: int, limit: int | None) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the neighbors of a row and the stored edge weights, latest edge first: all, or `limit` of them."""
        slots = self.graph.adjacency.slots(np.array([row]))[::-1][:limit]
        return self._read_slots(slots, "neighbor"), self._read_slots(slots, "weight")

    def sizes(self) -> dict[str, int]:
        """Return counts and bytes; those of all shards add up to those of the model."""
        rows = self.graph.row_count
        degree, vectors = self.graph.adjacency.links.degree[:rows], self.vectors[:rows]
        unplaced = (self.graph.arrival[:rows] >= 0) & (self.graph.adjacency.placed[:rows] == 0)
        return {
            "with_edges": int(np.count_nonzero(degree)),
            "unplaced": int(np.count_nonzero(unplaced)),
            "bytes": self.graph.ids.nbytes + self.graph.adjacency.nbytes + vectors.nbytes,
        }

    def _read_slots(self, slots: RowArray, attribute: str) -> NDArray[Any]:
        values: NDArray[Any] = getattr(self.graph.adjacency.links, attribute)[slots]
        return values.astype(np.int64) if attribute == "neighbor" else values
