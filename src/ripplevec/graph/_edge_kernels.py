"""Kernels of the growing adjacency: edges are added, given another weight and taken out.

A vertex's neighbors lie side by side in one block, in the order in which the edges came. When a block is full its
content moves to one twice as large.

An edge has two ends, and each end knows all there is to know of it. So ends can be changed together (`apply_edges`), or
each by whoever has it (`apply_endpoints`), to the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import (
    ARENA_TOP,
    EDGE_COUNT,
    HUB_SIZE_CLASS,
    INDEX_ARENA_TOP,
    LOOP_COUNT,
    MAX_SIZE_CLASS,
    MIN_SIZE_CLASS,
    NO_BLOCK,
    NO_INDEX,
    Links,
    allocate_block,
    can_allocate,
    free_block,
)
from ripplevec.graph._hub_kernels import ensure_index, free_index, insert_into_index
from ripplevec.graph._query_kernels import find_edge_slots, find_slot
from ripplevec.util.numba_intrinsics import prefetch

ADD, REMOVE = 0, 1  # as ripplevec.batch.Op
OUT, IN = 0, 1  # which way an edge points, seen from an end
MIN_WEIGHT = 2.0**-100  # decayed weights are not stored below this: negligible, but positive and far from float32 underflow
MAX_WEIGHT = 3e38  # a repeated edge gets no heavier than float32 can hold
SUM, KEEP_FIRST, REPLACE, KEEP_MAX = 0, 1, 2, 3  # what a repeated edge does
EXACT_SUM_DEGREE = 1 << (HUB_SIZE_CLASS - 1)  # neighbors beyond which a sum is not made anew; not by room, which a restored list has less of


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
    free_index(links, row)
    old, old_room, count = links.begin[row], links.size_class[row], links.degree[row]
    if room != NO_BLOCK:
        at = allocate_block(links.allocator, 0, ARENA_TOP, links.neighbor, room)
        for i in range(count):
            _move_slot(links, old + i, at + i, directed)
        links.begin[row] = at
    if old_room != NO_BLOCK:
        free_block(links.allocator, 0, links.neighbor, old, old_room)
    links.size_class[row] = room
    links.allocator[MAX_SIZE_CLASS] = max(links.allocator[MAX_SIZE_CLASS], room)


@njit(cache=True, nogil=True, forceinline=True)
def _append(links: Links, row: int, other: int, weight: float, way: int, directed: bool) -> None:
    count, room = links.degree[row], links.size_class[row]
    if room == NO_BLOCK:
        _resize(links, row, MIN_SIZE_CLASS, directed)
    elif count == 1 << room:
        _resize(links, row, room + 1, directed)
    at = links.begin[row] + count
    links.neighbor[at] = other
    links.weight[at] = weight
    if directed:
        links.outgoing[at] = weight if way == OUT else np.float32(0)
        links.incoming[at] = weight if way == IN else np.float32(0)
        if way == IN:
            links.in_strength[row] += weight
    links.degree[row] = count + 1
    links.strength[row] += weight
    if links.index_begin[row] != NO_INDEX:
        insert_into_index(links, row, other, count)


@njit(cache=True, nogil=True)
def _recompute_strength(links: Links, row: int) -> None:
    """The strength as the sum over the slots in order: what it would be had the edges just come as they are now."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.degree[row]):
        total += links.weight[at]
    links.strength[row] = total


@njit(cache=True, nogil=True)
def _remove_slot(links: Links, row: int, slot: int, directed: bool) -> None:
    """Take one neighbor out, the others keeping their order; give room back where three quarters are unused."""
    free_index(links, row)
    end = links.begin[row] + links.degree[row] - 1
    for at in range(slot, end):
        _move_slot(links, at + 1, at, directed)
    count = links.degree[row] - 1
    links.degree[row] = count
    room = links.size_class[row]
    if count == 0:
        _resize(links, row, NO_BLOCK, directed)
    elif room > MIN_SIZE_CLASS and count * 4 <= 1 << room and can_allocate(links, room - 1):
        _resize(links, row, room - 1, directed)
    _recompute_strength(links, row)


