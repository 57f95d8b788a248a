"""Hubs: a long list of neighbors is not searched but looked up.

A hub has an index, a hash table of the positions of its neighbors, in an arena of its own. It is made when an edge is
added to the hub, and forgotten when the list is moved or something is taken out of it: then positions change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ripplevec.graph._block_kernels import HUB, INDEX_TOP, INDICES, NO_INDEX, Links, give_block, take_block


@njit(cache=True, nogil=True, forceinline=True)
def _home(other: int, mask: int) -> Any:
    """Where in an index the search for a neighbor begins."""
    return np.int64((np.uint64(other) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


@njit(cache=True, nogil=True)
def note_place(links: Links, row: int, other: int, position: int) -> None:
    """Enter a neighbor into the index of a row."""
    base, mask = links.index_at[row], (2 << links.room[row]) - 1
    place = _home(other, mask)
    while links.places[base + place] != 0:
        place = (place + 1) & mask
    links.places[base + place] = position + 1


@njit(cache=True, nogil=True)
def _make_index(links: Links, row: int) -> None:
    """Have an index of a hub."""
    room = links.room[row]
    base = take_block(links.heads, INDICES, INDEX_TOP, links.places, room + 1)
    links.places[base : base + (2 << room)] = 0
    links.index_at[row] = base
    for i in range(links.count[row]):
        note_place(links, row, links.neighbor[links.begin[row] + i], i)


@njit(cache=True, nogil=True, forceinline=True)
def forget_index(links: Links, row: int) -> None:
    if links.index_at[row] != NO_INDEX:
        give_block(links.heads, INDICES, links.places, links.index_at[row], links.room[row] + 1)
        links.index_at[row] = NO_INDEX


@njit(cache=True, nogil=True)
def looked_up(links: Links, row: int, other: int) -> int:
    """The slot of a neighbor by the index of a row, -1 where there is none."""
    base, mask, begin = links.index_at[row], (2 << links.room[row]) - 1, links.begin[row]
    place = _home(other, mask)
    while links.places[base + place] != 0:
        at = begin + links.places[base + place] - 1
        if links.neighbor[at] == other:
            return at
        place = (place + 1) & mask
    return -1


@njit(cache=True, nogil=True, forceinline=True)
def index_hub(links: Links, row: int) -> None:
    if links.room[row] >= HUB and links.index_at[row] == NO_INDEX:
        _make_index(links, row)


@njit(cache=True, nogil=True)
def index_is_right(links: Links, row: int) -> bool:
    """Whether every neighbor is found by the index of a row, and nothing else stands in it."""
    base, size = links.index_at[row], 2 << links.room[row]
    for at in range(links.begin[row], links.begin[row] + links.count[row]):
        if looked_up(links, row, links.neighbor[at]) != at:
            return False
    return np.count_nonzero(links.places[base : base + size]) == links.count[row]
