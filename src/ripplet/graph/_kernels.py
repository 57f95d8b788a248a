"""Kernels of the growing adjacency: edges are added, given another weight and taken out.

A vertex's neighbours lie side by side in one block, in the order in which the edges came. When a block is full its
content moves to one twice as large.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplet.graph._block_kernels import (
    EDGES,
    HUB,
    INDEX_TOP,
    LOOPS,
    MIN_ROOM,
    NO_INDEX,
    NO_ROOM,
    TOP,
    WIDEST,
    Links,
    give_block,
    has_block,
    take_block,
)
from ripplet.graph._hub_kernels import forget_index, index_hub, looked_up, note_place
from ripplet.intrinsics import prefetch

ADD, REMOVE = 0, 1  # as ripplet.events.Op
HEAVIEST = 3e38  # a repeated edge gets no heavier than float32 can hold
SUM, IGNORE, REPLACE = 0, 1, 2  # what a repeated edge does


@njit(cache=True, nogil=True)
def _resize(links: Links, row: int, room: int, directed: bool) -> None:
    """Move a row's slots to a block of another size (NO_ROOM: to none)."""
    forget_index(links, row)
    old, old_room, count = links.begin[row], links.room[row], links.count[row]
    if room != NO_ROOM:
        at = take_block(links.heads, 0, TOP, links.neighbour, room)
        for i in range(count):
            links.neighbour[at + i] = links.neighbour[old + i]
            links.weight[at + i] = links.weight[old + i]
            if directed:
                links.outgoing[at + i] = links.outgoing[old + i]
        links.begin[row] = at
    if old_room != NO_ROOM:
        give_block(links.heads, 0, links.neighbour, old, old_room)
    links.room[row] = room
    links.heads[WIDEST] = max(links.heads[WIDEST], room)


@njit(cache=True, nogil=True, forceinline=True)
def _append(links: Links, row: int, other: int, weight: float, outgoing: float, directed: bool) -> None:
    count, room = links.count[row], links.room[row]
    if room == NO_ROOM:
        _resize(links, row, MIN_ROOM, directed)
    elif count == 1 << room:
        _resize(links, row, room + 1, directed)
    at = links.begin[row] + count
    links.neighbour[at] = other
    links.weight[at] = weight
    if directed:
        links.outgoing[at] = outgoing
    links.count[row] = count + 1
    links.strength[row] += weight
    if links.index_at[row] != NO_INDEX:
        note_place(links, row, other, count)


@njit(cache=True, nogil=True, forceinline=True)
def find_slot(links: Links, row: int, other: int) -> int:
    """The slot of `other` among the neighbours of `row`, -1 where there is none."""
    if links.index_at[row] != NO_INDEX:
        return looked_up(links, row, other)
    begin = links.begin[row]
    for at in range(begin, begin + links.count[row]):
        if links.neighbour[at] == other:
            return at
    return -1


@njit(cache=True, nogil=True)
def has_edge(links: Links, src: int, dst: int, directed: bool) -> bool:
    """Whether the edge is there, read from the end with fewer neighbours where that is enough."""
    if directed:
        at = find_slot(links, src, dst)
        return at >= 0 and links.outgoing[at] > 0
    if links.count[src] > links.count[dst]:
        src, dst = dst, src
    return find_slot(links, src, dst) >= 0


@njit(cache=True, nogil=True)
def has_edges(
    links: Links, src: NDArray[np.int64], dst: NDArray[np.int64], found: NDArray[np.bool_], directed: bool
) -> None:
    """`has_edge`, pair by pair, into `found`."""
    for i in range(src.size):
        found[i] = has_edge(links, src[i], dst[i], directed)


@njit(cache=True, nogil=True)
def _resum(links: Links, row: int) -> None:
    """The strength as the sum over the slots in order: what it would be had the edges just come as they are now."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.count[row]):
        total += links.weight[at]
    links.strength[row] = total


@njit(cache=True, nogil=True)
def _drop_slot(links: Links, row: int, slot: int, directed: bool) -> None:
    """Take one neighbour out, the others keeping their order; give room back where three quarters are unused."""
    forget_index(links, row)
    end = links.begin[row] + links.count[row] - 1
    for at in range(slot, end):
        links.neighbour[at] = links.neighbour[at + 1]
        links.weight[at] = links.weight[at + 1]
        if directed:
            links.outgoing[at] = links.outgoing[at + 1]
    count = links.count[row] - 1
    links.count[row] = count
    room = links.room[row]
    if count == 0:
        _resize(links, row, NO_ROOM, directed)
    elif room > MIN_ROOM and count * 4 <= 1 << room and has_block(links, room - 1):
        _resize(links, row, room - 1, directed)
    _resum(links, row)


@njit(cache=True, nogil=True, forceinline=True)
def _find_pair(links: Links, src: int, dst: int) -> tuple[int, int]:
    """The two slots of an edge (-1, -1 where there is none); the shorter list is looked at first."""
    if links.count[src] <= links.count[dst]:
        here = find_slot(links, src, dst)
        return here, find_slot(links, dst, src) if here >= 0 else -1
    there = find_slot(links, dst, src)
    return find_slot(links, src, dst) if there >= 0 else -1, there


@njit(cache=True, nogil=True, forceinline=True)
def _add_edge(links: Links, src: int, dst: int, weight: float, repeated: int, directed: bool) -> float:
    """Add an edge or its weight; returns by how much the weight between the two changed."""
    here, there = _find_pair(links, src, dst)
    if here < 0:
        _append(links, src, dst, weight, weight, directed)
        _append(links, dst, src, weight, np.float32(0), directed)
        if directed:
            links.in_strength[dst] += weight
        links.heads[EDGES] += 1
        return weight
    known = links.outgoing[here]
    if known > 0 and repeated == IGNORE:
        return 0.0
    new = weight if repeated == REPLACE else np.float32(min(np.float64(known) + weight, HEAVIEST))
    return _set_weight(links, src, dst, here, there, new, directed)


@njit(cache=True, nogil=True)
def _resum_in(links: Links, row: int) -> None:
    """The strength of the edges that point to a row, summed anew: what was added and taken off leaves no residue."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.count[row]):
        total += np.float64(links.weight[at]) - np.float64(links.outgoing[at])
    links.in_strength[row] = total