@njit(cache=True, nogil=True)
def _recompute_in_strength(links: Links, row: int) -> None:
    """The strength of the edges that point to a row, summed anew: what was added and taken off leaves no residue."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.degree[row]):
        total += links.incoming[at]
    links.in_strength[row] = total


@njit(cache=True, nogil=True)
def _set_slot_weight(links: Links, row: int, at: int, new: float, way: int, directed: bool) -> float:
    """Give an edge another weight at one end, in one direction when directed; the change of the sum of both ways."""
    before, total = links.weight[at], new
    if directed:
        if way == OUT:
            links.outgoing[at] = new
        else:
            links.incoming[at] = new
        total = links.outgoing[at] + links.incoming[at]
    links.weight[at] = total
    change = np.float64(total) - np.float64(before)
    if links.degree[row] > EXACT_SUM_DEGREE:  # a sum of so many is not worth its last bit
        links.strength[row] += change
    else:
        _recompute_strength(links, row)
    if directed and way == IN:
        if links.degree[row] > EXACT_SUM_DEGREE:
            links.in_strength[row] = max(links.in_strength[row] + change, 0.0)
        else:
            _recompute_in_strength(links, row)
    return change


@njit(cache=True, nogil=True, forceinline=True)
def _directed_weight(links: Links, at: int, way: int) -> float:
    """The weight of an edge in one direction."""
    return links.outgoing[at] if way == OUT else links.incoming[at]


@njit(cache=True, nogil=True, forceinline=True)
def _combine_weights(known: float, weight: float, repeated: int) -> float:
    """What a known edge weighs when it comes again."""
    if known > 0 and repeated == KEEP_FIRST:
        return known
    if repeated == KEEP_MAX:
        return max(known, weight)
    return weight if repeated == REPLACE else float(np.float32(min(np.float64(known) + weight, MAX_WEIGHT)))


@njit(cache=True, nogil=True, forceinline=True)
def _add_edge(links: Links, src: int, dst: int, weight: float, repeated: int, directed: bool) -> float:
    """Add an edge or its weight; returns by how much the weight between the two changed."""
    here, there = find_edge_slots(links, src, dst)
    if here < 0:
        _append(links, src, dst, weight, OUT, directed)
        _append(links, dst, src, weight, IN, directed)
        links.allocator[EDGE_COUNT] += 1
        return weight
    known = links.outgoing[here]
    new = _combine_weights(known, weight, repeated)
    if new == known:
        return 0.0
    links.allocator[EDGE_COUNT] += known == 0
    change = _set_slot_weight(links, src, here, new, OUT, directed)
    _set_slot_weight(links, dst, there, new, IN, directed)
    return change


@njit(cache=True, nogil=True, forceinline=True)
def _add_endpoint(links: Links, row: int, other: int, weight: float, way: int, repeated: int, directed: bool) -> float:
    """One end of `_add_edge`; the one that points away counts the edge."""
    at = find_slot(links, row, other)
    if at < 0:
        _append(links, row, other, weight, way, directed)
        links.allocator[EDGE_COUNT] += way == OUT
        return weight
    known = _directed_weight(links, at, way)
    new = _combine_weights(known, weight, repeated)
    if new == known:
        return 0.0
    links.allocator[EDGE_COUNT] += way == OUT and known == 0
    return _set_slot_weight(links, row, at, new, way, directed)


@njit(cache=True, nogil=True)
def _remove_slot_direction(links: Links, row: int, at: int, way: int, directed: bool) -> float:
    """Take an edge out at one end, and the neighbor where no edge of the other direction is left."""
    known = _directed_weight(links, at, way)
    if directed and _directed_weight(links, at, 1 - way) > 0:
        return _set_slot_weight(links, row, at, np.float32(0), way, directed)
    _remove_slot(links, row, at, directed)
    if directed and way == IN:
        _recompute_in_strength(links, row)
    return -np.float64(known)


@njit(cache=True, nogil=True)
def _remove_edge(links: Links, src: int, dst: int, directed: bool) -> float:
    """Take an edge out; returns by how much the weight between the two changed (0 where there was none)."""
    here, there = find_edge_slots(links, src, dst)
    if here < 0 or links.outgoing[here] == 0:
        return 0.0
    links.allocator[EDGE_COUNT] -= 1
    change = _remove_slot_direction(links, src, here, OUT, directed)
    _remove_slot_direction(links, dst, there, IN, directed)
    return change


@njit(cache=True, nogil=True)
def _remove_endpoint(links: Links, row: int, other: int, way: int, directed: bool) -> float:
    """One end of `_remove_edge`."""
    at = find_slot(links, row, other)
    if at < 0 or _directed_weight(links, at, way) == 0:
        return 0.0
    links.allocator[EDGE_COUNT] -= way == OUT
    return _remove_slot_direction(links, row, at, way, directed)


@njit(cache=True, nogil=True, forceinline=True)
def _fits(links: Links, src: int, dst: int) -> bool:
    """Whether the arenas have room for whatever adding one edge may need."""
    need = (4 << max(links.size_class[src], 0)) + (4 << max(links.size_class[dst], 0))
    if links.allocator[ARENA_TOP] + need > links.neighbor.size:
        return False
    indexed = max(links.size_class[src], links.size_class[dst]) + 1 >= HUB_SIZE_CLASS
    return not indexed or links.allocator[INDEX_ARENA_TOP] + need <= links.index_cells.size


@njit(cache=True, nogil=True, forceinline=True)
def _prefetch_rows(links: Links, pairs: NDArray[np.int64], i: int, ends: int) -> None:
    """Ask memory for what the operations after the i-th will need: first the lines of their ends, then the blocks."""
    if i + 16 < len(pairs):
        for end in range(ends):
            prefetch(links.begin, pairs[i + 16, end], 0)
    if i + 8 < len(pairs):
        for end in range(ends):
            row = pairs[i + 8, end]
            prefetch(links.neighbor, links.begin[row], 0)
            prefetch(links.neighbor, links.begin[row] + links.degree[row], 0)


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
        _prefetch_rows(links, pairs, i, 2)
        src, dst = pairs[i]
        chance[i, 0] = chance[i, 1] = 0.0
        if op[i] > REMOVE:
            continue
        if src == dst:
            links.allocator[LOOP_COUNT] += op[i] == ADD
            continue
        if op[i] == ADD and not _fits(links, src, dst):
            return i
        before_src, before_dst = links.strength[src], links.strength[dst]
        if op[i] == ADD:
            ensure_index(links, src)
            ensure_index(links, dst)
            change = abs(_add_edge(links, src, dst, weight[i], repeated, directed))
        else:
            change = abs(_remove_edge(links, src, dst, directed))
        if change > 0:
            chance[i, 0] = change / max(before_src, links.strength[src])
            chance[i, 1] = change / max(before_dst, links.strength[dst])
    return op.size


@njit(cache=True, nogil=True)
def apply_endpoints(
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
        _prefetch_rows(links, ends, i, 1)
        row, other = ends[i, 0], ends[i, 1]
        chance[i] = 0.0
        if op[i] > REMOVE or row == other:
            continue
        if op[i] == ADD and not _fits(links, row, row):
            return i
        before = links.strength[row]
        if op[i] == ADD:
            ensure_index(links, row)
            change = abs(_add_endpoint(links, row, other, weight[i], way[i], repeated, directed))
        else:
            change = abs(_remove_endpoint(links, row, other, way[i], directed))
        if change > 0:
            chance[i] = change / max(before, links.strength[row])
    return op.size


@njit(cache=True, nogil=True)
def remove_neighbor(links: Links, row: int, other: int, directed: bool) -> float:
    """Take a vertex that goes out of the list of a neighbor; the share of the neighbor's strength that it takes."""
    slot = find_slot(links, row, other)
    lost = links.weight[slot] / links.strength[row]
    _remove_slot(links, row, slot, directed)
    if directed:
        _recompute_in_strength(links, row)
    return lost


