"""Hash index of a hub: finds a neighbor in a long list without a linear search.

The index of a hub maps a neighbor to its position in the list (open addressing, linear probing). It is built when an
edge is added to the hub. It is freed when the list moves or loses a neighbor, because positions change then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ripplevec.graph._block_kernels import (
    HUB_SIZE_CLASS,
    INDEX_ARENA_TOP,
    INDEX_FREE_LISTS,
    NO_INDEX,
    Links,
    allocate_block,
    free_block,
)
from ripplevec.util.numba_intrinsics import allocation_free, kernel


@allocation_free(forceinline=True)
def _home_cell(neighbor: int, mask: int) -> Any:
    """Return the cell at which the search for a neighbor starts."""
    return np.int64((np.uint64(neighbor) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


@allocation_free(inner=True)
def insert_into_index(links: Links, row: int, neighbor: int, position: int) -> None:
    """Insert a neighbor and its position in the list into the index of a row."""
    base, mask = links.index_begin[row], (2 << links.size_class[row]) - 1
    cell = _home_cell(neighbor, mask)
    while links.index_cells[base + cell] != 0:
        cell = (cell + 1) & mask
    links.index_cells[base + cell] = position + 1


@allocation_free(inner=True)
def fill_index(links: Links, row: int) -> None:
    """Fill the newly allocated index of a row."""
    base = links.index_begin[row]
    links.index_cells[base : base + (2 << links.size_class[row])] = 0
    for i in range(links.degree[row]):
        insert_into_index(links, row, links.neighbor[links.begin[row] + i], i)


@allocation_free(inner=True)
def _build_index(links: Links, row: int) -> None:
    """Allocate and fill the index of a row."""
    links.index_begin[row] = allocate_block(
        links.allocator, INDEX_FREE_LISTS, INDEX_ARENA_TOP, links.index_cells, links.size_class[row] + 1
    )
    fill_index(links, row)


@allocation_free(forceinline=True)
def free_index(links: Links, row: int) -> None:
    """Free the index of a row, if it has one."""
    if links.index_begin[row] != NO_INDEX:
        free_block(
            links.allocator, INDEX_FREE_LISTS, links.index_cells, links.index_begin[row], links.size_class[row] + 1
        )
        links.index_begin[row] = NO_INDEX


@allocation_free(inner=True)
def find_in_index(links: Links, row: int, neighbor: int) -> int:
    """Return the slot of a neighbor from the index of a row, or -1 if it is not a neighbor."""
    base, mask, begin = links.index_begin[row], (2 << links.size_class[row]) - 1, links.begin[row]
    cell = _home_cell(neighbor, mask)
    while links.index_cells[base + cell] != 0:
        at = begin + links.index_cells[base + cell] - 1
        if links.neighbor[at] == neighbor:
            return at
        cell = (cell + 1) & mask
    return -1


@allocation_free(forceinline=True)
def ensure_index(links: Links, row: int) -> None:
    """Build the index of a row if the row is a hub without one."""
    if links.size_class[row] >= HUB_SIZE_CLASS and links.index_begin[row] == NO_INDEX:
        _build_index(links, row)


@kernel
def is_index_consistent(links: Links, row: int) -> bool:
    """Return whether the index of a row finds every neighbor and holds nothing else."""
    base, size = links.index_begin[row], 2 << links.size_class[row]
    for at in range(links.begin[row], links.begin[row] + links.degree[row]):
        if find_in_index(links, row, links.neighbor[at]) != at:
            return False
    return np.count_nonzero(links.index_cells[base : base + size]) == links.degree[row]
