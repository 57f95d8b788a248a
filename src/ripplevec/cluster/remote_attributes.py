"""The attributes of a model on shards: the projection is on the driver, the parts are on the shards.

For an update, the driver copies the rows that may change, with their latest neighbors, to a small graph, updates them
as one machine does, and writes them back. Rows of the small graph are in order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes.kept import KeptAttributes
from ripplevec.attributes.store import (
    MAX_NEIGHBORS,
    REFRESHED_ROWS,
    AttributeSettings,
    AttributeStore,
    WeightChooser,
)
from ripplevec.attributes.table import NONE
from ripplevec.batch import AttributeRows
from ripplevec.cluster.driver_reads import MAX_GATHERED_EDGES, ShardReads, positions_of
from ripplevec.cluster.routing import split_positions
from ripplevec.graph.adjacency import MAX_ROWS, Adjacency, RowArray
from ripplevec.graph.graph import Graph
from ripplevec.util.growable_array import GrowableArray

NO_ROWS = np.empty(0, np.int64)
ALL_NEIGHBORS = MAX_ROWS


class RemoteAttributes(AttributeStore):
    """The projection of a model on shards, and updates of the parts on the shards.

    All rows are row codes. Parts, status and kept attributes are empty, except within an update.
    """

    def __init__(self, reads: ShardReads, settings: AttributeSettings) -> None:
        super().__init__(Graph(), settings)
        self._reads = reads

    def for_reads(self, reads: ShardReads) -> RemoteAttributes:
        """Return a copy of the projection for a snapshot of the shards."""
        copied = RemoteAttributes(reads, self.settings)
        copied.restore_projection(self.projection_state())
        return copied

    # ------------------------------------------------------------------ changes

    def clear(self, rows: RowArray) -> None:
        """Remove the parts of rows."""
        rows = rows[self._reads.read_rows(rows, "attribute_status") != NONE]
        if rows.size:
            with self._loaded(rows, 0) as codes:
                super().clear(positions_of(rows, codes))

    def set_start(self, rows: RowArray, attributes: AttributeRows, choose: WeightChooser | None = None) -> None:
        """Set the attributes of an initial graph, and the parts of the vertices without; then choose the weight."""
        with self._loaded(self._reads.rows_by_arrival(), ALL_NEIGHBORS) as codes:
            super().set_start(positions_of(rows, codes), attributes, choose)

    def choose_weight(self, choose: WeightChooser) -> bool:
        """Choose the weight if it is still to be chosen, unless the graph is too large for the driver."""
        if not (self.rows and self._may_choose and self._reads.edges <= MAX_GATHERED_EDGES):
            return False
        with self._loaded(self._reads.rows_by_arrival(), ALL_NEIGHBORS):
            return super().choose_weight(choose)

    def update(self, named: RowArray, rows: RowArray, attributes: AttributeRows | None) -> RowArray:
        """Set the attributes of rows, then continue the update of all parts; return the rows whose part moved."""
        named = np.union1d(rows, named[self._reads.read_rows(named, "attribute_status") == NONE])
        if not named.size:
            return NO_ROWS
        targets, limit = named, MAX_NEIGHBORS
        if attributes is not None:
            targets = np.concatenate([named, self._list_neighbors_without_part(rows), *self._list_refreshed(rows.size)])
            limit = ALL_NEIGHBORS if self._learns_at_once else MAX_NEIGHBORS
        with self._loaded(targets, limit) as codes:
            moved = super().update(positions_of(named, codes), positions_of(rows, codes), attributes)
            return codes[moved]

    def relearn(self) -> None:
        """Learn the projection again from all attributes, unless the graph is too large for the driver."""
        if self._reads.edges <= MAX_GATHERED_EDGES and self.rows:
            with self._loaded(self._reads.rows_by_arrival(), ALL_NEIGHBORS):
                super().relearn()

    def _list_neighbors_without_part(self, rows: RowArray) -> RowArray:
        neighbors = np.unique(self._reads.read_latest_edges(rows, limit=MAX_NEIGHBORS)[1])
        return neighbors[self._reads.read_rows(neighbors, "attribute_status") == NONE]

    def _list_refreshed(self, entered: int) -> list[RowArray]:
        """Return rows that an update may learn from or compute again, besides those it is given."""
        found = []
        if self._learns_at_once:
            found.append(self._reads.encode_rows(self._reads.query("list_attributed_rows")))
        if (first := self.refresh_position) >= 0:
            results = self._reads.query("list_arrivals", first=first, last=first + entered * REFRESHED_ROWS)
            found.append(self._reads.encode_rows(results))
        return found

    @property
    def _refresh_end(self) -> int:
        return self._reads.next_arrival

    def _rows_to_refresh(self, first: int, last: int) -> RowArray:
        """Return the rows between two arrival numbers."""
        arrival = self.graph.arrival[: self.graph.row_count]
        return np.flatnonzero((arrival >= first) & (arrival < last))

    # ------------------------------------------------------------------ copies of rows

    @contextmanager
    def _loaded(self, targets: RowArray, limit: int) -> Iterator[RowArray]:
        """Copy rows that may change, each with up to `limit` neighbors, and write them back at the end.

        Yields the row codes of all copies, in order of arrival.
        """
        targets = np.unique(targets)
        targets = targets[np.argsort(self._reads.arrival_numbers(targets))]
        codes = self._load(targets, *self._reads.read_latest_edges(targets, limit=limit))
        local = positions_of(targets, codes)
        parts, positions = self._reads.query_rows("read_kept", targets)
        for kept, part in zip(parts, positions, strict=True):
            self.kept.set_all(local[part], kept["begin"], kept["columns"], kept["values"])
        yield codes
        self._write(targets, local)
        self._replace_graph(Graph())

    def _load(self, targets: RowArray, degree: RowArray, neighbors: RowArray, weights: NDArray[np.float32]) -> RowArray:
        reads = self._reads
        codes = np.union1d(targets, neighbors)
        numbers = reads.arrival_numbers(codes)
        order = np.argsort(numbers)
        codes, numbers = codes[order], numbers[order]
        degrees = np.zeros(codes.size, np.int64)
        degrees[positions_of(targets, codes)] = degree
        packed: dict[str, NDArray[Any]] = {
            "degree": degrees,
            "neighbor": positions_of(neighbors, codes).astype(np.int32),
            "weight": weights,
            "strength": reads.read_rows(codes, "strength"),
        }
        graph, rows = Graph(), slice(codes.size)
        graph.ids.intern(codes, codes)
        graph.adjacency = Adjacency.from_packed(packed, directed=False, duplicates="add")
        graph.adjacency.ensure_rows(codes.size)
        graph.arrival[rows] = numbers
        self._replace_graph(graph)
        self.parts[rows], self.status[rows] = (
            reads.read_rows(codes, "attribute_parts"),
            reads.read_rows(codes, "attribute_status"),
        )
        return codes

    def _replace_graph(self, graph: Graph) -> None:
        self.graph, self.kept = graph, KeptAttributes()
        self._parts, self._status = GrowableArray(np.float32, (self.columns,)), GrowableArray(np.uint8)
        self.grow()

    def _write(self, targets: RowArray, local: RowArray) -> None:
        """Write the parts of rows to their shards."""
        shards = self._reads.transport.size
        positions = split_positions(targets, shards)
        rows, kept = [targets[part] // shards for part in positions], [self.kept.gather(local[p]) for p in positions]
        parts, status = ([column[local[p]] for p in positions] for column in (self.parts, self.status))
        self._reads.query("write_attributes", rows, parts, status, kept)
