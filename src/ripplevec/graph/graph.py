"""The graph: names, rows and edges together. A batch is checked as a whole first, so that a bad one changes nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, take_ids
from ripplevec.errors import RipplevecError, SelfLoopWarning, UnknownVertexError
from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.batch_validation import check_batch
from ripplevec.graph.id_table import IdTable

Rows = NDArray[np.int64]
_NO_ROWS = np.empty(0, np.int64)
_NO_PAIRS = np.empty((0, 2), np.int64)


class GraphDelta(NamedTuple):
    """What a step did to the graph, by row."""

    arrived: Rows  # new vertices, in order of arrival
    pairs: Rows  # (m, 2): the ends of edges that came, changed or went, in order
    arrival_numbers: Rows  # (m, 2): the arrival numbers of these ends at that moment
    changed_share: NDArray[np.float64]  # (m, 2): the share of each end's strength that changed
    vacated_rows: Rows  # rows whose vertex was removed (a newcomer may have one of them already)
    removed_ids: list[Id]  # the names of those vertices


def merge_deltas(steps: Sequence[GraphDelta]) -> GraphDelta:
    """Several steps as one."""
    if len(steps) == 1:
        return steps[0]
    if not steps:
        return GraphDelta(_NO_ROWS, _NO_PAIRS, _NO_PAIRS, _NO_PAIRS.astype(np.float64), _NO_ROWS, [])
    *columns, removed = zip(*steps, strict=True)
    return GraphDelta._make([*map(np.concatenate, columns), [name for names in removed for name in names]])


class Graph:
    """A growing graph whose vertices have names."""

    def __init__(self, *, directed: bool = False, duplicates: str = "add") -> None:
        self.ids = IdTable()
        self.adjacency = Adjacency(directed=directed, duplicates=duplicates)
        self.next_arrival = 0
        self.edges_expire = False  # whether edges may go by themselves: then it is no mistake to remove one that has gone
        self._warned = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def arrival(self) -> Rows:
        """Per row the number of its vertex in the order of arrival; −1 where the row is free."""
        return self.adjacency.arrival

    @property
    def row_count(self) -> int:
        """Rows in use or used before: every vertex has a row below this."""
        return self.ids.row_count

    def rows_of(self, column: IdColumn) -> Rows:
        """The rows of known vertices, or an error naming those that are not known."""
        rows = self.ids.find_rows(column)
        if rows.size and rows.min() < 0:
            raise UnknownVertexError(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
        return rows

    @property
    def directed(self) -> bool:
        """Whether an edge has a direction."""
        return self.adjacency.directed

    def prefetch_batch(self, batch: Batch) -> None:
        """Nothing has to be fetched before `has_vertex` and `has_edge` are asked."""

    def has_vertex(self, name: Id) -> bool:
        """Whether there is a vertex of this name."""
        return name in self.ids

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Whether there is an edge between two names (from src to dst when directed), or may have been one."""
        rows = self.ids.find_row(src), self.ids.find_row(dst)
        return min(rows) >= 0 and (self.edges_expire or self.adjacency.has_edge(*rows))

    def has_edges(self, src: Rows, dst: Rows) -> NDArray[np.bool_]:
        """Whether there is an edge between two rows (from src to dst when directed), or may have been, pair by pair."""
        return np.ones(src.size, np.bool_) if self.edges_expire else self.adjacency.has_edges(src, dst)

    def rows_by_arrival(self, wanted: Callable[[Rows], NDArray[np.bool_]] | None = None) -> Rows:
        """The rows of vertices in order of arrival: of all, or of those whose arrival numbers are wanted."""
        arrival = self.arrival[: self.row_count]
        alive = arrival >= 0
        rows = np.flatnonzero(alive if wanted is None else alive & wanted(arrival))
        return rows[np.argsort(arrival[rows], kind="stable")]

    def adjacency_by_arrival(self) -> tuple[Adjacency, Rows | None]:
        """The edges with rows in order of arrival, and which rows these are; None where they lie in that order already.

        So a start does not depend on which rows were free when vertices came.
        """
        order = self.rows_by_arrival()
        if np.array_equal(order, np.arange(self.row_count)):
            return self.adjacency, None
        return self.adjacency.reorder(order), order

    def apply(self, batch: Batch, *, one_by_one: bool = False) -> Iterable[GraphDelta]:
        """Check the whole batch, then apply it step by step (one step per arrival if asked), in the order given.

        The check happens at the call; each step is taken as it is asked for, and all of them must be.
        """
        weight = unit_weights(len(batch)) if batch.weight is None else batch.weight.astype(np.float32)
        if batch.op is None:
            edges = batch.src, batch.dst, _add_ops(len(batch)), weight
            return self._arrivals(*edges) if one_by_one else self._together(*edges)
        check_batch(self, batch)
        return self._steps(batch, batch.op, weight, one_by_one)

    def _steps(
        self, batch: Batch, op: NDArray[np.int8], weight: NDArray[np.float32], one_by_one: bool
    ) -> Iterator[GraphDelta]:
        first = 0
        for cut in [*np.flatnonzero(op == Op.REMOVE_VERTEX).tolist(), len(batch)]:
            if cut > first:
                part = slice(first, cut)
                edges = take_ids(batch.src, part), take_ids(batch.dst, part), op[part], weight[part]
                if one_by_one:
                    yield from self._arrivals(*edges)
                else:
                    yield self._apply_edges(*edges)
            if cut < len(batch):
                yield self._remove_vertex(take_ids(batch.src, slice(cut, cut + 1)))
            first = cut + 1

    def _together(
        self, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], weight: NDArray[np.float32]
    ) -> Iterator[GraphDelta]:
        yield self._apply_edges(src, dst, op, weight)

    def _apply_edges(self, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], weight: NDArray[np.float32]) -> GraphDelta:
        """Apply edge operations together."""
        pairs, arrived = self._intern(src, dst)
        return self._apply_rows(arrived, op, pairs, weight)

    def _arrivals(
        self, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], weight: NDArray[np.float32]
    ) -> Iterator[GraphDelta]:
        """Apply edge operations one arrival after the other: each newcomer with its edges to those before it.

        What happens between known vertices keeps its place: behind the arrivals that were mentioned before it.
        """
        pairs, arrived = self._intern(src, dst)
        first_new = self.next_arrival - arrived.size
        newest = self.arrival[pairs].max(axis=1)
        turn = np.where(newest < first_new, 2 * np.maximum.accumulate(newest) + 1, 2 * newest)
        if _adds_and_removes_an_edge(op, pairs):  # then everything keeps its place: a newcomer comes with its first edges alone
            turn = np.maximum.accumulate(turn)
        order = np.argsort(turn, kind="stable")
        turns = np.union1d(turn, 2 * self.arrival[arrived])  # a newcomer has its turn even if it brings no edge
        cuts = [*np.searchsorted(turn[order], turns).tolist(), order.size]
        for number, (begin, end) in zip(turns.tolist(), pairwise(cuts), strict=True):
            chosen = order[begin:end]
            newcomer = arrived[:0] if number % 2 else arrived[number // 2 - first_new :][:1]
            yield self._apply_rows(newcomer, op[chosen], pairs[chosen], weight[chosen])

    def _intern(self, src: IdColumn, dst: IdColumn) -> tuple[Rows, Rows]:
        """The rows of both ends, and the newcomers among them, numbered."""
        pairs = np.empty((len(src), 2), np.int64)
        pairs[:, 0], pairs[:, 1], arrived = self.ids.intern(src, dst)
        self._number(arrived)
        return pairs, arrived

    def _apply_rows(
        self, arrived: Rows, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32]
    ) -> GraphDelta:
        chance = self.adjacency.apply(op, pairs, weight)
        return GraphDelta(arrived, pairs, self.arrival[pairs], chance, _NO_ROWS, [])

    def remove_edges(self, pairs: Rows) -> GraphDelta:
        """Take out edges between rows, in order."""
        return self._apply_rows(_NO_ROWS, np.full(len(pairs), Op.REMOVE, np.int8), pairs, unit_weights(len(pairs)))

    def warn_self_loops(self) -> None:
        """Warn of self-loops, once. For the caller, when all is done: a warning may be made an error."""
        if self.adjacency.self_loop_count and not self._warned:
            self._warned = True
            warnings.warn("self-loops are left out (said once)", SelfLoopWarning, stacklevel=4)

    def _remove_vertex(self, name: IdColumn) -> GraphDelta:
        rows = self.ids.find_rows(name)
        touched, lost = self.adjacency.remove_vertex(int(rows[0]))
        pairs = np.stack([touched, np.full(touched.size, rows[0])], axis=1)
        numbers = self.arrival[pairs]
        self.arrival[rows] = -1
        self.ids.remove(rows)
        return GraphDelta(_NO_ROWS, pairs, numbers, np.stack([lost, np.zeros_like(lost)], axis=1), rows, ids_to_list(name))

    def _number(self, arrived: Rows) -> None:
        """Give newcomers their arrival numbers, which are never used again."""
        if not arrived.size:
            return
        self.adjacency.ensure_rows(self.ids.row_count)
        self.arrival[arrived] = np.arange(self.next_arrival, self.next_arrival + arrived.size)
        self.next_arrival += arrived.size

    def check(self, *, whole: bool = True) -> None:
        """Raise where names, rows and edges contradict each other; the tests call it after everything.

        Where this is not the whole graph, the other ends of edges may be elsewhere.
        """
        self.adjacency.check(whole=whole)
        alive = np.flatnonzero(self.arrival >= 0)
        if alive.size != len(self.ids) or (self.ids.find_rows(self.ids.to_column(alive)) != alive).any():
            raise RipplevecError("the graph is damaged: names and rows do not match")
        if (self.arrival[np.flatnonzero(self.adjacency.links.degree)] < 0).any():
            raise RipplevecError("the graph is damaged: a free row has edges")

    def copy(self) -> Graph:
        """The same graph in arrays of its own."""
        other = Graph(directed=self.adjacency.directed, duplicates=self.adjacency.duplicates)
        other.ids, other.adjacency = self.ids.copy(), self.adjacency.copy()
        other.next_arrival, other.edges_expire, other._warned = self.next_arrival, self.edges_expire, self._warned
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays; restored by `from_state`, it goes on exactly as this one would."""
        rows = self.row_count
        ids = {f"ids_{name}": array for name, array in self.ids.state().items()}
        edges = {f"edges_{name}": array for name, array in self.adjacency.to_packed().items()}
        for name in ("edges_degree", "edges_strength", "edges_in_strength"):
            if name in edges:
                edges[name] = edges[name][:rows]
        return {**ids, **edges, "arrival": self.arrival[:rows].copy(), "next_arrival": np.array(self.next_arrival)}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]], *, directed: bool, duplicates: str) -> Graph:
        """The graph whose `state` this is."""
        self = cls(directed=directed, duplicates=duplicates)
        self.ids = IdTable.from_state(strip_prefix("ids_", state))
        self.adjacency = Adjacency.from_packed(strip_prefix("edges_", state), directed=directed, duplicates=duplicates)
        self.adjacency.ensure_rows(self.ids.row_count)
        self.arrival[: state["arrival"].size] = state["arrival"]
        self.next_arrival = int(state["next_arrival"])
        return self


_SMALL = 256
_NO_OPS, _ONES = np.zeros(_SMALL, np.int8), np.ones(_SMALL, np.float32)


def _add_ops(length: int) -> NDArray[np.int8]:
    """As many additions: what nearly every batch is made of."""
    return _NO_OPS[:length] if length <= _SMALL else np.zeros(length, np.int8)


def unit_weights(length: int) -> NDArray[np.float32]:
    """The weights of edges that came without."""
    return _ONES[:length] if length <= _SMALL else np.ones(length, np.float32)


def strip_prefix(prefix: str, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a state whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def _adds_and_removes_an_edge(op: NDArray[np.int8], pairs: NDArray[np.int64]) -> bool:
    """Whether an edge is both added and removed, so that the order in which that happens matters."""
    gone = op == Op.REMOVE
    if not gone.any():
        return False
    pair = (pairs.min(axis=1) << 31) + pairs.max(axis=1)
    return bool(np.isin(pair[gone], pair[~gone]).any())
