"""Whether batches can be applied, found out without changing the graph: a removal needs something to remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, select_rows, take_ids
from ripplevec.errors import RipplevecError, UnknownEdgeError, UnknownVertexError

Rows = NDArray[np.int64]


class GraphLookup(Protocol):
    """A graph as far as it is asked whether batches can be applied to it; it may lie elsewhere."""

    @property
    def directed(self) -> bool:
        """Whether an edge has a direction."""

    def prefetch_batch(self, batch: Batch) -> None:
        """Fetch in one go, where asking takes long, what `has_vertex` and `has_edge` will be asked of a batch."""

    def has_vertex(self, name: Id) -> bool:
        """Whether there is a vertex of this name."""

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Whether there is an edge between two names (from src to dst when directed)."""

    def rows_of(self, column: IdColumn) -> Rows:
        """The rows of known vertices, or an error naming those that are not known."""

    def has_edges(self, src: Rows, dst: Rows) -> NDArray[np.bool_]:
        """Whether there is an edge between two rows (from src to dst when directed), pair by pair."""


@dataclass(slots=True)
class Rejections:
    """The rows of a batch that remove what is not there when their turn comes, and why."""

    rows: dict[int, RipplevecError] = field(default_factory=dict)
    unknown: list[Id] = field(default_factory=list)
    missing: list[tuple[Id, Id]] = field(default_factory=list)

    @property
    def error(self) -> RipplevecError | None:
        """What the whole batch is refused with; None where it can be applied."""
        if self.unknown:
            return UnknownVertexError(self.unknown)
        return UnknownEdgeError(self.missing) if self.missing else None


class BatchSimulation:
    """Plays batches through, one after the other, on top of a graph that stays as it is."""

    def __init__(self, known: GraphLookup) -> None:
        self.known = known
        self.edges: dict[Hashable, bool] = {}  # what the batches themselves have said of an edge so far
        self.vertices: dict[Id, bool] = {}
        self.lives: Counter[Id] = Counter()  # removals so far; what was said of an earlier life no longer holds

    def simulate(self, batch: Batch) -> Rejections:
        """Take over what a batch does, but for the rows that cannot be applied."""
        refused = Rejections()
        self.known.prefetch_batch(batch)
        ops = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        rows = zip(ops.tolist(), ids_to_list(batch.src), ids_to_list(batch.dst), strict=True)
        for row, (op, src, dst) in enumerate(rows):
            if op in (Op.ADD, Op.VERTEX):
                self._add(src, dst)
            elif unknown := self._unknown(src, *([dst] if op == Op.REMOVE else [])):
                refused.unknown += unknown
                refused.rows[row] = UnknownVertexError(unknown)
            elif op == Op.REMOVE_VERTEX:
                self.vertices[src] = False
                self.lives[src] += 1
            elif self._has_edge(src, dst):
                self.edges[self._key(src, dst)] = False
            else:
                refused.missing.append((src, dst))
                refused.rows[row] = UnknownEdgeError([(src, dst)])
        return refused

    def _add(self, src: Id, dst: Id) -> None:
        self.vertices[src] = self.vertices[dst] = True
        if src != dst:
            self.edges[self._key(src, dst)] = True

    def _key(self, src: Id, dst: Id) -> Hashable:
        ends = (src, self.lives[src]), (dst, self.lives[dst])
        return ends if self.known.directed else frozenset(ends)

    def _unknown(self, *names: Id) -> list[Id]:
        return [name for name in names if not self.vertices.get(name, self.known.has_vertex(name))]

    def _has_edge(self, src: Id, dst: Id) -> bool:
        said = self.edges.get(self._key(src, dst))
        if said is not None:
            return said
        return not (self.lives[src] or self.lives[dst]) and self.known.has_edge(src, dst)


class BatchAdmission:
    """Says of batches, one after the other, whether they can be applied, before any of them is."""

    def __init__(self, known: GraphLookup) -> None:
        self.known = known
        self._admitted: list[Batch] = []
        self._rehearsal, self._played = BatchSimulation(known), 0

    def admit(self, batch: Batch) -> None:
        """Count on a batch from now on, or say why it has to be refused as a whole."""
        if has_removals(batch) and not self._admitted:
            check_batch(self.known, batch)
        elif has_removals(batch):
            if error := self._play(batch).error:
                self._rehearsal, self._played = BatchSimulation(self.known), 0  # it has taken over the good rows
                raise error
            self._played += 1
        self._admitted.append(batch)

    def admit_valid_rows(self, batch: Batch) -> tuple[Batch, dict[int, RipplevecError]]:
        """Count on what can be applied of a batch; that part, and per row that is not in it, why."""
        if not has_removals(batch):
            self._admitted.append(batch)
            return batch, {}
        refused = self._play(batch).rows
        if refused:
            batch = select_rows(batch, np.delete(np.arange(len(batch)), list(refused)))
        self._admitted.append(batch)
        self._played += 1
        return batch, refused

    def _play(self, batch: Batch) -> Rejections:
        """Play those that were admitted unplayed, which few removals ever ask for, then this one."""
        for earlier in self._admitted[self._played :]:
            self._rehearsal.simulate(earlier)
        self._played = len(self._admitted)
        return self._rehearsal.simulate(batch)


def has_removals(batch: Batch) -> bool:
    """Whether a batch removes anything: only then can it be refused."""
    return batch.op is not None and bool(((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX)).any())


def check_batch(known: GraphLookup, batch: Batch) -> None:
    """Refuse a batch that removes what is not there when its turn comes."""
    if batch.op is None or not has_removals(batch):
        return
    if (batch.op == Op.REMOVE).all():
        _check_edge_removals(known, batch)
    elif error := BatchSimulation(known).simulate(batch).error:
        raise error


def _check_edge_removals(known: GraphLookup, batch: Batch) -> None:
    src, dst = known.rows_of(batch.src), known.rows_of(batch.dst)
    pairs = np.stack([src, dst], axis=1)
    if not known.directed:
        pairs.sort(axis=1)
    _, firsts = np.unique(pairs, axis=0, return_index=True)
    there = np.zeros(len(batch), bool)
    there[firsts] = known.has_edges(src[firsts], dst[firsts])
    if not there.all():
        missing = np.flatnonzero(~there)
        raise UnknownEdgeError(
            list(zip(ids_to_list(take_ids(batch.src, missing)), ids_to_list(take_ids(batch.dst, missing)), strict=True))
        )


def bound_growth(
    batch: Batch,
    find: Callable[[IdColumn], Rows],
    degrees: Callable[[Rows], Rows],
    ignored: Callable[[Rows, Rows], NDArray[np.bool_]] | None,
) -> tuple[int, int]:
    """At most how many vertices a batch adds, and at most how many edges it adds, changes or removes.

    The graph says which rows names have (−1: none), how many edges rows have and, where an edge that is there already
    changes nothing, which pairs of rows have one.
    """
    src, dst = find(batch.src), find(batch.dst)
    vertices = len(_unknown_ids(batch.src, src) | _unknown_ids(batch.dst, dst))
    op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
    edges = int(np.count_nonzero(op <= Op.REMOVE))
    gone = src[(op == Op.REMOVE_VERTEX) & (src >= 0)]
    if gone.size:  # with their edges, and with those that the batch itself has added to them
        edges += edges + int(degrees(gone).sum())
    if ignored is not None and batch.op is None:
        known = np.flatnonzero((src >= 0) & (dst >= 0))
        edges -= int(np.count_nonzero(ignored(src[known], dst[known])))
    return vertices, edges


def _unknown_ids(column: IdColumn, rows: Rows) -> set[Id]:
    return set(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
