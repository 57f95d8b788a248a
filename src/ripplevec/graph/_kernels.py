"""Kernels of the growing adjacency: edges are added, given another weight and taken out.

A vertex's neighbors lie side by side in one block, in the order in which the edges came. When a block is full its
content moves to one twice as large.

An edge has two ends, and each end knows all there is to know of it. So ends can be changed together (`apply_edges`), or
each by whoever has it (`apply_ends`), to the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import (
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
from ripplevec.graph._hub_kernels import forget_index, index_hub, note_place
from ripplevec.graph._lookup_kernels import find_pair
from ripplevec.graph._lookup_kernels import find_slot as find_slot  # for whoever has only some of the ends
from ripplevec.util.numba_intrinsics import prefetch

ADD, REMOVE = 0, 1  # as ripplevec.batch.Op
AWAY, HERE = 0, 1  # which way an edge points, seen from an end
HEAVIEST = 3e38  # a repeated edge gets no heavier than float32 can hold
SUM, IGNORE, REPLACE, HEAVIER = 0, 1, 2, 3  # what a repeated edge does
MANY = 1 << (HUB - 1)  # neighbors beyond which a sum is not made anew; not by room, which a restored list has less of


@njit(cache=True, nogil=True, forceinline=True)
def _move_slot(links: Links, old: int, new: int, directed: bool) -> None:
    links.neighbor[new] = links.neighbor[old]
    links.weight[new] = links.weight[old]
    if directed:
        links.outgoing[new] = links.outgoing[old]
        links.incoming[new] = links.incoming[old]


@njit(cache=True, nogil=True)
def _resize(links: Links, row: int, room: int, directed: bool) -> None:
    """Move a row's slots to a block of another size (NO_ROOM: to none)."""
    forget_index(links, row)
    old, old_room, count = links.begin[row], links.room[row], links.count[row]
    if room != NO_ROOM:
        at = take_block(links.heads, 0, TOP, links.neighbor, room)
        for i in range(count):
            _move_slot(links, old + i, at + i, directed)
        links.begin[row] = at
    if old_room != NO_ROOM:
        give_block(links.heads, 0, links.neighbor, old, old_room)
    links.room[row] = room
    links.heads[WIDEST] = max(links.heads[WIDEST], room)


@njit(cache=True, nogil=True, forceinline=True)
def _append(links: Links, row: int, other: int, weight: float, way: int, directed: bool) -> None:
    count, room = links.count[row], links.room[row]
    if room == NO_ROOM:
        _resize(links, row, MIN_ROOM, directed)
    elif count == 1 << room:
        _resize(links, row, room + 1, directed)
    at = links.begin[row] + count
    links.neighbor[at] = other
    links.weight[at] = weight
    if directed:
        links.outgoing[at] = weight if way == AWAY else np.float32(0)
        links.incoming[at] = weight if way == HERE else np.float32(0)
        if way == HERE:
            links.in_strength[row] += weight
    links.count[row] = count + 1
    links.strength[row] += weight
    if links.index_at[row] != NO_INDEX:
        note_place(links, row, other, count)


@njit(cache=True, nogil=True)
def _resum(links: Links, row: int) -> None:
    """The strength as the sum over the slots in order: what it would be had the edges just come as they are now."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.count[row]):
        total += links.weight[at]
    links.strength[row] = total


@njit(cache=True, nogil=True)
def _drop_slot(links: Links, row: int, slot: int, directed: bool) -> None:
    """Take one neighbor out, the others keeping their order; give room back where three quarters are unused."""
    forget_index(links, row)
    end = links.begin[row] + links.count[row] - 1
    for at in range(slot, end):
        _move_slot(links, at + 1, at, directed)
    count = links.count[row] - 1
    links.count[row] = count
    room = links.room[row]
    if count == 0:
        _resize(links, row, NO_ROOM, directed)
    elif room > MIN_ROOM and count * 4 <= 1 << room and has_block(links, room - 1):
        _resize(links, row, room - 1, directed)
    _resum(links, row)


@njit(cache=True, nogil=True)
def _resum_in(links: Links, row: int) -> None:
    """The strength of the edges that point to a row, summed anew: what was added and taken off leaves no residue."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.count[row]):
        total += links.incoming[at]
    links.in_strength[row] = total