@njit(cache=True, nogil=True)
def clear_row(links: Links, row: int, directed: bool) -> None:
    """Leave a row without edges; those who were its neighbors are told by others."""
    begin, count = links.begin[row], links.degree[row]
    links.allocator[EDGE_COUNT] -= count
    if directed:
        for at in range(begin, begin + count):
            links.allocator[EDGE_COUNT] -= links.outgoing[at] > 0 and links.incoming[at] > 0
    links.degree[row] = 0
    if links.size_class[row] != NO_BLOCK:
        _resize(links, row, NO_BLOCK, directed)
    links.strength[row] = 0.0
    links.in_strength[row] = 0.0


@njit(cache=True, nogil=True)
def remove_vertex(
    links: Links, row: int, touched: NDArray[np.int64], chance: NDArray[np.float64], directed: bool
) -> None:
    """Take out all edges of a row, writing its former neighbors and each one's share of strength that went with it."""
    begin, count = links.begin[row], links.degree[row]
    for i in range(count):
        touched[i] = links.neighbor[begin + i]
        chance[i] = remove_neighbor(links, touched[i], row, directed)
    clear_row(links, row, directed)


@njit(cache=True, nogil=True, forceinline=True)
def _scale_weight(weights: NDArray[np.float32], at: int, factor: float) -> bool:
    """Make a weight lighter, but not lighter than the faintest; whether that stopped it. Zero stays zero."""
    if weights[at] == 0:
        return False
    lighter = weights[at] * factor
    weights[at] = max(lighter, MIN_WEIGHT)
    return lighter < MIN_WEIGHT


@njit(cache=True, nogil=True)
def scale_weights(links: Links, rows: int, factor: float, directed: bool) -> None:
    """Multiply all weights and strengths by a power of two: exact, but where a weight would become too faint."""
    for row in range(rows):
        stopped = False
        total, incoming = 0.0, 0.0
        for at in range(links.begin[row], links.begin[row] + links.degree[row]):
            if directed:
                stopped |= _scale_weight(links.outgoing, at, factor) | _scale_weight(links.incoming, at, factor)
                links.weight[at] = links.outgoing[at] + links.incoming[at]
                incoming += links.incoming[at]
            else:
                stopped |= _scale_weight(links.weight, at, factor)
            total += links.weight[at]
        links.strength[row] = total if stopped else links.strength[row] * factor
        if directed:
            links.in_strength[row] = incoming if stopped else links.in_strength[row] * factor
