"""Row codes, the assignment of vertices to shards, and the splitting and joining of arrays by shard.

A *row code* identifies a vertex outside its shard: (row on its shard) · shards + (shard). All rows that the driver
handles are row codes.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, concat_ids, take_ids
from ripplevec.cluster import _kernels as kernels
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.id_table import encode_ids


def split_positions(codes: RowArray, shards: int) -> list[RowArray]:
    """Return, for each shard, the positions of its row codes, in order; numbers of shards are row codes too."""
    return split_at(*kernels.group_by_shard(codes, shards))


def split_at(array: NDArray[Any], bounds: list[int] | NDArray[np.int64]) -> list[NDArray[Any]]:
    """Return the parts of an array between consecutive bounds, as views; much faster than `np.split`."""
    return [array[first:last] for first, last in pairwise(bounds if isinstance(bounds, list) else bounds.tolist())]


def split_rows(codes: RowArray, shards: int) -> list[RowArray]:
    """Decode row codes: return the rows on each shard, in order."""
    rows = codes // shards
    return [rows[positions] for positions in split_positions(codes, shards)]


def assign_shards(column: IdColumn, shards: int) -> RowArray:
    """Return the shard of each id: a hash that is the same on every machine."""
    owner = np.empty(len(column), np.int64)
    kernels.hash_to_shards(encode_ids(column), shards, owner)
    return owner


def find_runs(column: IdColumn) -> RowArray:
    """Return where each run of equal consecutive ids begins: a new vertex usually arrives with several edges."""
    begin = np.empty(len(column), np.int64)
    return begin[: kernels.find_runs(encode_ids(column), begin)]


def scatter_id_columns(parts: list[IdColumn], positions: list[RowArray]) -> IdColumn:
    """Assemble id columns into one, with each id at its position."""
    order = np.argsort(np.concatenate(positions)) if positions else np.empty(0, np.int64)
    return take_ids(join_id_columns(parts), order)


def join_id_columns(parts: list[IdColumn]) -> IdColumn:
    """Concatenate id columns, which may hold ids of different types."""
    nonempty: list[IdColumn] = [part for part in parts if len(part)]
    return reduce(concat_ids, nonempty) if nonempty else np.empty(0, np.int64)
