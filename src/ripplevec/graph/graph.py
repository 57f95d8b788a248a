"""Growing graph with vertex ids: applies validated batches and reports every change as a `GraphDelta`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, take_ids
from ripplevec.errors import RipplevecError, SelfLoopWarning, UnknownVertexError
from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.graph.id_table import IdTable

_NO_ROWS = np.empty(0, np.int64)
_NO_PAIRS = np.empty((0, 2), np.int64)
_SMALL_BATCH = 256
MIN_EDGES_FOR_THREADS = 8_192  # for smaller batches, waking threads takes as long as they save
_ADD_OPS, _UNIT_WEIGHTS = np.zeros(_SMALL_BATCH, np.int8), np.ones(_SMALL_BATCH, np.float32)


class GraphDelta(NamedTuple):
    """Changes that one step made to a graph, by row."""

    arrived: RowArray  # rows of new vertices, in order of arrival
    pairs: NDArray[np.int64]  # (m, 2): rows of both endpoints of each edge operation, in order, also without effect
    arrival_numbers: NDArray[np.int64]  # (m, 2): arrival numbers of these endpoints at that moment
    changed_share: NDArray[np.float64]  # (m, 2): share of each endpoint's strength that changed; 0 without effect
    vacated_rows: RowArray  # rows whose vertex was removed; a new vertex may already have reused one of them
    removed_ids: list[Id]  # ids of the removed vertices


def merge_deltas(steps: Sequence[GraphDelta]) -> GraphDelta:
    """Merge the changes of several steps into one delta."""
    if not steps:
        return GraphDelta(_NO_ROWS, _NO_PAIRS, _NO_PAIRS, _NO_PAIRS.astype(np.float64), _NO_ROWS, [])
    *columns, removed = zip(*steps, strict=True)
    return GraphDelta._make([*map(np.concatenate, columns), [vertex for ids in removed for vertex in ids]])


class Graph:
    """A growing graph: vertex ids, their rows, their arrival numbers, and the edges between rows."""

    def __init__(self, *, directed: bool = False, duplicates: str = "add", threads: int = 1) -> None:
        self.threads = threads  # for large batches; does not change the result
        self.ids = IdTable()
        self.adjacency = Adjacency(directed=directed, duplicates=duplicates)
        self.next_arrival = 0
        self.edges_expire = False  # if True, removing an edge that has already expired is not an error
        self._warned = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def arrival(self) -> NDArray[np.int64]:
        """Arrival number of the vertex of each row; −1 if the row is free."""
        return self.adjacency.arrival

    @property
    def row_count(self) -> int:
        """Number of rows ever used; every vertex has a row below this."""
        return self.ids.row_count

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.adjacency.directed

    def rows_of(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices; raise `UnknownVertexError` with the ids that are not in the graph."""
        rows = self.ids.find_rows(column)
        if rows.size and rows.min() < 0:
            raise UnknownVertexError(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
        return rows

    def rows_by_arrival(self, wanted: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None) -> RowArray:
        """Return the rows of vertices in order of arrival: all, or those whose arrival numbers satisfy `wanted`."""
        arrival = self.arrival[: self.row_count]
        alive = arrival >= 0
        rows = np.flatnonzero(alive if wanted is None else alive & wanted(arrival))
        return rows[np.argsort(arrival[rows], kind="stable")]

    def adjacency_by_arrival(self) -> tuple[Adjacency, RowArray | None]:
        """Return the adjacency with rows in order of arrival, and the original rows; None if already in order.

        In this order, the initial embedding does not depend on which free rows the vertices were given.
        """
        order = self.rows_by_arrival()
        if np.array_equal(order, np.arange(self.row_count)):
            return self.adjacency, None
        return self.adjacency.reorder(order), order

    def prefetch_batch(self, batch: Batch) -> None:
        """Do nothing: a local graph answers `has_vertex` and `has_edge` without fetching anything."""

    def has_vertex(self, vertex: Id) -> bool:
        """Return whether a vertex exists."""
        return vertex in self.ids

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Return whether an edge exists (from src to dst if directed), or may have existed and expired."""
        rows = self.ids.find_row(src), self.ids.find_row(dst)
        return min(rows) >= 0 and (self.edges_expire or self.adjacency.has_edge(*rows))

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, for each pair of rows, whether an edge exists, or may have existed and expired."""
        return np.ones(src.size, np.bool_) if self.edges_expire else self.adjacency.has_edges(src, dst)

    def apply(self, batch: Batch, *, one_by_one: bool = False) -> Iterator[GraphDelta]:
        """Apply a batch in order, step by step (one step per arrival with `one_by_one`).

        The batch must be applicable: `check_batch` raises otherwise. Each step is applied when the iterator reaches it;
        the caller must exhaust the iterator.
        """
        weight = unit_weights(len(batch)) if batch.weight is None else batch.weight.astype(np.float32)
        if batch.op is not None:
            op = batch.op.copy()  # writable: the kernels are compiled for writable arrays only
            yield from self._apply_ops(batch, op, weight, one_by_one)
            return
        edges = batch.src, batch.dst, _add_ops(len(batch)), weight
        if one_by_one:
            yield from self._apply_arrivals(*edges)
        else:
            yield self._apply_edges(*edges)

    def remove_edges(self, pairs: NDArray[np.int64]) -> GraphDelta:
        """Remove edges between rows, in order."""
        return self._apply_rows(_NO_ROWS, np.full(len(pairs), Op.REMOVE, np.int8), pairs, unit_weights(len(pairs)))

    def warn_self_loops(self) -> None:
        """Warn once if self-loops were ignored.

        Call it after the update is complete: a warning filter may turn the warning into an error.
        """
        if self.adjacency.self_loop_count and not self._warned:
            self._warned = True
            warnings.warn("Self-loops are ignored (further warnings suppressed).", SelfLoopWarning, stacklevel=4)

    def check(self, *, whole: bool = True) -> None:
        """Check internal invariants; raise if one fails.

        With `whole=False` (a shard) the other endpoints of edges may be elsewhere.
        """
        self.adjacency.check(whole=whole)
        alive = np.flatnonzero(self.arrival >= 0)
        if alive.size != len(self.ids) or (self.ids.find_rows(self.ids.to_column(alive)) != alive).any():
            raise RipplevecError("The graph is damaged: ids and rows do not match.")
        if (self.arrival[np.flatnonzero(self.adjacency.links.degree)] < 0).any():
            raise RipplevecError("The graph is damaged: a free row has edges.")

    def copy(self) -> Graph:
        """Return an independent copy."""
        other = Graph(directed=self.adjacency.directed, duplicates=self.adjacency.duplicates, threads=self.threads)
        other.ids, other.adjacency = self.ids.copy(), self.adjacency.copy()
        other.next_arrival, other.edges_expire, other._warned = self.next_arrival, self.edges_expire, self._warned
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the complete state as plain arrays; a graph restored by `from_state` continues identically."""
        rows = self.row_count
        ids = {f"ids_{name}": array for name, array in self.ids.state().items()}
        edges = {f"edges_{name}": array for name, array in self.adjacency.to_packed().items()}
        for name in ("edges_degree", "edges_strength", "edges_in_strength"):
            if name in edges:
                edges[name] = edges[name][:rows]
        return {**ids, **edges, "arrival": self.arrival[:rows].copy(), "next_arrival": np.array(self.next_arrival)}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]], *, directed: bool, duplicates: str, threads: int = 1) -> Graph:
        """Restore a graph from its `state`."""
        self = cls(directed=directed, duplicates=duplicates, threads=threads)
        self.ids = IdTable.from_state(strip_prefix("ids_", state))
        self.adjacency = Adjacency.from_packed(strip_prefix("edges_", state), directed=directed, duplicates=duplicates)
        self.adjacency.ensure_rows(self.ids.row_count)
        self.arrival[: state["arrival"].size] = state["arrival"]
        self.next_arrival = int(state["next_arrival"])
        return self

    def _apply_ops(
        self, batch: Batch, op: NDArray[np.int8], weight: NDArray[np.float32], one_by_one: bool
    ) -> Iterator[GraphDelta]:
        """Apply a batch with operations: vertex removals are steps of their own, and split the edges between them."""
        first = 0
        for cut in [*np.flatnonzero(op == Op.REMOVE_VERTEX).tolist(), len(batch)]:
            if cut > first:
                part = slice(first, cut)
                edges = take_ids(batch.src, part), take_ids(batch.dst, part), op[part], weight[part]
                if one_by_one:
                    yield from self._apply_arrivals(*edges)
                else:
                    yield self._apply_edges(*edges)
            if cut < len(batch):
                yield self._remove_vertex(take_ids(batch.src, slice(cut, cut + 1)))
            first = cut + 1

    def _apply_edges(
        self, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], weight: NDArray[np.float32]
    ) -> GraphDelta:
        """Apply edge operations together."""
        pairs, arrived = self._intern(src, dst)
        return self._apply_rows(arrived, op, pairs, weight)

    def _apply_arrivals(
        self, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], weight: NDArray[np.float32]
    ) -> Iterator[GraphDelta]:
        """Apply edge operations one arrival at a time: each new vertex with its edges to earlier vertices.

        Operations between known vertices keep their place: after the arrivals that precede them in the batch.
        """
        pairs, arrived = self._intern(src, dst)
        first_new = self.next_arrival - arrived.size
        key, order = self._order_by_arrival(op, pairs, first_new)
        step_keys = np.union1d(key, 2 * self.arrival[arrived])  # an arrival is a step even if it has no edges
        cuts = [*np.searchsorted(key[order], step_keys).tolist(), order.size]
        for step_key, (begin, end) in zip(step_keys.tolist(), pairwise(cuts), strict=True):
            chosen = order[begin:end]
            new_vertex = arrived[:0] if step_key % 2 else arrived[step_key // 2 - first_new :][:1]
            yield self._apply_rows(new_vertex, op[chosen], pairs[chosen], weight[chosen])

    def _order_by_arrival(
        self, op: NDArray[np.int8], pairs: NDArray[np.int64], first_new: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a key of each operation, and the order of the operations by this key.

        The key is 2·a in the step of arrival a, and 2·a + 1 between known vertices after arrival a.
        """
        newest = self.arrival[pairs].max(axis=1)
        key = np.where(newest < first_new, 2 * np.maximum.accumulate(newest) + 1, 2 * newest)
        if _adds_and_removes_an_edge(op, pairs):  # keep the order of the batch; an arrival gets only its first edges
            key = np.maximum.accumulate(key)
        return key, np.argsort(key, kind="stable")

    def _intern(self, src: IdColumn, dst: IdColumn) -> tuple[NDArray[np.int64], RowArray]:
        """Return the rows of both endpoints, adding vertices that are new, and the rows of the new vertices."""
        pairs = np.empty((len(src), 2), np.int64)
        pairs[:, 0], pairs[:, 1], arrived = self.ids.intern(src, dst, self._threads_for(len(src)))
        self._assign_arrival_numbers(arrived)
        return pairs, arrived

    def _assign_arrival_numbers(self, arrived: RowArray) -> None:
        """Assign arrival numbers to new vertices; a number is never reused."""
        if not arrived.size:
            return
        self.adjacency.ensure_rows(self.ids.row_count)
        self.arrival[arrived] = np.arange(self.next_arrival, self.next_arrival + arrived.size)
        self.next_arrival += arrived.size

    def _apply_rows(
        self, arrived: RowArray, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32]
    ) -> GraphDelta:
        changed_share = self.adjacency.apply(op, pairs, weight, self._threads_for(op.size))
        return GraphDelta(arrived, pairs, self.arrival[pairs], changed_share, _NO_ROWS, [])

    def _threads_for(self, edges: int) -> int:
        """Return the number of threads for a batch of this size."""
        return self.threads if edges >= MIN_EDGES_FOR_THREADS else 1

    def _remove_vertex(self, vertex: IdColumn) -> GraphDelta:
        """Remove the vertex of a column with one id, and its edges."""
        rows = self.ids.find_rows(vertex)
        neighbors, lost_share = self.adjacency.remove_vertex(int(rows[0]))
        pairs = np.stack([neighbors, np.full(neighbors.size, rows[0])], axis=1)
        arrival_numbers = self.arrival[pairs]
        self.arrival[rows] = -1
        self.ids.remove(rows)
        changed_share = np.stack([lost_share, np.zeros_like(lost_share)], axis=1)
        return GraphDelta(_NO_ROWS, pairs, arrival_numbers, changed_share, rows, ids_to_list(vertex))


def unit_weights(length: int) -> NDArray[np.float32]:
    """Return `length` weights of one; small arrays are shared views, so they must not be modified."""
    return _UNIT_WEIGHTS[:length] if length <= _SMALL_BATCH else np.ones(length, np.float32)


def strip_prefix(prefix: str, state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state whose names start with a prefix, with the prefix removed."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def _add_ops(length: int) -> NDArray[np.int8]:
    """Return `length` ADD operations; small arrays are shared views, so they must not be modified."""
    return _ADD_OPS[:length] if length <= _SMALL_BATCH else np.zeros(length, np.int8)


def _adds_and_removes_an_edge(op: NDArray[np.int8], pairs: NDArray[np.int64]) -> bool:
    """Return whether some edge is both added and removed, so that the order of these operations matters."""
    removed = op == Op.REMOVE
    if not removed.any():
        return False
    pair = (pairs.min(axis=1) << 31) + pairs.max(axis=1)
    return bool(np.isin(pair[removed], pair[~removed]).any())