@njit(cache=True, nogil=True)
def _set_end(links: Links, row: int, at: int, new: float, way: int, directed: bool) -> float:
    """Give an edge another weight at one end, in one direction when directed; the change of the sum of both ways."""
    before, total = links.weight[at], new
    if directed:
        if way == AWAY:
            links.outgoing[at] = new
        else:
            links.incoming[at] = new
        total = links.outgoing[at] + links.incoming[at]
    links.weight[at] = total
    change = np.float64(total) - np.float64(before)
    if links.count[row] > MANY:  # a sum of so many is not worth its last bit
        links.strength[row] += change
    else:
        _resum(links, row)
    if directed and way == HERE:
        if links.count[row] > MANY:
            links.in_strength[row] = max(links.in_strength[row] + change, 0.0)
        else:
            _resum_in(links, row)
    return change


@njit(cache=True, nogil=True, forceinline=True)
def _known(links: Links, at: int, way: int) -> float:
    """The weight of an edge in one direction."""
    return links.outgoing[at] if way == AWAY else links.incoming[at]


@njit(cache=True, nogil=True, forceinline=True)
def _repeated(known: float, weight: float, repeated: int) -> float:
    """What a known edge weighs when it comes again."""
    if known > 0 and repeated == IGNORE:
        return known
    if repeated == HEAVIER:
        return max(known, weight)
    return weight if repeated == REPLACE else float(np.float32(min(np.float64(known) + weight, HEAVIEST)))


@njit(cache=True, nogil=True, forceinline=True)
def _add_edge(links: Links, src: int, dst: int, weight: float, repeated: int, directed: bool) -> float:
    """Add an edge or its weight; returns by how much the weight between the two changed."""
    here, there = find_pair(links, src, dst)
    if here < 0:
        _append(links, src, dst, weight, AWAY, directed)
        _append(links, dst, src, weight, HERE, directed)
        links.heads[EDGES] += 1
        return weight
    known = links.outgoing[here]
    new = _repeated(known, weight, repeated)
    if new == known:
        return 0.0
    links.heads[EDGES] += known == 0
    change = _set_end(links, src, here, new, AWAY, directed)
    _set_end(links, dst, there, new, HERE, directed)
    return change


@njit(cache=True, nogil=True, forceinline=True)
def _add_end(links: Links, row: int, other: int, weight: float, way: int, repeated: int, directed: bool) -> float:
    """One end of `_add_edge`; the one that points away counts the edge."""
    at = find_slot(links, row, other)
    if at < 0:
        _append(links, row, other, weight, way, directed)
        links.heads[EDGES] += way == AWAY
        return weight
    known = _known(links, at, way)
    new = _repeated(known, weight, repeated)
    if new == known:
        return 0.0
    links.heads[EDGES] += way == AWAY and known == 0
    return _set_end(links, row, at, new, way, directed)


@njit(cache=True, nogil=True)
def _take_end(links: Links, row: int, at: int, way: int, directed: bool) -> float:
    """Take an edge out at one end, and the neighbor where no edge of the other direction is left."""
    known = _known(links, at, way)
    if directed and _known(links, at, 1 - way) > 0:
        return _set_end(links, row, at, np.float32(0), way, directed)
    _drop_slot(links, row, at, directed)
    if directed and way == HERE:
        _resum_in(links, row)
    return -np.float64(known)


@njit(cache=True, nogil=True)
def _remove_edge(links: Links, src: int, dst: int, directed: bool) -> float:
    """Take an edge out; returns by how much the weight between the two changed (0 where there was none)."""
    here, there = find_pair(links, src, dst)
    if here < 0 or links.outgoing[here] == 0:
        return 0.0
    links.heads[EDGES] -= 1
    change = _take_end(links, src, here, AWAY, directed)
    _take_end(links, dst, there, HERE, directed)
    return change


