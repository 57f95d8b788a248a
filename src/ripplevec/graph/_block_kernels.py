"""The adjacency as kernels see it, and how its memory is given out: blocks of power-of-two size, recycled.

A block that is no longer needed joins the free list of its size; its first two cells hold the address of the next free
one. There are two arenas: one of slots, which hold the neighbors, and one of places, which hold the indices of hubs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

MIN_SIZE_CLASS = 1  # the smallest block has 2**1 slots: enough to hold a free-list address
NO_BLOCK = -1
ARENA_TOP = 40  # heads[TOP]: the first slot of the arena never used
EDGE_COUNT = 41  # heads[EDGES]: edges alive
LOOP_COUNT = 42  # heads[LOOPS]: self-loops left out so far
INDEX_ARENA_TOP = 43  # heads[INDEX_TOP]: the first place of the arena of indices never used
INDEX_FREE_LISTS = 44  # heads[INDICES + room]: the free blocks of 2**room places there
MAX_SIZE_CLASS = INDEX_FREE_LISTS + 40  # heads[WIDEST]: the largest room a list has ever had
ALLOCATOR_LENGTH = MAX_SIZE_CLASS + 1
HUB_SIZE_CLASS = 11  # a list in a block of 2**11 slots or more has an index
NO_INDEX = -1


class Links(NamedTuple):
    """The adjacency as kernels see it: per row, then per slot of the arena, then the allocator."""

    begin: NDArray[np.int64]
    degree: NDArray[np.int32]
    size_class: NDArray[np.int8]
    strength: NDArray[np.float64]
    in_strength: NDArray[np.float64]  # the same array as `strength` when undirected
    neighbor: NDArray[np.int32]
    weight: NDArray[np.float32]
    outgoing: NDArray[np.float32]  # the part of `weight` that points away; the same array when undirected
    incoming: NDArray[np.float32]  # the part that points here; likewise
    allocator: NDArray[np.int64]
    index_begin: NDArray[np.int64]  # per row, where its index begins in `places`
    index_cells: NDArray[np.int32]  # 1 + the position of a neighbor in its list; 0 where a place is empty


def create_allocator() -> NDArray[np.int64]:
    """An allocator that has given out nothing."""
    heads = np.full(ALLOCATOR_LENGTH, -1, np.int64)
    heads[ARENA_TOP : INDEX_ARENA_TOP + 1] = 0
    heads[MAX_SIZE_CLASS] = 0
    return heads


@njit(cache=True, nogil=True, forceinline=True)
def allocate_block(heads: NDArray[np.int64], lists: int, top: int, cells: NDArray[np.int32], room: int) -> int:
    """The first cell of a block of 2**room of them: a recycled one, else fresh from the top."""
    at = heads[lists + room]
    if at >= 0:
        heads[lists + room] = ((np.int64(cells[at]) << 31) | np.int64(cells[at + 1])) - 1
        return at
    at = heads[top]
    heads[top] = at + (1 << room)
    return at


@njit(cache=True, nogil=True)
def can_allocate(links: Links, room: int) -> bool:
    """Whether there is a block of 2**room slots."""
    return links.allocator[room] >= 0 or links.allocator[ARENA_TOP] + (1 << room) <= links.neighbor.size


@njit(cache=True, nogil=True, forceinline=True)
def free_block(heads: NDArray[np.int64], lists: int, cells: NDArray[np.int32], at: int, room: int) -> None:
    following = heads[lists + room] + 1
    cells[at] = following >> 31
    cells[at + 1] = following & 0x7FFFFFFF
    heads[lists + room] = at
