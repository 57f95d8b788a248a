"""Routing: which shard has a vertex, and what each shard has to know of a batch.

A row, to whoever is not a shard, is a code: (the row on its shard) · shards + (the shard).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, Op, ids_to_list, take_ids
from ripplevec.cluster import _kernels as kernels
from ripplevec.graph.id_table import encode_ids

if TYPE_CHECKING:
    from ripplevec.cluster.transport import Transport

Rows = NDArray[np.int64]


class ShardOperations(NamedTuple):
    """What a shard has to know of a step: one thing to send, not many."""

    arrived: Rows  # rows of newcomers
    arrived_as: Rows  # and their numbers
    ends: Rows  # (m, 4): of the ends that are there the row, the neighbor, and the numbers of both
    op: NDArray[np.int8]
    weight: NDArray[np.float32]
    way: NDArray[np.int8]  # which end of the operation it is


def split_positions(owner: Rows, shards: int) -> list[Rows]:
    """Where each shard is the owner, in order; one pass for however many shards there are."""
    small = owner.astype(np.uint16 if shards <= 1 << 16 else np.int64)  # few bits are sorted by counting
    order = np.argsort(small, kind="stable")
    return np.split(order, np.searchsorted(small[order], np.arange(1, shards)))


def split_rows(codes: Rows, shards: int) -> list[Rows]:
    """What codes stand for: the rows of each shard, in order."""
    rows = codes // shards
    return [rows[places] for places in split_positions(codes % shards, shards)]


class EdgeEndpoints(NamedTuple):
    """The ends of the operations of a step, a row each."""

    op: NDArray[np.int8]
    codes: Rows  # (m, 2)
    numbers: Rows  # (m, 2): arrival numbers
    arrived: Rows  # codes of newcomers, in order of arrival
    arrived_as: Rows  # and their numbers


def assign_shards(column: IdColumn, shards: int) -> Rows:
    """The shard that each name falls to."""
    found = np.empty(len(column), np.int64)
    kernels.hash_to_shards(encode_ids(column), shards, found)
    return found


def intern_endpoints(
    transport: Transport, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], next_arrival: int
) -> EdgeEndpoints:
    """Both ends of every operation; newcomers are numbered in the order of their first mention."""
    shards, codes, numbers = transport.size, *np.empty((2, len(src), 2), np.int64)
    where = [split_positions(assign_shards(column, shards), shards) for column in (src, dst)]
    names = [[take_ids(column, rows) for rows in parts] for column, parts in zip((src, dst), where, strict=True)]
    for shard, answer in enumerate(transport.get(transport.call("intern", list(zip(*names, strict=True))))):
        for end in range(2):
            there = where[end][shard], end
            codes[there], numbers[there] = answer[2 * end] * shards + shard, answer[2 * end + 1]
    new = np.flatnonzero(numbers.ravel() < 0)
    place, arrived, _ = kernels.index_distinct(codes.ravel()[new])
    numbers.ravel()[new] = next_arrival + place
    return EdgeEndpoints(op, codes, numbers, arrived, next_arrival + np.arange(arrived.size))


def send_operations(transport: Transport, ends: EdgeEndpoints, weight: NDArray[np.float32]) -> None:
    """Have every shard number its newcomers and change the ends that are its own."""
    size = 2 * len(ends.codes)
    end_of, columns = np.empty(size, np.int64), np.empty((size, 4), np.int64)
    begin = kernels.route_endpoints(ends.codes, ends.numbers, transport.size, end_of, columns)
    edge, way = end_of >> 1, (end_of & 1).astype(np.int8)
    op, weight = ends.op[edge], weight[edge]
    entries = []
    for shard, mine in enumerate(split_positions(ends.arrived % transport.size, transport.size)):
        own = slice(begin[shard], begin[shard + 1])
        arrived = ends.arrived[mine] // transport.size, ends.arrived_as[mine]
        entries.append(ShardOperations(*arrived, columns[own], op[own], weight[own], way[own]))
    transport.call("apply_operations", entries)


def waves(ends: EdgeEndpoints, first_new: int, count: int, shards: int) -> tuple[Rows, Rows]:
    """When each newcomer can be admitted: the wave, and the turn within it on its own shard."""
    adds = ends.op == Op.ADD
    columns = (ends.codes, ends.numbers) if adds.all() else (ends.codes[adds], ends.numbers[adds])
    found: tuple[Rows, Rows] = kernels.schedule_waves(*columns, first_new, count, shards)
    return found


def merge_id_columns(parts: list[IdColumn], places: list[Rows]) -> IdColumn:
    """Columns of names as one, each name at its place."""
    order = np.argsort(np.concatenate(places)) if places else np.empty(0, np.int64)
    full = [part for part in parts if len(part)]
    if all(isinstance(part, np.ndarray) for part in full):
        return np.concatenate([np.empty(0, np.int64), *full])[order]
    if all(isinstance(part, pa.Array) for part in full):
        return pa.concat_arrays(full).take(pa.array(order))
    names = [name for part in full for name in ids_to_list(part)]
    return [names[place] for place in order.tolist()]
