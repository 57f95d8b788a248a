"""The interface of baselines that process one arrival at a time, and an adapter to the methods of `Embedder`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Batch, Id, Op, id_column, ids_to_list, refuse_attributes
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.graph.adjacency import Adjacency
from ripplevec.lab.baselines.base import add_edges
from ripplevec.util.growable_array import grow_array


class StreamingBaseline(Protocol):
    """A method that keeps vectors up to date while vertices arrive; vertices are rows, numbered in order of arrival.

    Its settings are the fields of a dataclass, `dim` and `seed` among them.
    """

    def __init__(self, **settings: Any) -> None: ...

    def start(self, graph: csr_array, /) -> None:
        """Embed the initial graph, a symmetric weight matrix; earlier state is discarded."""

    def preview(self, neighbors: Sequence[int], /) -> NDArray[np.float32]:
        """Return the vector that a new vertex with these neighbors would get, without adding it."""

    def add_vertex(self, v: int, neighbors: Sequence[int], /) -> NDArray[np.float32]:
        """Add the next vertex with its edges, or further edges of a known one; return its vector."""

    def vectors(self) -> NDArray[np.float32]:
        """Return all current vectors as a read-only view; vertices that are not placed yet are zero."""


class GrowingVectors:
    """A matrix of one vector per vertex that rows can be appended to; a zero row means "not placed yet"."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._buffer = np.array(rows, np.float32)
        self._used = len(rows)

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[np.float32]:
        """All rows in use, writable."""
        return self._buffer[: self._used]

    def set_row(self, v: int, row: NDArray[Any]) -> None:
        """Set the row of a known vertex, or append the row of the next."""
        if v == len(self._buffer):
            self._buffer = grow_array(self._buffer, max(2 * v, 16))
        self._used = max(self._used, v + 1)
        self._buffer[v] = row

    def is_placed(self, v: int) -> bool:
        """Tell whether a vertex has a row that is not zero."""
        return v < self._used and bool(self._buffer[v].any())

    def placed_rows(self, vertices: Sequence[int]) -> NDArray[np.float32]:
        """Return the rows of the given vertices that are placed."""
        rows = self.rows[np.asarray(vertices, np.int64)]
        return rows[rows.any(axis=1)]

    def mean_row(self, vertices: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean row of the given vertices that are placed; zero if none is."""
        rows = self.placed_rows(vertices)
        return rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1], np.float32)

    def read_only(self) -> NDArray[np.float32]:
        """Return all rows in use as a read-only view."""
        view = self.rows
        view.flags.writeable = False
        return view


def check_arrival(v: int, neighbors: Sequence[int], known: int) -> None:
    """Check that a vertex is known or the next, and that its neighbors are known."""
    if not 0 <= v <= known:
        raise InvalidValueError.of("v", f"a known vertex or the next, {known}", v)
    if len(neighbors) and not 0 <= min(neighbors) <= max(neighbors) < known:
        raise InvalidValueError.of("neighbors", f"known vertices, 0 to {known - 1}", list(neighbors))


def add_arrival_edges(adjacency: Adjacency, v: int, neighbors: Sequence[int]) -> None:
    """Add the edges of an arriving vertex."""
    adjacency.ensure_rows(v + 1)
    add_edges(adjacency, np.column_stack([np.full(len(neighbors), v), neighbors]), np.ones(len(neighbors)))


def add_unit_edges(matrix: csr_array, pairs: Sequence[tuple[int, int]]) -> csr_array:
    """Return a symmetric weight matrix with edges of weight 1 added between existing rows."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    half = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=matrix.shape)
    return csr_array(matrix + half + half.T)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedVectors:
    """The vertices whose vectors a batch changed, and their new vectors."""

    ids: list[Id]
    vectors: NDArray[np.float32]
    anchored: bool = False


class StreamingBaselineAdapter:
    """A streaming baseline with vertex ids; batches are applied arrival by arrival and may only add edges."""

    def __init__(self, method: StreamingBaseline) -> None:
        self.method = method
        self._row_of: dict[Id, int] = {}

    def fit(self, edges: Any) -> StreamingBaselineAdapter:
        """Start from these vertices and edges; earlier state is discarded."""
        batch = Batch.from_any(edges)
        _check_additions_only(batch)
        src, dst = ids_to_list(batch.src), ids_to_list(batch.dst)
        mentioned = dict.fromkeys(chain.from_iterable(zip(src, dst, strict=True)))
        self._row_of = {name: row for row, name in enumerate(mentioned)}
        added = np.ones(len(batch), bool) if batch.op is None else batch.op == Op.ADD
        ends = np.column_stack([self._rows_of(src), self._rows_of(dst)])[added]
        weights = np.ones(len(ends)) if batch.weight is None else batch.weight[added]
        size = len(self._row_of)
        half = csr_array((weights, ends.T), shape=(size, size))
        self.method.start(csr_array(half + half.T))
        return self

    def add_vertex(self, vertex: Id, neighbors: Sequence[Id]) -> NDArray[np.float32]:
        """Add a vertex with its edges and return its vector; unknown neighbors are added first."""
        for other in neighbors:
            if other not in self._row_of:
                self._add_with_known_neighbors(other, [])
        return self._add_with_known_neighbors(vertex, neighbors)

    def partial_fit(self, edges: Any) -> ChangedVectors:
        """Apply a batch arrival by arrival: consecutive rows with the same source are one arrival."""
        batch = Batch.from_any(edges)
        _check_additions_only(batch)
        if batch.weight is not None and (batch.weight != 1).any():
            raise InvalidValueError.of(
                "weight", "no weights other than 1: baselines stream unweighted edges", batch.weight
            )
        before = self.method.vectors().copy()
        for vertex, neighbors in _arrivals(batch):
            self.add_vertex(vertex, neighbors)
        after = self.method.vectors()
        unchanged = (before == after[: len(before)]).all(axis=1)
        rows = np.concatenate([np.flatnonzero(~unchanged), np.arange(len(before), len(after))])
        names = list(self._row_of)
        return ChangedVectors([names[row] for row in rows.tolist()], after[rows])

    def preview(self, neighbors: Sequence[Id]) -> NDArray[np.float32]:
        """Return the vector that a new vertex with these known neighbors would get, without adding it."""
        return self.method.preview(self._rows_of(neighbors).tolist())

    def vectors(self, ids: Any) -> NDArray[np.float32]:
        """Return the vectors of vertices, one row each."""
        return self.method.vectors()[self._rows_of(ids_to_list(id_column(ids)))]

    def _add_with_known_neighbors(self, vertex: Id, neighbors: Sequence[Id]) -> NDArray[np.float32]:
        row = self._row_of.get(vertex, len(self._row_of))
        vector = self.method.add_vertex(row, self._rows_of(neighbors).tolist())
        self._row_of[vertex] = row
        return vector

    def _rows_of(self, names: Sequence[Id]) -> NDArray[np.int64]:
        missing = [name for name in names if name not in self._row_of]
        if missing:
            raise UnknownVertexError(missing)
        return np.array([self._row_of[name] for name in names], np.int64)


def _check_additions_only(batch: Batch) -> None:
    if batch.op is not None and np.isin(batch.op, [Op.REMOVE, Op.REMOVE_VERTEX]).any():
        raise InvalidValueError.of("batch", "additions only, because baselines cannot remove", "a removal")
    refuse_attributes(batch, "used by a baseline")


def _arrivals(batch: Batch) -> Iterator[tuple[Id, list[Id]]]:
    """Yield each run of rows with the same source as the source and its neighbors."""
    src, dst = ids_to_list(batch.src), ids_to_list(batch.dst)
    is_vertex_row = [False] * len(batch) if batch.op is None else (batch.op == Op.VERTEX).tolist()
    begin = 0
    for row in range(1, len(batch) + 1):
        if row == len(batch) or src[row] != src[begin]:
            yield src[begin], [dst[edge] for edge in range(begin, row) if not is_vertex_row[edge]]
            begin = row
