"""Hubs: a long list of neighbors is not searched but looked up.

A hub has an index, a hash table of the positions of its neighbors, in an arena of its own. It is made when an edge is
added to the hub, and forgotten when the list is moved or something is taken out of it: then positions change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ripplevec.graph._block_kernels import (
    HUB_SIZE_CLASS,
    INDEX_ARENA_TOP,
    INDEX_FREE_LISTS,
    NO_INDEX,
    Links,
    allocate_block,
    free_block,
)


@njit(cache=True, nogil=True, forceinline=True)
def _home_cell(other: int, mask: int) -> Any:
    """Where in an index the search for a neighbor begins."""
    return np.int64((np.uint64(other) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


@njit(cache=True, nogil=True)
def insert_into_index(links: Links, row: int, other: int, position: int) -> None:
    """Enter a neighbor into the index of a row."""
    base, mask = links.index_begin[row], (2 << links.size_class[row]) - 1
    place = _home_cell(other, mask)
    while links.index_cells[base + place] != 0:
        place = (place + 1) & mask
    links.index_cells[base + place] = position + 1


@njit(cache=True, nogil=True)
def _build_index(links: Links, row: int) -> None:
    """Have an index of a hub."""
    room = links.size_class[row]
    base = allocate_block(links.allocator, INDEX_FREE_LISTS, INDEX_ARENA_TOP, links.index_cells, room + 1)
    links.index_cells[base : base + (2 << room)] = 0
    links.index_begin[row] = base
    for i in range(links.degree[row]):
        insert_into_index(links, row, links.neighbor[links.begin[row] + i], i)


@njit(cache=True, nogil=True, forceinline=True)
def free_index(links: Links, row: int) -> None:
    if links.index_begin[row] != NO_INDEX:
        free_block(links.allocator, INDEX_FREE_LISTS, links.index_cells, links.index_begin[row], links.size_class[row] + 1)
        links.index_begin[row] = NO_INDEX


@njit(cache=True, nogil=True)
def find_in_index(links: Links, row: int, other: int) -> int:
    """The slot of a neighbor by the index of a row, -1 where there is none."""
    base, mask, begin = links.index_begin[row], (2 << links.size_class[row]) - 1, links.begin[row]
    place = _home_cell(other, mask)
    while links.index_cells[base + place] != 0:
        at = begin + links.index_cells[base + place] - 1
        if links.neighbor[at] == other:
            return at
        place = (place + 1) & mask
    return -1


@njit(cache=True, nogil=True, forceinline=True)
def ensure_index(links: Links, row: int) -> None:
    if links.size_class[row] >= HUB_SIZE_CLASS and links.index_begin[row] == NO_INDEX:
        _build_index(links, row)


@njit(cache=True, nogil=True)
def is_index_consistent(links: Links, row: int) -> bool:
    """Whether every neighbor is found by the index of a row, and nothing else stands in it."""
    base, size = links.index_begin[row], 2 << links.size_class[row]
    for at in range(links.begin[row], links.begin[row] + links.degree[row]):
        if find_in_index(links, row, links.neighbor[at]) != at:
            return False
    return np.count_nonzero(links.index_cells[base : base + size]) == links.degree[row]
