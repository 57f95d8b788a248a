"""Memory layout of the adjacency: its arrays as kernels see them, and the allocator of neighbor blocks.

Neighbor lists live in one arena of slots. A list occupies a block of 2**k slots, where k is its size class. A block
that is no longer needed joins the free list of its size class; its first two cells then hold the address of the next
free block. A second arena holds the hash indexes of hubs (see `_hub_kernels`) and is managed in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import allocation_free

MIN_SIZE_CLASS = 1  # the smallest block has 2**1 slots: enough to hold a free-list address
NO_BLOCK = -1  # size class of a row without slots
HUB_SIZE_CLASS = 11  # a list in a block of 2**11 slots or more has a hash index
NO_INDEX = -1  # `index_begin` of a row without a hash index

# Cells of the allocator array. Cells 0 … 39 are the heads of the slot free lists, one per size class.
ARENA_TOP = 40  # first slot that was never allocated
EDGE_COUNT = 41  # number of edges
LOOP_COUNT = 42  # number of self-loops ignored so far
INDEX_ARENA_TOP = 43  # first index cell that was never allocated
INDEX_FREE_LISTS = 44  # heads of the free lists of index blocks: cell INDEX_FREE_LISTS + size class
MAX_SIZE_CLASS = INDEX_FREE_LISTS + 40  # largest size class that any list has ever had
ALLOCATOR_LENGTH = MAX_SIZE_CLASS + 1


class Links(NamedTuple):
    """Arrays of an adjacency: per row, per slot, and the allocator state."""

    begin: NDArray[np.int64]  # per row: first slot of its block
    degree: NDArray[np.int32]  # per row: number of neighbors
    size_class: NDArray[np.int8]  # per row: log2 of the size of its block, or NO_BLOCK
    strength: NDArray[np.float64]  # per row: sum of its weights
    in_strength: NDArray[np.float64]  # per row: sum of its incoming weights; the `strength` array if undirected
    neighbor: NDArray[np.int32]  # per slot: row of the neighbor
    weight: NDArray[np.float32]  # per slot: weight of the edge, both directions together
    outgoing: NDArray[np.float32]  # per slot: weight toward the neighbor; the `weight` array if undirected
    incoming: NDArray[np.float32]  # per slot: weight from the neighbor; the `weight` array if undirected
    allocator: NDArray[np.int64]  # free lists, arena tops and counters; see the cell numbers above
    index_begin: NDArray[np.int64]  # per row: first cell of its hash index, or NO_INDEX
    index_cells: NDArray[np.int32]  # hash indexes: 1 + the position of a neighbor in its list, 0 if the cell is empty


def create_allocator() -> NDArray[np.int64]:
    """Return the state of an allocator that has not allocated anything."""
    allocator = np.full(ALLOCATOR_LENGTH, -1, np.int64)
    allocator[ARENA_TOP : INDEX_ARENA_TOP + 1] = 0
    allocator[MAX_SIZE_CLASS] = 0
    return allocator


@allocation_free(forceinline=True)
def allocate_block(
    allocator: NDArray[np.int64], free_lists: int, top: int, cells: NDArray[np.int32], size_class: int
) -> int:
    """Allocate 2**size_class cells, from the free list if possible, else from the top; return the first cell."""
    at = allocator[free_lists + size_class]
    if at >= 0:
        allocator[free_lists + size_class] = ((np.int64(cells[at]) << 31) | np.int64(cells[at + 1])) - 1
        return at
    at = allocator[top]
    allocator[top] = at + (1 << size_class)
    return at


@allocation_free(inner=True)
def can_allocate(links: Links, size_class: int) -> bool:
    """Return whether a block of 2**size_class slots can be allocated without growing the arena."""
    return links.allocator[size_class] >= 0 or links.allocator[ARENA_TOP] + (1 << size_class) <= links.neighbor.size


@allocation_free(forceinline=True)
def free_block(
    allocator: NDArray[np.int64], free_lists: int, cells: NDArray[np.int32], at: int, size_class: int
) -> None:
    """Put a block on the free list of its size class."""
    following = allocator[free_lists + size_class] + 1
    cells[at] = following >> 31
    cells[at + 1] = following & 0x7FFFFFFF
    allocator[free_lists + size_class] = at
