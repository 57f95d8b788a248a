"""The halo: rows of other shards that are read here, behind the rows that are here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as kernels
from ripplevec.cluster.routing import split_positions
from ripplevec.rules.vector_store import VectorStore

Rows = NDArray[np.int64]
PushedRows: TypeAlias = "tuple[NDArray[np.int32], NDArray[Any]]"
"""Rows of a shard that another one looks at: which they are, and their vectors."""


class Halo:
    """The neighbors that some slots have on other shards, each once, by shard; and room for their rows."""

    def __init__(self, store: VectorStore, slots: Rows, shards: int, first: int) -> None:
        """Room from row `first` on."""
        self._store, self._slots, self.shards, self.first = store, slots, shards, first
        self._kept = store.graph.adjacency.links.neighbor[slots]
        codes = -1 - self._kept.astype(np.int64)
        place, self._distinct, self._table = kernels.index_distinct(codes)
        by_shard = split_positions(self._distinct % shards, shards)
        order = np.concatenate(by_shard)
        self.codes = self._distinct[order]
        self._row = np.empty_like(order)
        self._row[order] = first + np.arange(order.size)
        self._points_to = self._row[place]
        self.parts: list[Rows] = [self._distinct[places] // shards for places in by_shard]
        self.end = first + order.size
        store.graph.adjacency.ensure_rows(self.end)
        store.grow()

    def rows_of(self, codes: Rows) -> Rows:
        """The rows that stand for codes, −1 for those that are not in it."""
        place = np.empty(codes.size, np.int64)
        kernels.lookup_indices(codes, self._table, self._distinct, place)
        return np.where(place < 0, -1, self._row[place] if self._row.size else -1)

    def receive(self, parts: Sequence[NDArray[Any]]) -> None:
        """Have what was asked for, each part in the order asked."""
        store, first = self._store, self.first
        for asked, part in zip(self.parts, parts, strict=True):
            rows = slice(first, first + asked.size)
            store.kernel_array[rows] = part[: asked.size]
            if len(part) > asked.size:
                store.placed[rows] = _bytes_behind(part, asked.size)
            first = rows.stop

    @contextmanager
    def here(self, part: slice = slice(None)) -> Iterator[None]:
        """While this lasts the slots, or some of them, point to these rows."""
        links, slots = self._store.graph.adjacency.links, self._slots[part]
        links.neighbor[slots] = self._points_to[part]
        try:
            yield
        finally:
            links.neighbor[slots] = self._kept[part]

    def close(self) -> None:
        """Leave nothing behind that newcomers could mistake for their own."""
        lent = slice(self.first, self.end)
        self._store.graph.arrival[lent], self._store.placed[lent], self._store.seen[lent] = -1, 0, 0


class PrefetchedHalo(Halo):
    """Those on other shards whom the newcomers of a batch know. They come unasked, and again when they have moved."""

    def know(self, codes: Rows, numbers: Rows) -> None:
        """Note arrival numbers, of some who may not be in it."""
        rows = self.rows_of(codes)
        self._store.graph.arrival[rows[rows >= 0]] = numbers[rows >= 0]

    def take_in(self, shown: Sequence[PushedRows], stamp: int = 0) -> None:
        """Have the rows that each shard shows, of whom not all may be in it; they are seen at this stamp."""
        store = self._store
        for shard, (there, vectors) in enumerate(shown):
            rows = self.rows_of(there * np.int64(self.shards) + shard)
            kernels.scatter_rows(vectors, rows, store.kernel_array, store.placed)
            store.seen[rows[rows >= 0]] = stamp


def show(store: VectorStore, rows: Rows) -> PushedRows:
    """Rows with their vectors, for a shard that looks at them."""
    return rows.astype(np.int32), packed(store, rows, "vectors")


def packed(store: VectorStore, rows: Rows, kind: str) -> NDArray[Any]:
    """What another shard asks of rows: their `vectors`; or these `and_places`, who has one: bytes in rows behind them.

    Vectors are a matrix that is copied as it is.
    """
    cells = store.kernel_array
    behind = 0 if kind == "vectors" else -(-rows.size // (cells.shape[1] * cells.itemsize))
    part = np.empty((rows.size + behind, cells.shape[1]), cells.dtype)
    kernels.gather_rows(cells, np.array(rows), part)  # what comes from elsewhere is read-only: compiled for that, too
    if behind:
        _bytes_behind(part, rows.size)[:] = store.placed[rows]
    return part


def _bytes_behind(part: NDArray[Any], rows: int) -> NDArray[np.uint8]:
    """As many bytes as there are rows, behind them."""
    return part[rows:].reshape(-1).view(np.uint8)[:rows]
