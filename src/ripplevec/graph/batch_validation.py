"""Checks of a batch before it is applied: whether everything it removes exists, and how much the graph may grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, select_rows, take_ids
from ripplevec.errors import RipplevecError, UnknownEdgeError, UnknownVertexError
from ripplevec.graph.adjacency import RowArray


class GraphLookup(Protocol):
    """Read access to a graph, local or remote, as validation needs it."""

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""

    def prefetch_batch(self, batch: Batch) -> None:
        """Fetch in one request the answers that `has_vertex` and `has_edge` will give for a batch."""

    def has_vertex(self, vertex: Id, /) -> bool:
        """Return whether a vertex exists."""

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Return whether an edge exists (from src to dst if directed)."""

    def rows_of(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices; raise `UnknownVertexError` with the ids that are not in the graph."""

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, for each pair of rows, whether an edge exists (from src to dst if directed)."""


class TimeCheck(Protocol):
    """Check of the times of successive batches; see `TimeLimit`."""

    def check(self, time: NDArray[np.float64] | None) -> None:
        """Raise if a time of a batch is invalid; accept none."""

    def find_jumps(self, time: NDArray[np.float64] | None) -> Mapping[int, RipplevecError]:
        """Accept valid times of a batch; return the error of every other row."""


@dataclass(slots=True)
class Rejections:
    """Batch rows that remove a vertex or an edge that does not exist at that point of the batch."""

    errors: dict[int, RipplevecError] = field(default_factory=dict)  # by row of the batch
    unknown_ids: list[Id] = field(default_factory=list)
    missing_edges: list[tuple[Id, Id]] = field(default_factory=list)

    @property
    def batch_error(self) -> RipplevecError | None:
        """Error that rejects the whole batch; None if all rows are valid."""
        if self.unknown_ids:
            return UnknownVertexError(self.unknown_ids)
        return UnknownEdgeError(self.missing_edges) if self.missing_edges else None


class BatchSimulation:
    """Simulates the effect of successive batches on a graph, without changing the graph."""

    def __init__(self, graph: GraphLookup) -> None:
        self.graph = graph
        self.edges: dict[Hashable, bool] = {}  # whether an edge exists, for the edges that the batches mention
        self.vertices: dict[Id, bool] = {}  # likewise for vertices
        self.removals: Counter[Id] = Counter()  # times a vertex was removed: its earlier edges no longer exist

    def simulate(self, batch: Batch) -> Rejections:
        """Simulate the valid rows of a batch; return the invalid ones."""
        rejections = Rejections()
        self.graph.prefetch_batch(batch)
        ops = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        rows = zip(ops.tolist(), ids_to_list(batch.src), ids_to_list(batch.dst), strict=True)
        for row, (op, src, dst) in enumerate(rows):
            if op in (Op.ADD, Op.VERTEX):
                self._add(src, dst)
            elif unknown := self._find_unknown(src, *([dst] if op == Op.REMOVE else [])):
                rejections.unknown_ids += unknown
                rejections.errors[row] = UnknownVertexError(unknown)
            elif op == Op.REMOVE_VERTEX:
                self.vertices[src] = False
                self.removals[src] += 1
            elif self._has_edge(src, dst):
                self.edges[self._edge_key(src, dst)] = False
            else:
                rejections.missing_edges.append((src, dst))
                rejections.errors[row] = UnknownEdgeError([(src, dst)])
        return rejections

    def _add(self, src: Id, dst: Id) -> None:
        self.vertices[src] = self.vertices[dst] = True
        if src != dst:
            self.edges[self._edge_key(src, dst)] = True

    def _edge_key(self, src: Id, dst: Id) -> Hashable:
        """Return a key of an edge that differs from the keys of edges before a removal of either endpoint."""
        ends = (src, self.removals[src]), (dst, self.removals[dst])
        return ends if self.graph.directed else frozenset(ends)

    def _find_unknown(self, *vertices: Id) -> list[Id]:
        return [vertex for vertex in vertices if not self.vertices.get(vertex, self.graph.has_vertex(vertex))]

    def _has_edge(self, src: Id, dst: Id) -> bool:
        simulated = self.edges.get(self._edge_key(src, dst))
        if simulated is not None:
            return simulated
        return not (self.removals[src] or self.removals[dst]) and self.graph.has_edge(src, dst)


class BatchAdmission:
    """Validates successive batches before any of them is applied, each as if the admitted ones had been applied."""

    def __init__(self, graph: GraphLookup, admitted: Sequence[Batch] = (), times: TimeCheck | None = None) -> None:
        """Begin after batches that only add edges; `times` checks the times of all batches."""
        self.graph, self._times = graph, times
        self._admitted = list(admitted)
        self._simulation, self._simulated = BatchSimulation(graph), 0
        for batch in admitted:
            self._find_jumps(batch)

    def admit(self, batch: Batch) -> None:
        """Admit a batch; raise if any of its rows is invalid."""
        if self._times is not None:
            self._times.check(batch.time)
        self._check_existence(batch)
        self._find_jumps(batch)  # finds none, and accepts the times
        self._admitted.append(batch)

    def _check_existence(self, batch: Batch) -> None:
        if has_removals(batch) and not self._admitted:
            check_batch(self.graph, batch)
        elif has_removals(batch):
            if error := self._simulate(batch).batch_error:
                # The simulation now contains the valid rows of the rejected batch; it starts again from the graph.
                self._simulation, self._simulated = BatchSimulation(self.graph), 0
                raise error
            self._simulated += 1

    def admit_valid_rows(self, batch: Batch) -> tuple[Batch, dict[int, RipplevecError]]:
        """Admit the valid rows of a batch; return them as a batch, and the error of every other row."""
        errors = dict(self._find_jumps(batch))
        rows = np.delete(np.arange(len(batch)), list(errors))
        batch = select_rows(batch, rows) if errors else batch
        if has_removals(batch):
            found = self._simulate(batch).errors
            errors |= {int(rows[row]): error for row, error in found.items()}
            if found:
                batch = select_rows(batch, np.delete(np.arange(len(batch)), list(found)))
            self._simulated += 1
        self._admitted.append(batch)
        return batch, dict(sorted(errors.items()))

    def _find_jumps(self, batch: Batch) -> Mapping[int, RipplevecError]:
        return {} if self._times is None else self._times.find_jumps(batch.time)

    def _simulate(self, batch: Batch) -> Rejections:
        """Simulate a batch after all admitted ones; those without removals were not simulated until now."""
        for earlier in self._admitted[self._simulated :]:
            self._simulation.simulate(earlier)
        self._simulated = len(self._admitted)
        return self._simulation.simulate(batch)


def has_removals(batch: Batch) -> bool:
    """Return whether a batch removes anything; only such a batch can be rejected."""
    return batch.op is not None and bool(((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX)).any())


def check_batch(graph: GraphLookup, batch: Batch) -> None:
    """Raise if a batch removes a vertex or an edge that does not exist at that point of the batch."""
    if batch.op is None or not has_removals(batch):
        return
    if (batch.op == Op.REMOVE).all():
        _check_edge_removals(graph, batch)
    elif error := BatchSimulation(graph).simulate(batch).batch_error:
        raise error


def _check_edge_removals(graph: GraphLookup, batch: Batch) -> None:
    """Check a batch that only removes edges, without simulating it row by row."""
    src, dst = graph.rows_of(batch.src), graph.rows_of(batch.dst)
    pairs = np.stack([src, dst], axis=1)
    if not graph.directed:
        pairs.sort(axis=1)
    _, first_mentions = np.unique(pairs, axis=0, return_index=True)
    exists = np.zeros(len(batch), bool)  # a second removal of the same edge finds nothing
    exists[first_mentions] = graph.has_edges(src[first_mentions], dst[first_mentions])
    if not exists.all():
        missing = np.flatnonzero(~exists)
        raise UnknownEdgeError(
            list(
                zip(
                    ids_to_list(take_ids(batch.src, missing)),
                    ids_to_list(take_ids(batch.dst, missing)),
                    strict=True,
                )
            )
        )


def bound_growth(
    batch: Batch,
    find_rows: Callable[[IdColumn], RowArray],
    get_degrees: Callable[[RowArray], RowArray],
    has_edges: Callable[[RowArray, RowArray], NDArray[np.bool_]] | None,
) -> tuple[int, int]:
    """Return upper bounds of the vertices that a batch adds, and of the edges that it adds, changes or removes.

    Parameters
    ----------
    batch : Batch
        The batch, not yet applied.
    find_rows : callable
        Returns the rows of a column of ids, −1 for unknown ids.
    get_degrees : callable
        Returns the degrees of rows.
    has_edges : callable or None
        Returns, for each pair of rows, whether an edge exists. None unless duplicates are ignored: only then does an
        existing edge change nothing.

    Returns
    -------
    vertices, edges : int
        The two bounds.
    """
    src, dst = find_rows(batch.src), find_rows(batch.dst)
    vertices = len(_unknown_ids(batch.src, src) | _unknown_ids(batch.dst, dst))
    op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
    edges = int(np.count_nonzero(op <= Op.REMOVE))
    removed = src[(op == Op.REMOVE_VERTEX) & (src >= 0)]
    if removed.size:  # a removed vertex loses its edges, including those that this batch has added
        edges += edges + int(get_degrees(removed).sum())
    if has_edges is not None and batch.op is None:
        known = np.flatnonzero((src >= 0) & (dst >= 0))
        edges -= int(np.count_nonzero(has_edges(src[known], dst[known])))
    return vertices, edges


def _unknown_ids(column: IdColumn, rows: RowArray) -> set[Id]:
    return set(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
