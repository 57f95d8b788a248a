"""The attribute parts of the vertices of one shard: reads, writes by the driver, and searches.

The driver computes all parts (`remote_attributes.py`). A shard stores them with its rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes._kernels import OWN
from ripplevec.attributes.table import AttributeTable
from ripplevec.batch import IdColumn
from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.engine.attributed_reads import PREFIX, search_joined, search_own_parts
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph, strip_prefix
from ripplevec.parameters import Parameters

Found = tuple[RowArray, NDArray[np.float32], RowArray]
"""Rows, their cosines, and their arrival numbers."""


class ShardAttributes(ShardGraph):
    """The graph, the vectors and, in a model with attributes, the attribute parts of one shard."""

    def __init__(self, index: int, shards: int, parameters: Parameters) -> None:
        super().__init__(index, shards, parameters.edge_parameters)
        columns = parameters.resolved_attribute_dim
        self.attributes = AttributeTable(self.graph, columns) if columns else None

    @property
    def _table(self) -> AttributeTable:
        assert self.attributes is not None
        return self.attributes

    def intern(self, ids: IdColumn) -> RowArray:
        """Return the rows of ids that belong to this shard; unknown ids get a new row."""
        rows = super().intern(ids)
        if self.attributes is not None:
            self.attributes.grow()
        return rows

    # ------------------------------------------------------------------ reads and writes by the driver

    def _column(self, attribute: str) -> NDArray[Any]:
        return self._table.column(attribute) if attribute.startswith("attribute_") else super()._column(attribute)

    def list_latest_edges(self, rows: RowArray, limit: int) -> tuple[RowArray, RowArray, NDArray[np.float32]]:
        """Return the latest edges of rows, at most `limit` of each: their numbers, neighbors and stored weights."""
        adjacency = self.graph.adjacency
        slots, degree = adjacency.slots(rows), adjacency.links.degree[rows].astype(np.int64)
        remaining = np.repeat(np.cumsum(degree), degree) - np.arange(slots.size)  # edges of the row from this one on
        slots, counts = slots[remaining <= limit], np.minimum(degree, limit)
        return counts, self._read_slots(slots, "neighbor"), self._read_slots(slots, "weight")

    def list_attributed_rows(self) -> RowArray:
        """Return the rows with attributes."""
        return np.flatnonzero(self._table.status[: self.graph.row_count] == OWN)

    def list_arrivals(self, first: int, last: int) -> RowArray:
        """Return the rows with arrival numbers from `first` to `last` − 1."""
        arrival = self.graph.arrival[: self.graph.row_count]
        return np.flatnonzero((arrival >= first) & (arrival < last))

    def read_kept(self, rows: RowArray) -> dict[str, NDArray[Any]]:
        """Return the attributes that are kept for rows; see `KeptAttributes.gather`."""
        return self._table.kept.gather(rows)

    def write_attributes(
        self, rows: RowArray, parts: NDArray[np.float32], status: NDArray[np.uint8], kept: dict[str, NDArray[Any]]
    ) -> None:
        """Replace the attribute parts of rows, their status, and the attributes that are kept."""
        table = self._table
        table.parts[rows], table.status[rows] = parts, status
        begin = kept["begin"].tolist()
        for position, row in enumerate(rows.tolist()):
            entries = slice(begin[position], begin[position + 1])
            table.kept.set(row, kept["columns"][entries], kept["values"][entries])

    # ------------------------------------------------------------------ searches

    def search_joined(self, excluded: int, query: NDArray[np.float64], count: int, weight: float) -> Found:
        """Return the rows of highest cosine with a whole vector, without `excluded` (−1: none)."""
        found = search_joined(self.store, self.rule.scaling, self._table, weight, query, count, excluded)
        return *found, self.graph.arrival[found[0]]

    def search_parts(self, excluded: int, part: NDArray[np.float32], count: int) -> Found:
        """Return the rows of highest cosine with an attribute part, without `excluded` (−1: none)."""
        found = search_own_parts(self._table, part, count, excluded)
        return *found, self.graph.arrival[found[0]]

    # ------------------------------------------------------------------ the whole shard

    def sizes(self) -> dict[str, int]:
        """Return counts whose sums over all shards describe the model."""
        sizes, table = super().sizes(), self.attributes
        if table is None:
            return sizes
        return sizes | {"unplaced": table.count_unplaced(self.store.placed), "bytes": sizes["bytes"] + table.nbytes}

    def copy_attributes(self, graph: Graph) -> AttributeTable | None:
        """Return an independent copy of the attribute parts for a copy of the graph."""
        if self.attributes is None:
            return None
        copied = AttributeTable(graph, self.attributes.columns)
        copied.restore(self.attributes.state())
        return copied

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of this shard as plain arrays."""
        saved = {} if self.attributes is None else self.attributes.state()
        return super().state() | {f"{PREFIX}{name}": array for name, array in saved.items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state of this shard by one that `state` returned."""
        super().restore(state)
        if self.attributes is not None:
            self.attributes = AttributeTable(self.graph, self.attributes.columns)
            self.attributes.restore(strip_prefix(PREFIX, state))
