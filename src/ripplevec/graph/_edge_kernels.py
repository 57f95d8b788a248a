"""Kernels that add, reweight and remove edges, and that rescale all weights.

The neighbors of a vertex lie side by side in one block, in the order in which the edges arrived. When a block is full,
its content moves to a block twice as large.

An edge is stored at both of its endpoints, and each endpoint holds everything about it. The endpoints can therefore be
changed together (`apply_edges`), or separately where they live on different shards (`apply_endpoints`); the results
are identical bit for bit.
"""

from __future__ import annotations

import numpy as np
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
from ripplevec.util.numba_intrinsics import allocation_free, prefetch

ADD, REMOVE = 0, 1  # as in ripplevec.batch.Op
OUT, IN = np.int64(0), np.int64(1)  # direction of an edge as seen from one endpoint
SUM, KEEP_FIRST, REPLACE, KEEP_MAX = 0, 1, 2, 3  # duplicate policies: how the weight of a repeated edge is combined
MIN_WEIGHT = 2.0**-100  # smallest weight kept under decay: negligible, but positive and far from float32 underflow
MAX_WEIGHT = 3e38  # a sum of repeated weights is capped here, within the range of float32

# Up to this degree a strength is recomputed after every change, so that it is the exact sum over the slots. Defined by
# degree and not by size class: a restored list may have a smaller block than the original.
EXACT_SUM_DEGREE = 1 << (HUB_SIZE_CLASS - 1)


@allocation_free(forceinline=True)
def move_slot(links: Links, old: int, new: int, directed: bool) -> None:
    """Copy a slot to another place."""
    links.neighbor[new] = links.neighbor[old]
    links.weight[new] = links.weight[old]
    if directed:
        links.outgoing[new] = links.outgoing[old]
        links.incoming[new] = links.incoming[old]


@allocation_free
def _resize(links: Links, row: int, size_class: int, directed: bool) -> None:
    """Move the slots of a row to a block of another size class; NO_BLOCK only frees the block."""
    free_index(links, row)
    old, old_size_class, degree = links.begin[row], links.size_class[row], links.degree[row]
    if size_class != NO_BLOCK:
        at = allocate_block(links.allocator, 0, ARENA_TOP, links.neighbor, size_class)
        for i in range(degree):
            move_slot(links, old + i, at + i, directed)
        links.begin[row] = at
    if old_size_class != NO_BLOCK:
        free_block(links.allocator, 0, links.neighbor, old, old_size_class)
    links.size_class[row] = size_class
    links.allocator[MAX_SIZE_CLASS] = max(links.allocator[MAX_SIZE_CLASS], size_class)


@allocation_free(forceinline=True)
def _append(links: Links, row: int, neighbor: int, weight: float, direction: int, directed: bool) -> None:
    """Append a neighbor to the list of a row."""
    degree, size_class = links.degree[row], links.size_class[row]
    if size_class == NO_BLOCK:
        _resize(links, row, np.int64(MIN_SIZE_CLASS), directed)
    elif degree == 1 << size_class:
        _resize(links, row, size_class + 1, directed)
    at = links.begin[row] + degree
    links.neighbor[at] = neighbor
    links.weight[at] = weight
    if directed:
        links.outgoing[at] = weight if direction == OUT else np.float32(0)
        links.incoming[at] = weight if direction == IN else np.float32(0)
        if direction == IN:
            links.in_strength[row] += weight
    links.degree[row] = degree + 1
    links.strength[row] += weight
    if links.index_begin[row] != NO_INDEX:
        insert_into_index(links, row, neighbor, degree)


