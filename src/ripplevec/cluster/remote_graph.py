"""The graph of a cluster as far as it is asked whether batches can be applied; asked for in one go."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, as_list, take

Rows = NDArray[np.int64]


class KnownElsewhere:
    """What a batch may ask of a graph that is not here."""

    def __init__(
        self,
        directed: bool,
        find: Callable[[IdColumn], Rows],
        rows_of: Callable[[IdColumn], Rows],
        has_edges: Callable[[Rows, Rows], NDArray[np.bool_]],
    ) -> None:
        self.directed, self.rows_of, self.has_edges, self._find = directed, rows_of, has_edges, find
        self._rows: dict[Id, int] = {}
        self._edges: dict[tuple[Id, Id], bool] = {}

    def look_up(self, batch: Batch) -> None:
        """Fetch what `has_vertex` and `has_edge` will be asked of a batch."""
        removed = np.flatnonzero((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX))
        src, dst = (take(column, removed) for column in (batch.src, batch.dst))
        rows = self._find(src), self._find(dst)
        for column, found in zip((src, dst), rows, strict=True):
            self._rows.update(zip(as_list(column), found.tolist(), strict=True))
        both = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
        there = self.has_edges(rows[0][both], rows[1][both])
        names = zip(as_list(take(src, both)), as_list(take(dst, both)), strict=True)
        self._edges.update(zip(names, there.tolist(), strict=True))

    def has_vertex(self, name: Id) -> bool:
        """Whether there is a vertex of this name."""
        return self._rows[name] >= 0

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Whether there is an edge between two names (from src to dst when directed)."""
        return self._edges.get((src, dst), False)
