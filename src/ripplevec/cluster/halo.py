"""The halo of a shard: temporary copies of rows from other shards, stored after the shard's own rows.

While a halo is mapped, the slots of remote neighbors point to these copies, so the kernels for one machine can read
them like any other row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as kernels
from ripplevec.cluster.routing import split_positions
from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.rules._kernels import UNLIMITED, count_neighbor_reads
from ripplevec.rules.vector_store import VectorStore

PushedRows: TypeAlias = "tuple[NDArray[np.int32], NDArray[Any]]"
"""Rows that a shard sends without a request: the row numbers on the sending shard, and the vectors."""


class RemoteNeighbors:
    """The distinct remote neighbors in some slots, grouped by shard, and a halo row for each.

    Attributes
    ----------
    requested
        For each shard, the rows that are needed from it.
    codes
        Row codes of the halo rows `first_row` to `end_row`.
    """

    def __init__(self, adjacency: Adjacency, slots: RowArray, shards: int, first_row: int) -> None:
        self._adjacency, self._slots, self.shards, self.first_row = adjacency, slots, shards, first_row
        self._original = adjacency.links.neighbor[slots]
        codes = -1 - self._original.astype(np.int64)
        index, self._distinct, self._table = kernels.index_distinct(codes)
        by_shard = split_positions(self._distinct, shards)
        order = np.concatenate(by_shard)
        self.codes = self._distinct[order]
        self._row_of_index = np.empty_like(order)
        self._row_of_index[order] = first_row + np.arange(order.size)
        self._row_of_slot = self._row_of_index[index]
        self.requested: list[RowArray] = [self._distinct[positions] // shards for positions in by_shard]
        self.end_row = first_row + order.size

    def find_rows(self, codes: RowArray) -> RowArray:
        """Return the halo rows of codes, −1 for codes that are not in the halo."""
        rows = np.empty(codes.size, np.int64)
        kernels.lookup_values(codes, self._table, self._distinct, self._row_of_index, rows)
        return rows

    @contextmanager
    def mapped(self, part: slice = slice(None)) -> Iterator[None]:
        """Point the slots, or a part of them, to the halo rows inside the `with` block."""
        links, slots = self._adjacency.links, self._slots[part]
        links.neighbor[slots] = self._row_of_slot[part]
        try:
            yield
        finally:
            links.neighbor[slots] = self._original[part]


class Halo(RemoteNeighbors):
    """Remote neighbors with room for their rows in the store of a shard."""

    def __init__(self, store: VectorStore, slots: RowArray, shards: int, first_row: int) -> None:
        super().__init__(store.graph.adjacency, slots, shards, first_row)
        self._store = store
        store.graph.adjacency.ensure_rows(self.end_row)
        store.grow()

    def receive(self, parts: Sequence[NDArray[Any]], block: NDArray[Any] | None = None) -> None:
        """Store the requested rows: one part per shard, each in the requested order, as packed by `pack_rows`.

        They are rows of the store, or of another block with as many rows.
        """
        store, first = self._store, self.first_row
        target = store.kernel_array if block is None else block
        for requested, part in zip(self.requested, parts, strict=True):
            rows = slice(first, first + requested.size)
            target[rows] = part[: requested.size]
            if len(part) > requested.size:
                store.placed[rows] = _trailing_bytes(part, requested.size)
            first = rows.stop

    def clear(self) -> None:
        """Reset the metadata of the halo rows, so that new vertices can use these rows."""
        rows = slice(self.first_row, self.end_row)
        self._store.graph.arrival[rows], self._store.placed[rows], self._store.seen[rows] = -1, 0, 0


class PrefetchedHalo(Halo):
    """The remote neighbors of a batch's new vertices: their shards push them without a request, and again if moved."""

    def set_arrival_numbers(self, codes: RowArray, numbers: RowArray) -> None:
        """Store arrival numbers; codes that are not in the halo are ignored."""
        rows = self.find_rows(codes)
        self._store.graph.arrival[rows[rows >= 0]] = numbers[rows >= 0]

    def receive_pushed(self, pushed: Sequence[PushedRows], stamp: int = 0) -> None:
        """Store the rows that each shard pushed and mark them with `stamp`; ignore rows that are not in the halo."""
        store = self._store
        for shard, (remote_rows, vectors) in enumerate(pushed):
            if not remote_rows.size:
                continue
            rows = self.find_rows(remote_rows * np.int64(self.shards) + shard)
            kernels.scatter_rows(vectors, rows, store.kernel_array, store.placed)
            store.seen[rows[rows >= 0]] = stamp


def collect_slots(
    adjacency: Adjacency, rows: RowArray, limit: int = UNLIMITED, key: int = 0, *, remote_only: bool = False
) -> tuple[RowArray, RowArray]:
    """Return the slots that rows read, optionally of remote neighbors only, and the row of each slot."""
    size = int(count_neighbor_reads(adjacency.links, rows, limit))
    slots, owners = np.empty(size, np.int64), np.empty(size, np.int64)
    found = kernels.collect_slots(adjacency.links, adjacency.arrival, rows, limit, key, remote_only, slots, owners)
    return slots[:found], owners[:found]


def pack_pushed_rows(store: VectorStore, rows: RowArray) -> PushedRows:
    """Pack row numbers and vectors to be pushed to another shard."""
    return rows.astype(np.int32), pack_rows(store, rows)


def pack_rows(store: VectorStore, rows: RowArray, *, with_placed: bool = False) -> NDArray[Any]:
    """Copy the vectors of rows into one matrix; optionally append their `placed` flags as bytes in trailing rows.

    A single matrix is transferred without serialization.
    """
    source = store.kernel_array
    if not rows.size:
        return source[:0]
    trailing = -(-rows.size // (source.shape[1] * source.itemsize)) if with_placed else 0
    part = np.empty((rows.size + trailing, source.shape[1]), source.dtype)
    kernels.gather_rows(source, rows, part)
    if trailing:
        _trailing_bytes(part, rows.size)[:] = store.placed[rows]
    return part


def gather_rows(block: NDArray[Any], rows: RowArray) -> NDArray[Any]:
    """Copy rows of a block into one matrix."""
    part = np.empty((rows.size, block.shape[1]), block.dtype)
    kernels.gather_rows(block, rows, part)
    return part


def _trailing_bytes(part: NDArray[Any], rows: int) -> NDArray[np.uint8]:
    """Return the first `rows` bytes after the first `rows` rows of a matrix, as a view."""
    return part[rows:].reshape(-1).view(np.uint8)[:rows]