@njit(cache=True, nogil=True)
def _remove_end(links: Links, row: int, other: int, way: int, directed: bool) -> float:
    """One end of `_remove_edge`."""
    at = find_slot(links, row, other)
    if at < 0 or _known(links, at, way) == 0:
        return 0.0
    links.heads[EDGES] -= way == AWAY
    return _take_end(links, row, at, way, directed)


@njit(cache=True, nogil=True, forceinline=True)
def _fits(links: Links, src: int, dst: int) -> bool:
    """Whether the arenas have room for whatever adding one edge may need."""
    need = (4 << max(links.room[src], 0)) + (4 << max(links.room[dst], 0))
    if links.heads[TOP] + need > links.neighbor.size:
        return False
    indexed = max(links.room[src], links.room[dst]) + 1 >= HUB
    return not indexed or links.heads[INDEX_TOP] + need <= links.places.size


@njit(cache=True, nogil=True, forceinline=True)
def _look_ahead(links: Links, pairs: NDArray[np.int64], i: int, ends: int) -> None:
    """Ask memory for what the operations after the i-th will need: first the lines of their ends, then the blocks."""
    if i + 16 < len(pairs):
        for end in range(ends):
            prefetch(links.begin, pairs[i + 16, end], 0)
    if i + 8 < len(pairs):
        for end in range(ends):
            row = pairs[i + 8, end]
            prefetch(links.neighbor, links.begin[row], 0)
            prefetch(links.neighbor, links.begin[row] + links.count[row], 0)


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
        _look_ahead(links, pairs, i, 2)
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
def apply_ends(
    links: Links,
    op: NDArray[np.int8],
    ends: NDArray[np.int64],
    weight: NDArray[np.float32],
    way: NDArray[np.int8],
    chance: NDArray[np.float64],
    first: int,
    repeated: int,
    directed: bool,
) -> int:
    """`apply_edges` for whoever has only some of the ends: `ends[i]` is a row that is here, and its neighbor.

    `chance[i]` becomes the share of the row's strength that changed.
    """
    for i in range(first, op.size):
        _look_ahead(links, ends, i, 1)
        row, other = ends[i, 0], ends[i, 1]
        chance[i] = 0.0
        if op[i] > REMOVE or row == other:
            continue
        if op[i] == ADD and not _fits(links, row, row):
            return i
        before = links.strength[row]
        if op[i] == ADD:
            index_hub(links, row)
            change = abs(_add_end(links, row, other, weight[i], way[i], repeated, directed))
        else:
            change = abs(_remove_end(links, row, other, way[i], directed))
        if change > 0:
            chance[i] = change / max(before, links.strength[row])
    return op.size


@njit(cache=True, nogil=True)
def drop_neighbor(links: Links, row: int, other: int, directed: bool) -> float:
    """Take a vertex that goes out of the list of a neighbor; the share of the neighbor's strength that it takes."""
    slot = find_slot(links, row, other)
    lost = links.weight[slot] / links.strength[row]
    _drop_slot(links, row, slot, directed)
    if directed:
        _resum_in(links, row)
    return lost


@njit(cache=True, nogil=True)
def drop_all(links: Links, row: int, directed: bool) -> None:
    """Leave a row without edges; those who were its neighbors are told by others."""
    begin, count = links.begin[row], links.count[row]
    links.heads[EDGES] -= count
    if directed:
        for at in range(begin, begin + count):
            links.heads[EDGES] -= links.outgoing[at] > 0 and links.incoming[at] > 0
    links.count[row] = 0
    if links.room[row] != NO_ROOM:
        _resize(links, row, NO_ROOM, directed)
    links.strength[row] = 0.0
    links.in_strength[row] = 0.0


@njit(cache=True, nogil=True)
def remove_vertex(
    links: Links, row: int, touched: NDArray[np.int64], chance: NDArray[np.float64], directed: bool
) -> None:
    """Take out all edges of a row, writing its former neighbors and each one's share of strength that went with it."""
    begin, count = links.begin[row], links.count[row]
    for i in range(count):
        touched[i] = links.neighbor[begin + i]
        chance[i] = drop_neighbor(links, touched[i], row, directed)
    drop_all(links, row, directed)
