"""Assignment of vertices to shards, and of the operations in a batch to the shards that store their endpoints.

A *row code* identifies a vertex outside its shard: (row on its shard) · shards + (shard). All rows that the driver
handles are row codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, Op, ids_to_list, take_ids
from ripplevec.cluster import _kernels as kernels
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.id_table import encode_ids

if TYPE_CHECKING:
    from ripplevec.cluster.transport import Transport


class EdgeEndpoints(NamedTuple):
    """Both endpoints of the operations in one step of a batch, and the new vertices among them."""

    op: NDArray[np.int8]  # (m,): the operations
    codes: RowArray  # (m, 2): row codes of both endpoints
    numbers: RowArray  # (m, 2): their arrival numbers
    new_codes: RowArray  # row codes of new vertices, in order of arrival
    new_numbers: RowArray  # arrival numbers of new vertices


class ShardOperations(NamedTuple):
    """The operations of one step that concern one shard, sent to it as a single object."""

    new_rows: RowArray  # rows of new vertices
    new_numbers: RowArray  # their arrival numbers
    endpoints: RowArray  # (m, 4): local row, its neighbor as stored in the slot, and the arrival numbers of both
    op: NDArray[np.int8]
    weight: NDArray[np.float32]
    side: NDArray[np.int8]  # which endpoint of the operation the local one is: 0 source, 1 target


def split_positions(owner: RowArray, shards: int) -> list[RowArray]:
    """Return, for each shard, the positions of its number in `owner`, in order; one sort for any number of shards."""
    sort_key = owner.astype(np.uint16 if shards <= 1 << 16 else np.int64)  # NumPy sorts 16-bit integers by radix sort
    order = np.argsort(sort_key, kind="stable")
    return np.split(order, np.searchsorted(sort_key[order], np.arange(1, shards)))


def split_rows(codes: RowArray, shards: int) -> list[RowArray]:
    """Decode row codes: return the rows on each shard, in order."""
    rows = codes // shards
    return [rows[positions] for positions in split_positions(codes % shards, shards)]


def assign_shards(column: IdColumn, shards: int) -> RowArray:
    """Return the shard of each id: a hash that is the same on every machine."""
    owner = np.empty(len(column), np.int64)
    kernels.hash_to_shards(encode_ids(column), shards, owner)
    return owner


def intern_endpoints(
    transport: Transport, src: IdColumn, dst: IdColumn, op: NDArray[np.int8], next_arrival: int
) -> EdgeEndpoints:
    """Give every endpoint a row on its shard; number new vertices from `next_arrival` in order of first occurrence."""
    shards, codes, numbers = transport.size, *np.empty((2, len(src), 2), np.int64)
    positions = [split_positions(assign_shards(column, shards), shards) for column in (src, dst)]
    ids = [[take_ids(column, part) for part in parts] for column, parts in zip((src, dst), positions, strict=True)]
    for shard, result in enumerate(transport.get(transport.call("intern", list(zip(*ids, strict=True))))):
        for end in range(2):
            entries = positions[end][shard], end
            codes[entries], numbers[entries] = result[2 * end] * shards + shard, result[2 * end + 1]
    new = np.flatnonzero(numbers.ravel() < 0)
    index, new_codes, _ = kernels.index_distinct(codes.ravel()[new])
    numbers.ravel()[new] = next_arrival + index
    return EdgeEndpoints(op, codes, numbers, new_codes, next_arrival + np.arange(new_codes.size))


def send_operations(transport: Transport, endpoints: EdgeEndpoints, weight: NDArray[np.float32]) -> None:
    """Make every shard number its new vertices and apply the operations to its own endpoints."""
    size = 2 * len(endpoints.codes)
    origin, columns = np.empty(size, np.int64), np.empty((size, 4), np.int64)
    begin = kernels.route_endpoints(endpoints.codes, endpoints.numbers, transport.size, origin, columns)
    operation, side = origin >> 1, (origin & 1).astype(np.int8)
    op, weight = endpoints.op[operation], weight[operation]
    by_shard = []
    for shard, new in enumerate(split_positions(endpoints.new_codes % transport.size, transport.size)):
        local = slice(begin[shard], begin[shard + 1])
        new_rows, new_numbers = endpoints.new_codes[new] // transport.size, endpoints.new_numbers[new]
        by_shard.append(ShardOperations(new_rows, new_numbers, columns[local], op[local], weight[local], side[local]))
    transport.call("apply_operations", by_shard)


def schedule_waves(endpoints: EdgeEndpoints, first_new: int, count: int, shards: int) -> tuple[RowArray, RowArray]:
    """Schedule the admission of new vertices: the wave of each, and its step within the wave on its shard.

    A vertex is admitted after the earlier new vertices that it has an edge to: in a later wave if such a vertex is on
    another shard, in a later step of the same wave if it is on the same shard.
    """
    adds = endpoints.op == Op.ADD
    columns = endpoints.codes, endpoints.numbers
    if not adds.all():
        columns = endpoints.codes[adds], endpoints.numbers[adds]
    schedule: tuple[RowArray, RowArray] = kernels.schedule_waves(*columns, first_new, count, shards)
    return schedule


def merge_id_columns(parts: list[IdColumn], positions: list[RowArray]) -> IdColumn:
    """Merge id columns into one, with each id at its position."""
    order = np.argsort(np.concatenate(positions)) if positions else np.empty(0, np.int64)
    nonempty = [part for part in parts if len(part)]
    if all(isinstance(part, np.ndarray) for part in nonempty):
        return np.concatenate([np.empty(0, np.int64), *nonempty])[order]
    if all(isinstance(part, pa.Array) for part in nonempty):
        return pa.concat_arrays(nonempty).take(pa.array(order))
    ids = [vertex for part in nonempty for vertex in ids_to_list(part)]
    return [ids[position] for position in order.tolist()]
