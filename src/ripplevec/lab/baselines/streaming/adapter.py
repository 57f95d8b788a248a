"""Adapter that gives a streaming baseline the methods of an `Embedder`, so that the same protocols run on both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Batch, Id, Op, id_column, ids_to_list
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.lab.baselines.streaming.base import StreamingBaseline


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


def _arrivals(batch: Batch) -> Iterator[tuple[Id, list[Id]]]:
    """Yield each run of rows with the same source as the source and its neighbors."""
    src, dst = ids_to_list(batch.src), ids_to_list(batch.dst)
    is_vertex_row = [False] * len(batch) if batch.op is None else (batch.op == Op.VERTEX).tolist()
    begin = 0
    for row in range(1, len(batch) + 1):
        if row == len(batch) or src[row] != src[begin]:
            yield src[begin], [dst[edge] for edge in range(begin, row) if not is_vertex_row[edge]]
            begin = row