@njit(cache=True, nogil=True)
def _set_weight(links: Links, src: int, dst: int, here: int, there: int, new: float, directed: bool) -> float:
    """Give a known pair a new weight (in one direction when directed); returns the change of the sum of both ways."""
    before, known = links.weight[here], links.outgoing[here]
    links.outgoing[here] = new
    total = np.float32(new + links.outgoing[there]) if directed else new
    links.weight[here] = total
    links.weight[there] = total
    change = np.float64(total) - np.float64(before)
    if directed:
        if links.room[dst] >= HUB:
            links.in_strength[dst] = max(links.in_strength[dst] + change, 0.0)
        else:
            _resum_in(links, dst)
        if known == 0:
            links.heads[EDGES] += 1
    for row in (src, dst):
        if links.room[row] >= HUB:  # a sum of so many is not worth its last bit
            links.strength[row] += change
        else:
            _resum(links, row)
    return change


@njit(cache=True, nogil=True)
def _remove_edge(links: Links, src: int, dst: int, directed: bool) -> float:
    """Take an edge out; returns by how much the weight between the two changed (0 where there was none)."""
    here, there = _find_pair(links, src, dst)
    if here < 0 or links.outgoing[here] == 0:
        return 0.0
    links.heads[EDGES] -= 1
    known = links.outgoing[here]
    if directed and links.outgoing[there] > 0:
        change = _set_weight(links, src, dst, here, there, np.float32(0), directed)
        return change
    _drop_slot(links, src, here, directed)
    _drop_slot(links, dst, there, directed)
    if directed:
        _resum_in(links, dst)
    return -np.float64(known)


@njit(cache=True, nogil=True, forceinline=True)
def _fits(links: Links, src: int, dst: int) -> bool:
    """Whether the arenas have room for whatever adding one edge may need."""
    need = (4 << max(links.room[src], 0)) + (4 << max(links.room[dst], 0))
    if links.heads[TOP] + need > links.neighbour.size:
        return False
    indexed = max(links.room[src], links.room[dst]) + 1 >= HUB
    return not indexed or links.heads[INDEX_TOP] + need <= links.places.size


@njit(cache=True, nogil=True, forceinline=True)
def _look_ahead(links: Links, pairs: NDArray[np.int64], i: int) -> None:
    """Ask memory for what the operations after the i-th will need: first the lines of both ends, then their blocks."""
    if i + 16 < len(pairs):
        prefetch(links.begin, pairs[i + 16, 0], 0)
        prefetch(links.begin, pairs[i + 16, 1], 0)
    if i + 8 < len(pairs):
        for end in range(2):
            row = pairs[i + 8, end]
            prefetch(links.neighbour, links.begin[row], 0)
            prefetch(links.neighbour, links.begin[row] + links.count[row], 0)


@njit(cache=True, nogil=True)
def apply_edges(
    links: Links,
    op: NDArray[np.int8],
    pairs: NDArray[np.int64],
    weight: NDArray[np.float32],
    chance: NDArray[np.float64],
    first: int,
    repeated: int,
    directed: bool,
) -> int:
    """Apply edge operations in order from `first` on; returns the operation at which the arena is full, else the end.

    `chance[i]` becomes, for both ends of operation i, |change of weight| / max(strength before, strength after).
    Operations other than ADD and REMOVE, and self-loops, are passed over.
    """
    for i in range(first, op.size):
        _look_ahead(links, pairs, i)
        src, dst = pairs[i]
        chance[i, 0] = chance[i, 1] = 0.0
        if op[i] > REMOVE:
            continue
        if src == dst:
            links.heads[LOOPS] += op[i] == ADD
            continue
        if op[i] == ADD and not _fits(links, src, dst):
            return i
        before_src, before_dst = links.strength[src], links.strength[dst]
        if op[i] == ADD:
            index_hub(links, src)
            index_hub(links, dst)
            change = abs(_add_edge(links, src, dst, weight[i], repeated, directed))
        else:
            change = abs(_remove_edge(links, src, dst, directed))
        if change > 0:
            chance[i, 0] = change / max(before_src, links.strength[src])
            chance[i, 1] = change / max(before_dst, links.strength[dst])
    return op.size


@njit(cache=True, nogil=True)
def remove_vertex(
    links: Links, row: int, touched: NDArray[np.int64], chance: NDArray[np.float64], directed: bool
) -> None:
    """Take out all edges of a row, writing its former neighbours and each one's share of strength that went with it."""
    begin, count = links.begin[row], links.count[row]
    for i in range(count):
        other = links.neighbour[begin + i]
        slot = find_slot(links, other, row)
        touched[i] = other
        chance[i] = links.weight[begin + i] / links.strength[other]
        links.heads[EDGES] -= 1
        if directed and links.outgoing[begin + i] > 0 and links.outgoing[slot] > 0:
            links.heads[EDGES] -= 1
        _drop_slot(links, other, slot, directed)
        if directed:
            _resum_in(links, other)
    links.count[row] = 0
    if links.room[row] != NO_ROOM:
        _resize(links, row, NO_ROOM, directed)
    links.strength[row] = 0.0
    links.in_strength[row] = 0.0