@allocation_free(inner=True)
def _recompute_strength(links: Links, row: int) -> None:
    """Sum the weights of a row in slot order: the strength it would have if its current edges had just been added."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.degree[row]):
        total += links.weight[at]
    links.strength[row] = total


@allocation_free(inner=True)
def _remove_slot(links: Links, row: int, slot: int, directed: bool) -> None:
    """Remove a slot from a list, keeping the order of the others; halve the block if three quarters are unused."""
    free_index(links, row)
    end = links.begin[row] + links.degree[row] - 1
    for at in range(slot, end):
        move_slot(links, at + 1, at, directed)
    degree = links.degree[row] - 1
    links.degree[row] = degree
    size_class = links.size_class[row]
    if degree == 0:
        _resize(links, row, np.int64(NO_BLOCK), directed)
    elif size_class > MIN_SIZE_CLASS and degree * 4 <= 1 << size_class and can_allocate(links, size_class - 1):
        _resize(links, row, size_class - 1, directed)
    _recompute_strength(links, row)


@allocation_free(inner=True)
def _recompute_in_strength(links: Links, row: int) -> None:
    """Sum the incoming weights of a row in slot order, so that additions and removals leave no rounding residue."""
    total = 0.0
    for at in range(links.begin[row], links.begin[row] + links.degree[row]):
        total += links.incoming[at]
    links.in_strength[row] = total


@allocation_free(inner=True)
def _set_slot_weight(links: Links, row: int, at: int, new: float, direction: int, directed: bool) -> float:
    """Set the weight of a slot (in one direction if directed); return the change of the slot's total weight."""
    before, total = links.weight[at], new
    if directed:
        if direction == OUT:
            links.outgoing[at] = new
        else:
            links.incoming[at] = new
        total = links.outgoing[at] + links.incoming[at]
    links.weight[at] = total
    change = np.float64(total) - np.float64(before)
    if links.degree[row] > EXACT_SUM_DEGREE:  # recomputing a sum this long is not worth its last bit
        links.strength[row] += change
    else:
        _recompute_strength(links, row)
    if directed and direction == IN:
        if links.degree[row] > EXACT_SUM_DEGREE:
            links.in_strength[row] = max(links.in_strength[row] + change, 0.0)
        else:
            _recompute_in_strength(links, row)
    return change


@allocation_free(forceinline=True)
def _directed_weight(links: Links, at: int, direction: int) -> float:
    """Return the weight of a slot in one direction."""
    return links.outgoing[at] if direction == OUT else links.incoming[at]


@allocation_free(forceinline=True)
def _combine_weights(stored: float, weight: float, duplicate_policy: int) -> float:
    """Return the weight of a stored edge after it arrives again."""
    if stored > 0 and duplicate_policy == KEEP_FIRST:
        return stored
    if duplicate_policy == KEEP_MAX:
        return max(stored, weight)
    return weight if duplicate_policy == REPLACE else float(np.float32(min(np.float64(stored) + weight, MAX_WEIGHT)))


@allocation_free(forceinline=True)
def _add_edge(links: Links, src: int, dst: int, weight: float, duplicate_policy: int, directed: bool) -> float:
    """Add an edge, or combine its weight with the stored one; return the change of weight between src and dst."""
    src_slot, dst_slot = find_edge_slots(links, src, dst)
    if src_slot < 0:
        _append(links, src, dst, weight, OUT, directed)
        _append(links, dst, src, weight, IN, directed)
        links.allocator[EDGE_COUNT] += 1
        return weight
    stored = links.outgoing[src_slot]
    new = _combine_weights(stored, weight, duplicate_policy)
    if new == stored:
        return 0.0
    links.allocator[EDGE_COUNT] += stored == 0
    change = _set_slot_weight(links, src, src_slot, new, OUT, directed)
    _set_slot_weight(links, dst, dst_slot, new, IN, directed)
    return change


@allocation_free(forceinline=True)
def add_endpoint(
    links: Links, row: int, neighbor: int, weight: float, direction: int, duplicate_policy: int, directed: bool
) -> float:
    """Do the part of `_add_edge` that concerns one endpoint; the outgoing endpoint counts the edge."""
    at = find_slot(links, row, neighbor)
    if at < 0:
        _append(links, row, neighbor, weight, direction, directed)
        links.allocator[EDGE_COUNT] += direction == OUT
        return weight
    stored = _directed_weight(links, at, direction)
    new = _combine_weights(stored, weight, duplicate_policy)
    if new == stored:
        return 0.0
    links.allocator[EDGE_COUNT] += direction == OUT and stored == 0
    return _set_slot_weight(links, row, at, new, direction, directed)


