"""A streaming baseline with the methods of an embedder, so that the same protocols can be run on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Batch, Id, Op, ids_to_list, id_column
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.lab.baselines.streaming.base import StreamingBaseline


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The vertices whose vectors a batch changed, and their vectors now."""

    ids: list[Id]
    vectors: NDArray[np.float32]
    anchored: bool = False


class Streamed:
    """Gives names to the rows of a streaming baseline. Batches are taken in arrival by arrival, edges only added."""

    def __init__(self, method: StreamingBaseline) -> None:
        self.method = method
        self._row: dict[Id, int] = {}

    def fit(self, edges: Any) -> Streamed:
        """Begin anew with these vertices and edges."""
        batch = Batch.from_any(edges)
        _only_added(batch)
        src, dst = ids_to_list(batch.src), ids_to_list(batch.dst)
        mentioned = dict.fromkeys(chain.from_iterable(zip(src, dst, strict=True)))
        self._row = {name: row for row, name in enumerate(mentioned)}
        added = np.ones(len(batch), bool) if batch.op is None else batch.op == Op.ADD
        ends = np.column_stack([self._rows(src), self._rows(dst)])[added]
        weights = np.ones(len(ends)) if batch.weight is None else batch.weight[added]
        size = len(self._row)
        half = csr_array((weights, ends.T), shape=(size, size))
        self.method.start(csr_array(half + half.T))
        return self

    def add_vertex(self, vertex: Id, neighbors: Sequence[Id]) -> NDArray[np.float32]:
        """Let a vertex arrive with its edges; its vector. Neighbors that are not known arrive just before it."""
        for other in neighbors:
            if other not in self._row:
                self._arrive(other, [])
        return self._arrive(vertex, neighbors)

    def partial_fit(self, edges: Any) -> Moved:
        """Take in a batch, one arrival after the other: rows in sequence with the same source are one."""
        batch = Batch.from_any(edges)
        _only_added(batch)
        if batch.weight is not None and (batch.weight != 1).any():
            raise InvalidValueError.of("weight", "none: baselines stream unweighted edges", batch.weight)
        before = self.method.vectors().copy()
        for vertex, neighbors in _arrivals(batch):
            self.add_vertex(vertex, neighbors)
        after = self.method.vectors()
        same = (before == after[: len(before)]).all(axis=1)
        rows = np.concatenate([np.flatnonzero(~same), np.arange(len(before), len(after))])
        names = list(self._row)
        return Moved([names[row] for row in rows.tolist()], after[rows])

    def preview(self, neighbors: Sequence[Id]) -> NDArray[np.float32]:
        """What a newcomer with these known neighbors would be given; nothing changes."""
        return self.method.place(self._rows(neighbors).tolist())

    def vectors(self, ids: Any) -> NDArray[np.float32]:
        """The vectors of vertices, a row each."""
        return self.method.vectors()[self._rows(ids_to_list(id_column(ids)))]

    def _arrive(self, vertex: Id, neighbors: Sequence[Id]) -> NDArray[np.float32]:
        row = self._row.get(vertex, len(self._row))
        vector = self.method.arrive(row, self._rows(neighbors).tolist())
        self._row[vertex] = row
        return vector

    def _rows(self, names: Sequence[Id]) -> NDArray[np.int64]:
        missing = [name for name in names if name not in self._row]
        if missing:
            raise UnknownVertexError(missing)
        return np.array([self._row[name] for name in names], np.int64)


def _only_added(batch: Batch) -> None:
    if batch.op is not None and np.isin(batch.op, [Op.REMOVE, Op.REMOVE_VERTEX]).any():
        raise InvalidValueError.of("batch", "additions only: baselines cannot remove", "a removal")


def _arrivals(batch: Batch) -> Iterator[tuple[Id, list[Id]]]:
    """The sources of a batch with their neighbors, as long as the source stays the same."""
    src, dst = ids_to_list(batch.src), ids_to_list(batch.dst)
    named = [False] * len(batch) if batch.op is None else (batch.op == Op.VERTEX).tolist()
    begin = 0
    for row in range(1, len(batch) + 1):
        if row == len(batch) or src[row] != src[begin]:
            yield src[begin], [dst[edge] for edge in range(begin, row) if not named[edge]]
            begin = row
