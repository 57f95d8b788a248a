"""The halo of a shard: temporary copies of rows from other shards, stored after the shard's own rows.

While a halo is mapped, the slots of remote neighbors point to these copies, so the kernels for one machine can read
them like any other row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as kernels
from ripplevec.cluster.mesh import Mesh
from ripplevec.cluster.routing import split_at
from ripplevec.cluster.row_exchange import ReceivedRows, group_rows
from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.rules._kernels import UNLIMITED, count_neighbor_reads
from ripplevec.rules.vector_store import VectorStore


class RemoteNeighbors:
    """The distinct remote neighbors in some slots, grouped by shard, and a halo row for each.

    Attributes
    ----------
    codes
        Row codes of the halo rows `first_row` to `end_row`, grouped by shard.
    bounds
        Where the codes of each shard begin, and the end of the last ones.
    """

    def __init__(self, adjacency: Adjacency, slots: RowArray, shards: int, first_row: int) -> None:
        self._adjacency, self._slots, self.shards, self.first_row = adjacency, slots, shards, first_row
        self._original = adjacency.links.neighbor[slots]
        codes = -1 - self._original.astype(np.int64)
        index, self._distinct, self._table = kernels.index_distinct(codes)
        order, self.bounds = kernels.group_by_shard(self._distinct, shards)
        self.codes = self._distinct[order]
        self._row_of_index = np.empty_like(order)
        self._row_of_index[order] = first_row + np.arange(order.size)
        self._row_of_slot = self._row_of_index[index]
        self.end_row = first_row + order.size

    @property
    def requested(self) -> list[RowArray]:
        """For each shard, the rows that are needed from it."""
        return split_at(self.codes // self.shards, self.bounds)

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

    def request(self, mesh: Mesh, *numbers: int) -> tuple[ReceivedRows, NDArray[np.int64]]:
        """Send the requests for the halo rows, together with all other shards.

        Returns the rows that the shards request from this one, and the numbers that each shard has sent along.
        """
        (requested,), all_numbers = mesh.exchange_rows(
            group_rows([self.codes // self.shards], self.bounds), numbers=numbers
        )
        return requested, all_numbers

    def fill(
        self, mesh: Mesh, requested: ReceivedRows, block: NDArray[Any] | None = None, *, with_placed: bool = False
    ) -> None:
        """Send the rows that other shards have requested, and store those that this shard has requested.

        They are rows of the store, optionally with their `placed` flags, or of another block with as many rows.
        """
        store, halo_rows, (rows,) = self._store, slice(self.first_row, self.end_row), requested.columns
        source = store.kernel_array if block is None else block
        group = group_rows([gather_rows(source, rows)], requested.bounds)._replace(into=[source[halo_rows]])
        if not with_placed:
            mesh.exchange_rows(group)
            return
        flags = group_rows([store.placed[rows]], requested.bounds)
        (_, placed), _ = mesh.exchange_rows(group, flags)
        store.placed[halo_rows] = placed.columns[0]  # a column of a table: bytes cannot be received in it

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

    def push(self, mesh: Mesh, rows: RowArray, bounds: NDArray[np.int64], stamp: int = 0) -> None:
        """Send rows to the shards that read them, and store the rows that other shards push.

        Received rows are marked with `stamp`; rows that are not in this halo are ignored.
        """
        vectors = gather_rows(self._store.kernel_array, rows)
        (pushed,), _ = mesh.exchange_rows(group_rows([rows.astype(np.int32), vectors], bounds))
        self.receive_pushed(pushed, stamp)

    def receive_pushed(self, pushed: ReceivedRows, stamp: int = 0) -> None:
        """Store pushed rows: their row numbers on the shards that pushed them, and their vectors."""
        (remote_rows, vectors), store = pushed.columns, self._store
        if remote_rows.size:
            rows = self.find_rows(remote_rows * np.int64(self.shards) + pushed.repeat_shards())
            kernels.store_rows(rows, vectors, store.kernel_array, store.placed, store.seen, stamp)


def collect_slots(
    adjacency: Adjacency, rows: RowArray, limit: int = UNLIMITED, key: int = 0, *, remote_only: bool = False
) -> tuple[RowArray, RowArray]:
    """Return the slots that rows read, optionally of remote neighbors only, and the row of each slot."""
    size = int(count_neighbor_reads(adjacency.links, rows, limit))
    slots, owners = np.empty(size, np.int64), np.empty(size, np.int64)
    found = kernels.collect_slots(adjacency.links, adjacency.arrival, rows, limit, key, remote_only, slots, owners)
    return slots[:found], owners[:found]


def gather_rows(block: NDArray[Any], rows: RowArray) -> NDArray[Any]:
    """Copy rows of a block into one matrix."""
    return np.take(block, rows, axis=0, mode="clip")  # "raise" is slower