@allocation_free(inner=True)
def _remove_slot_direction(links: Links, row: int, at: int, direction: int, directed: bool) -> float:
    """Remove one direction of a slot, and the slot itself if the other direction is empty; return the weight change."""
    stored = _directed_weight(links, at, direction)
    if directed and _directed_weight(links, at, 1 - direction) > 0:
        return _set_slot_weight(links, row, at, np.float32(0), direction, directed)
    _remove_slot(links, row, at, directed)
    if directed and direction == IN:
        _recompute_in_strength(links, row)
    return -np.float64(stored)


@allocation_free(inner=True)
def _remove_edge(links: Links, src: int, dst: int, directed: bool) -> float:
    """Remove an edge; return the change of weight between src and dst, 0 if there was no such edge."""
    src_slot, dst_slot = find_edge_slots(links, src, dst)
    if src_slot < 0 or links.outgoing[src_slot] == 0:
        return 0.0
    links.allocator[EDGE_COUNT] -= 1
    change = _remove_slot_direction(links, src, src_slot, OUT, directed)
    _remove_slot_direction(links, dst, dst_slot, IN, directed)
    return change


@allocation_free(inner=True)
def _remove_endpoint(links: Links, row: int, neighbor: int, direction: int, directed: bool) -> float:
    """Do the part of `_remove_edge` that concerns one endpoint."""
    at = find_slot(links, row, neighbor)
    if at < 0 or _directed_weight(links, at, direction) == 0:
        return 0.0
    links.allocator[EDGE_COUNT] -= direction == OUT
    return _remove_slot_direction(links, row, at, direction, directed)


@allocation_free(forceinline=True)
def _fits(links: Links, src: int, dst: int) -> bool:
    """Return whether the arenas have enough space for anything that adding one edge may allocate."""
    need = (4 << max(links.size_class[src], 0)) + (4 << max(links.size_class[dst], 0))
    if links.allocator[ARENA_TOP] + need > links.neighbor.size:
        return False
    indexed = max(links.size_class[src], links.size_class[dst]) + 1 >= HUB_SIZE_CLASS
    return not indexed or links.allocator[INDEX_ARENA_TOP] + need <= links.index_cells.size


@allocation_free(forceinline=True)
def _prefetch_rows(links: Links, pairs: NDArray[np.int64], i: int, ends: int) -> None:
    """Prefetch memory for the operations after the i-th: first the rows of their endpoints, then their blocks."""
    if i + 16 < len(pairs):
        for end in range(ends):
            prefetch(links.begin, pairs[i + 16, end], 0)
    if i + 8 < len(pairs):
        for end in range(ends):
            row = pairs[i + 8, end]
            prefetch(links.neighbor, links.begin[row], 0)
            prefetch(links.neighbor, links.begin[row] + links.degree[row], 0)


@allocation_free
def apply_edges(
    links: Links,
    op: NDArray[np.int8],
    pairs: NDArray[np.int64],
    weight: NDArray[np.float32],
    changed_share: NDArray[np.float64],
    first: int,
    duplicate_policy: int,
    directed: bool,
) -> int:
    """Apply edge operations in order, starting at `first`; return the operation at which the arena is full, or the end.

    For both endpoints of operation i, `changed_share[i]` is set to |change of weight| / max(strength before, strength
    after). Self-loops, and operations other than ADD and REMOVE, are skipped.
    """
    for i in range(first, op.size):
        _prefetch_rows(links, pairs, i, 2)
        src, dst = pairs[i]
        changed_share[i, 0] = changed_share[i, 1] = 0.0
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
            change = abs(_add_edge(links, src, dst, weight[i], duplicate_policy, directed))
        else:
            change = abs(_remove_edge(links, src, dst, directed))
        if change > 0:
            changed_share[i, 0] = change / max(before_src, links.strength[src])
            changed_share[i, 1] = change / max(before_dst, links.strength[dst])
    return op.size


