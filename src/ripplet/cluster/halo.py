"""The halo: rows of other shards that a step reads, for as long as it takes, behind the rows that are here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.cluster import _kernels as kernels
from ripplet.cluster.shares import shares
from ripplet.graph._block_kernels import Links
from ripplet.rules.field import Field

Rows = NDArray[np.int64]


class Halo:
    """What some slots of a shard need: asked for by shard, received in the same order, put where slots can point."""

    def __init__(self, links: Links, slots: Rows, shards: int, needed: NDArray[np.bool_] | None = None) -> None:
        """Of the neighbours in `slots`, all on other shards, those that are `needed`, each once."""
        self._slots = slots
        self._kept = links.neighbour[slots]
        codes = -1 - self._kept.astype(np.int64)
        asked = codes if needed is None else codes[needed]
        place, distinct = np.empty(asked.size, np.int64), np.empty(asked.size, np.int64)
        distinct = distinct[: kernels.numbered(asked, place, distinct)]
        by_shard = shares(distinct % shards, shards)
        order = np.concatenate(by_shard)
        self.codes = distinct[order]
        self.parts: list[Rows] = [distinct[places] // shards for places in by_shard]
        where = np.empty_like(order)
        where[order] = np.arange(order.size)
        self._place = np.full(codes.size, order.size, np.int64)  # behind the others: a row for those not asked for
        self._place[slice(None) if needed is None else needed] = where[place]

    @contextmanager
    def here(self, field: Field, received: Sequence[NDArray[Any]]) -> Iterator[int]:
        """While this lasts the slots point to rows with what was received; the first of these rows."""
        graph, size = field.graph, self.codes.size
        first = graph.rows
        graph.adjacency.ensure_rows(first + size + 1)
        field.grow()
        self._write(field, first, received)
        graph.adjacency.links.neighbour[self._slots] = first + self._place
        try:
            yield first
        finally:
            graph.adjacency.links.neighbour[self._slots] = self._kept
            lent = slice(first, first + size + 1)
            graph.arrival[lent], field.placed[lent] = -1, 0

    def _write(self, field: Field, first: int, received: Sequence[NDArray[Any]]) -> None:
        field.seen[first : first + self.codes.size + 1] = 0
        for asked, part in zip(self.parts, received, strict=True):
            rows = slice(first, first + asked.size)
            if part.dtype.names is not None:
                for name, column in _marks(field).items():
                    column[rows] = part[name]
            else:
                field.cells[rows] = part[: asked.size]
                if len(part) > asked.size:
                    field.placed[rows] = _bytes_behind(part, asked.size)
            first = rows.stop


def packed(field: Field, rows: Rows, kind: str) -> NDArray[Any]:
    """What another shard asks of rows: their `vectors`; these `and_places`, who has one; or just `marks`, without.

    Vectors are a matrix that is copied as it is. Whether they are placed is a byte each, in rows behind them.
    """
    if kind == "marks":
        columns = _marks(field)
        marks = np.empty(rows.size, [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            marks[name] = column[rows]
        return marks
    cells = field.cells
    behind = 0 if kind == "vectors" else -(-rows.size // (cells.shape[1] * cells.itemsize))
    part = np.empty((rows.size + behind, cells.shape[1]), cells.dtype)
    kernels.pack(cells, np.array(rows), part)
    if behind:
        _bytes_behind(part, rows.size)[:] = field.placed[rows]
    return part


def _marks(field: Field) -> dict[str, NDArray[Any]]:
    """What is noted of a vertex."""
    return {"arrival": field.graph.arrival, "placed": field.placed, "seen": field.seen}


def _bytes_behind(part: NDArray[Any], rows: int) -> NDArray[np.uint8]:
    """As many bytes as there are rows, behind them."""
    return part[rows:].reshape(-1).view(np.uint8)[:rows]
