"""Rule `paper` on shards: the driver applies a batch arrival by arrival, and reads the few rows that each one needs.

`RemoteArrivalGraph` and `RemoteStore` stand for the graph and the vectors on the shards, so that the rule itself is the
one of a single machine. Rows are row codes. An arrival takes about thirty calls to all shards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, IdColumn, Op, ids_to_list, take_ids
from ripplevec.cluster.ingestion import NO_PAIRS, NO_ROWS
from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.graph.graph import GraphDelta
from ripplevec.influence.cascade import RemoteCascadeGraph, spread_by_reads
from ripplevec.rules.vector_store import VectorStore

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine


class RemoteColumn:
    """An attribute of all rows, read and written by row code like an array."""

    def __init__(self, engine: ClusterEngine, attribute: str) -> None:
        self._engine, self._attribute = engine, attribute

    def __getitem__(self, rows: Any) -> Any:
        rows = np.asarray(rows, np.int64)
        return self._engine.read_rows(rows.reshape(-1), self._attribute).reshape(rows.shape)[()]

    def __setitem__(self, row: int, value: int) -> None:
        self._engine.query_rows("write_rows", np.array([row]), np.array([value]), attribute=self._attribute)

    def any(self) -> bool:
        """Return whether a vertex is placed."""
        return self._engine.sizes()["unplaced"] < len(self._engine)


class RemoteAdjacency:
    """The neighbors of row codes."""

    def __init__(self, engine: ClusterEngine) -> None:
        self._engine = engine

    @property
    def capacity(self) -> int:
        """A number above all row codes."""
        return max(self._engine.query("count_rows")) * self._engine.transport.size

    def neighbors(self, row: int) -> RowArray:
        """Return the neighbors of a row in the order in which the edges arrived."""
        return self._engine.read_edges(np.array([row]), "neighbor")


class RemoteArrivalGraph(RemoteCascadeGraph):
    """The graph on the shards, changed arrival by arrival from the driver."""

    def __init__(self, engine: ClusterEngine) -> None:
        super().__init__(directed=engine.parameters.directed, duplicates=engine.parameters.duplicates)
        self._engine, self.next_arrival = engine, engine.next_arrival
        self.adjacency = cast(Adjacency, RemoteAdjacency(engine))
        self._arrival = cast(NDArray[np.int64], RemoteColumn(engine, "arrival"))

    @property
    def arrival(self) -> NDArray[np.int64]:
        """Arrival number of the vertex of each row; −1 if the row is free."""
        return self._arrival

    def apply_start(self, batch: Batch) -> None:
        """Apply a batch in the order of arrivals, but at once: nothing reads the graph in between."""
        op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        if (op == Op.REMOVE_VERTEX).any():
            for _ in self.apply(batch, one_by_one=True):
                pass
            return
        pairs, arrived = self._intern(batch.src, batch.dst)
        _, order = self._order_by_arrival(op, pairs, self.next_arrival - arrived.size)
        weight = None if batch.weight is None else batch.weight[order]
        ends = take_ids(batch.src, order), take_ids(batch.dst, order)
        self._engine.run_batch(Batch.from_checked_columns(*ends, weight, op[order]))

    def run_cascade(self, source: int, depth: int, key: np.uint64) -> tuple[RowArray, NDArray[np.int64]]:
        """Return the rows influenced by `source`, and the bounds of the rounds."""
        engine, row = self._engine, np.array([source])
        edges = engine.read_edges(row, "neighbor"), engine.read_edges(row, "outgoing")
        read_in_strength = partial(engine.read_rows, attribute="in_strength")
        return spread_by_reads(engine, int(self.arrival[source]), edges, depth, key, read_in_strength, row)

    def _intern(self, src: IdColumn, dst: IdColumn) -> tuple[NDArray[np.int64], RowArray]:
        """Return the rows of both endpoints, adding vertices that are new, and the rows of the new vertices."""
        op = np.full(len(src), Op.VERTEX, np.int8)
        arrived, _ = self._engine.run_batch(Batch.from_checked_columns(src, dst, op=op))
        self.next_arrival = self._engine.next_arrival
        pairs = np.column_stack([self._engine.find_rows(column) for column in (src, dst)])
        return pairs, arrived[np.argsort(self.arrival[arrived])]

    def _apply_rows(
        self, arrived: RowArray, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32]
    ) -> GraphDelta:
        src, dst = (self._engine.id_column_of(rows) for rows in pairs.T)
        return self._run_batch(Batch.from_checked_columns(src, dst, weight.astype(np.float64), op), arrived)

    def _remove_vertex(self, vertex: IdColumn) -> GraphDelta:
        """Remove the vertex of a column with one id, and its edges."""
        removal = Batch.vertices(vertex, Op.REMOVE_VERTEX)
        return self._run_batch(removal, NO_ROWS)._replace(removed_ids=ids_to_list(vertex))

    def _run_batch(self, batch: Batch, arrived: RowArray) -> GraphDelta:
        """Apply a batch to the graph; return what rule `paper` and the counters need to know of its changes."""
        _, changed_edges = self._engine.run_batch(batch)
        return GraphDelta(arrived, NO_PAIRS, NO_PAIRS, np.ones((changed_edges, 2)), NO_ROWS, [])


class RemoteStore:
    """The vectors on the shards, as rule `paper` uses them."""

    def __init__(self, engine: ClusterEngine, graph: RemoteArrivalGraph) -> None:
        self._engine, self.graph, self.placed = engine, graph, RemoteColumn(engine, "placed")

    def update_rows(self, action: Callable[[NDArray[Any], int, RowArray], None], row: int, others: RowArray) -> None:
        """Apply an action to copies of the vectors of a row and of other rows, and write them back."""
        rows = np.append(row, others)
        vectors = self._engine.read_rows(rows, "vectors")
        action(vectors, 0, np.arange(1, rows.size))
        self._engine.query_rows("write_rows", rows, vectors, attribute="vectors")


def apply_one_by_one(engine: ClusterEngine, graph: RemoteArrivalGraph, batch: Batch) -> tuple[RowArray, list[Any], int]:
    """Apply a batch arrival by arrival; return moved rows, removed ids and the number of changed edges."""
    store = cast(VectorStore, RemoteStore(engine, graph))
    moved, removed, edges = [NO_ROWS], list[Any](), 0
    for delta in graph.apply(batch, one_by_one=True):
        moved.append(engine.rule.apply(store, delta, engine.sequence + 1))
        removed += delta.removed_ids
        edges += int(np.count_nonzero(delta.changed_share[:, 0]))
    rows = np.unique(np.concatenate(moved))
    return rows[graph.arrival[rows] >= 0], removed, edges