@allocation_free
def apply_endpoints(
    links: Links,
    op: NDArray[np.int8],
    ends: NDArray[np.int64],
    weight: NDArray[np.float32],
    direction: NDArray[np.int8],
    changed_share: NDArray[np.float64],
    first: int,
    duplicate_policy: int,
    directed: bool,
) -> int:
    """Apply edge operations at one endpoint each, like `apply_edges`; `ends[i]` is (a local row, its neighbor).

    `changed_share[i]` is set to the share of the row's strength that changed.
    """
    for i in range(first, op.size):
        _prefetch_rows(links, ends, i, 1)
        row, neighbor = ends[i, 0], ends[i, 1]
        changed_share[i] = 0.0
        if op[i] > REMOVE or row == neighbor:
            continue
        if op[i] == ADD and not _fits(links, row, row):
            return i
        before = links.strength[row]
        if op[i] == ADD:
            ensure_index(links, row)
            change = abs(add_endpoint(links, row, neighbor, weight[i], direction[i], duplicate_policy, directed))
        else:
            change = abs(_remove_endpoint(links, row, neighbor, direction[i], directed))
        if change > 0:
            changed_share[i] = change / max(before, links.strength[row])
    return op.size


@allocation_free
def remove_neighbor(links: Links, row: int, neighbor: int, directed: bool) -> float:
    """Remove a neighbor from the list of a row; return the share of the row's strength that is lost."""
    slot = find_slot(links, row, neighbor)
    lost = links.weight[slot] / links.strength[row]
    _remove_slot(links, row, slot, directed)
    if directed:
        _recompute_in_strength(links, row)
    return lost


@allocation_free
def clear_row(links: Links, row: int, directed: bool) -> None:
    """Remove all edges of a row at its own end only; the caller updates the lists of the neighbors."""
    begin, degree = links.begin[row], links.degree[row]
    links.allocator[EDGE_COUNT] -= degree
    if directed:
        for at in range(begin, begin + degree):
            links.allocator[EDGE_COUNT] -= links.outgoing[at] > 0 and links.incoming[at] > 0
    links.degree[row] = 0
    if links.size_class[row] != NO_BLOCK:
        _resize(links, row, np.int64(NO_BLOCK), directed)
    links.strength[row] = 0.0
    links.in_strength[row] = 0.0


@allocation_free
def remove_vertex(
    links: Links, row: int, neighbors: NDArray[np.int64], lost_share: NDArray[np.float64], directed: bool
) -> None:
    """Remove all edges of a row; write its former neighbors, and the share of strength that each of them lost."""
    begin, degree = links.begin[row], links.degree[row]
    for i in range(degree):
        neighbors[i] = links.neighbor[begin + i]
        lost_share[i] = remove_neighbor(links, neighbors[i], row, directed)
    clear_row(links, row, directed)


@allocation_free(forceinline=True)
def _scale_weight(weights: NDArray[np.float32], at: int, factor: float) -> bool:
    """Multiply a weight by a factor, but keep it at MIN_WEIGHT or more; return whether it was clamped. 0 stays 0."""
    if weights[at] == 0:
        return False
    scaled = weights[at] * factor
    weights[at] = max(scaled, MIN_WEIGHT)
    return scaled < MIN_WEIGHT


@allocation_free
def scale_weights(links: Links, rows: int, factor: float, directed: bool) -> None:
    """Multiply all weights and strengths by a power of two: exact, except where a weight is clamped to MIN_WEIGHT."""
    for row in range(rows):
        clamped = False
        total, incoming = 0.0, 0.0
        for at in range(links.begin[row], links.begin[row] + links.degree[row]):
            if directed:
                clamped |= _scale_weight(links.outgoing, at, factor) | _scale_weight(links.incoming, at, factor)
                links.weight[at] = links.outgoing[at] + links.incoming[at]
                incoming += links.incoming[at]
            else:
                clamped |= _scale_weight(links.weight, at, factor)
            total += links.weight[at]
        links.strength[row] = total if clamped else links.strength[row] * factor
        if directed:
            links.in_strength[row] = incoming if clamped else links.in_strength[row] * factor
