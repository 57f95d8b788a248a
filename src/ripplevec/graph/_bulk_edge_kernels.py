"""Kernels that add the edges of a large batch on several threads, row after row.

An endpoint of an edge is the integer (row << 32) | (2·i + end), where i is the operation of the batch and `end` is 0
for the source and 1 for the target. Sorted endpoints list, row after row, the operations of each row in the order of
the batch. The list of a row depends on these alone, so every thread can own some of the rows.

Endpoints are sorted in two steps: into *buckets* of 2**shift consecutive rows, then by row within each bucket. Rows
whose block is too small get another one from the allocator, on one thread, before the edges are added; the blocks that
they leave are freed afterward.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import (
    ARENA_TOP,
    EDGE_COUNT,
    HUB_SIZE_CLASS,
    INDEX_ARENA_TOP,
    INDEX_FREE_LISTS,
    MAX_SIZE_CLASS,
    MIN_SIZE_CLASS,
    NO_BLOCK,
    NO_INDEX,
    Links,
    allocate_block,
    free_block,
)
from ripplevec.graph._edge_kernels import ADD, IN, OUT, add_endpoint, move_slot
from ripplevec.graph._hub_kernels import fill_index
from ripplevec.graph._query_kernels import find_slot
from ripplevec.util.numba_intrinsics import kernel, prefetch

CODE_BITS = 32  # bits of an endpoint that hold 2·i + end
CODE_MASK = (1 << CODE_BITS) - 1
SHORT_RUN = 16  # endpoints that are few enough to compare each with all others


class EdgeBatch(NamedTuple):
    """Edge operations of a batch, all of which add something, and the result."""

    op: NDArray[np.int8]
    pairs: NDArray[np.int64]
    weight: NDArray[np.float32]
    changed_share: NDArray[np.float64]  # (m, 2): written for edges, unchanged for other operations


class BlockMoves(NamedTuple):
    """Rows that need another block or an index, in order; then, row by row, the blocks that they leave."""

    rows: NDArray[np.int64]
    size_class: NDArray[np.int8]  # of the new block; after the move, of the old one
    begin: NDArray[np.int64]  # first slot of the new block; after the move, of the old one
    index_begin: NDArray[np.int64]  # first cell of the new index, or NO_INDEX; after the move, of the old one


@kernel
def count_endpoints(batch: EdgeBatch, first: int, last: int, shift: int, counts: NDArray[np.int64]) -> int:
    """Add to `counts` the endpoints of operations `first` to `last` per bucket; return the number of self-loops."""
    loops = 0
    for i in range(first, last):
        if batch.op[i] != ADD:
            continue
        src, dst = batch.pairs[i, 0], batch.pairs[i, 1]
        if src == dst:
            loops += 1
            continue
        counts[src >> shift] += 1
        counts[dst >> shift] += 1
    return loops


@kernel
def scatter_endpoints(
    batch: EdgeBatch, first: int, last: int, shift: int, offsets: NDArray[np.int64], endpoints: NDArray[np.int64]
) -> None:
    """Write the endpoints of operations `first` to `last` to their buckets; `offsets` is where each continues."""
    for i in range(first, last):
        if batch.op[i] != ADD or batch.pairs[i, 0] == batch.pairs[i, 1]:
            continue
        for end in range(2):
            row = batch.pairs[i, end]
            at = offsets[row >> shift]
            endpoints[at] = (row << CODE_BITS) | (2 * i + end)
            offsets[row >> shift] = at + 1


@kernel(forceinline=True)
def _sort_short(endpoints: NDArray[np.int64], begin: int, end: int) -> None:
    """Sort a few endpoints (insertion sort)."""
    for i in range(begin + 1, end):
        endpoint, at = endpoints[i], i
        while at > begin and endpoints[at - 1] > endpoint:
            endpoints[at] = endpoints[at - 1]
            at -= 1
        endpoints[at] = endpoint


@kernel
def sort_buckets(endpoints: NDArray[np.int64], bounds: NDArray[np.int64], shift: int) -> None:
    """Sort the endpoints of each bucket by row, keeping the order of the operations of a row.

    `bounds` are the positions between buckets, from the start of the first to the end of the last. A counting sort is
    used unless the bucket has many more rows than endpoints.
    """
    mask = (np.int64(1) << shift) - 1
    starts = np.empty(mask + 2, np.int64)
    longest = 0
    for i in range(bounds.size - 1):
        longest = max(longest, bounds[i + 1] - bounds[i])
    unsorted = np.empty(longest, np.int64)
    for bucket in range(bounds.size - 1):
        begin, size = bounds[bucket], bounds[bucket + 1] - bounds[bucket]
        if size <= SHORT_RUN:
            _sort_short(endpoints, begin, begin + size)
            continue
        if 4 * size <= mask:
            endpoints[begin : begin + size].sort()
            continue
        starts[:] = 0
        for i in range(size):
            unsorted[i] = endpoints[begin + i]
            starts[((unsorted[i] >> CODE_BITS) & mask) + 1] += 1
        starts[0] = begin
        for i in range(mask):
            starts[i + 1] += starts[i]
        for i in range(size):
            place = (unsorted[i] >> CODE_BITS) & mask
            endpoints[starts[place]] = unsorted[i]
            starts[place] += 1


@kernel(forceinline=True)
def _neighbor(pairs: NDArray[np.int64], endpoint: int) -> int:
    """Return the row at the other end of an endpoint."""
    code = endpoint & CODE_MASK
    return pairs[code >> 1, 1 - (code & 1)]


@kernel(forceinline=True)
def _search(neighbors: NDArray[np.int32], begin: int, end: int, neighbor: int) -> int:
    """Return the first slot from `begin` on that holds a neighbor, or `end`."""
    at = begin
    while at < end and neighbors[at] != neighbor:
        at += 1
    return at


@kernel
def _count_new_in_long_run(links: Links, pairs: NDArray[np.int64], run: NDArray[np.int64]) -> int:
    """Count the different neighbors in the endpoints of one row that are not in its list yet."""
    row, new = run[0] >> CODE_BITS, 0
    neighbors = np.empty(run.size, np.int64)
    for i in range(run.size):
        neighbors[i] = _neighbor(pairs, run[i])
    neighbors.sort()
    for i in range(neighbors.size):
        if i == 0 or neighbors[i] != neighbors[i - 1]:
            new += find_slot(links, row, neighbors[i]) < 0
    return new


@kernel(forceinline=True)
def _is_repeated(pairs: NDArray[np.int64], endpoints: NDArray[np.int64], first: int, i: int, neighbor: int) -> bool:
    """Return whether one of the endpoints from `first` to before `i` has a neighbor."""
    at = first
    while at < i and _neighbor(pairs, endpoints[at]) != neighbor:
        at += 1
    return at < i


@kernel
def plan_moves(
    links: Links, pairs: NDArray[np.int64], endpoints: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return the rows that need a larger block or an index for these sorted endpoints, and their size classes.

    The loop uses local names of the arrays; see `add_endpoints`.
    """
    begins, degrees, classes, index_begins = links.begin, links.degree, links.size_class, links.index_begin
    neighbors = links.neighbor
    rows, size_classes = np.empty(endpoints.size, np.int64), np.empty(endpoints.size, np.int8)
    count, first = 0, 0
    while first < endpoints.size:
        if first + 16 < endpoints.size:
            prefetch(begins, endpoints[first + 16] >> CODE_BITS, 0)
            prefetch(neighbors, begins[endpoints[first + 8] >> CODE_BITS], 0)
        row, last = endpoints[first] >> CODE_BITS, first + 1
        while last < endpoints.size and endpoints[last] >> CODE_BITS == row:
            last += 1
        degree, wanted = np.int64(degrees[row]), np.int64(max(classes[row], MIN_SIZE_CLASS))
        if degree + last - first > 1 << wanted:
            if last - first > SHORT_RUN or index_begins[row] != NO_INDEX:
                degree += _count_new_in_long_run(links, pairs, endpoints[first:last])
            else:
                stop = begins[row] + degrees[row]
                for i in range(first, last):
                    neighbor = _neighbor(pairs, endpoints[i])
                    known = _search(neighbors, begins[row], stop, neighbor) < stop
                    degree += not (known or _is_repeated(pairs, endpoints, first, i, neighbor))
            while degree > 1 << wanted:
                wanted += 1
        if wanted > classes[row] or (wanted >= HUB_SIZE_CLASS and index_begins[row] == NO_INDEX):
            rows[count], size_classes[count] = row, wanted
            count += 1
        first = last
    return rows[:count].copy(), size_classes[:count].copy()


@kernel
def reserve_blocks(links: Links, moves: BlockMoves, first: int) -> int:
    """Allocate the new blocks and indexes, from the `first` on; return how many are done when an arena is full."""
    allocator, neighbors, index_cells, classes = links.allocator, links.neighbor, links.index_cells, links.size_class
    rows, size_classes, begins, index_begins = moves.rows, moves.size_class, moves.begin, moves.index_begin
    for i in range(first, rows.size):
        size_class = size_classes[i]
        size, is_hub = np.int64(1) << size_class, size_class >= HUB_SIZE_CLASS
        allocator[MAX_SIZE_CLASS] = max(allocator[MAX_SIZE_CLASS], size_class)  # an arena grows in proportion to it
        if allocator[ARENA_TOP] + size > neighbors.size:
            return i
        if is_hub and allocator[INDEX_ARENA_TOP] + 2 * size > index_cells.size:
            return i
        index_begins[i] = NO_INDEX
        if size_class > classes[rows[i]]:
            begins[i] = allocate_block(allocator, 0, ARENA_TOP, neighbors, size_class)
        else:  # the row only needs an index
            begins[i] = links.begin[rows[i]]
        if is_hub:
            index_begins[i] = allocate_block(allocator, INDEX_FREE_LISTS, INDEX_ARENA_TOP, index_cells, size_class + 1)
    return rows.size


@kernel
def _move_row(links: Links, moves: BlockMoves, i: int, directed: bool) -> None:
    """Move the i-th row to its new block and build its index; note the block and the index that it leaves."""
    row = moves.rows[i]
    begin, size_class, index_begin = links.begin[row], links.size_class[row], links.index_begin[row]
    if begin != moves.begin[i] or size_class == NO_BLOCK:
        for position in range(links.degree[row]):
            move_slot(links, begin + position, moves.begin[i] + position, directed)
    links.begin[row], links.size_class[row] = moves.begin[i], moves.size_class[i]
    links.index_begin[row] = moves.index_begin[i]
    if moves.index_begin[i] != NO_INDEX:
        fill_index(links, row)
    moves.size_class[i] = NO_BLOCK if size_class == moves.size_class[i] else size_class
    moves.begin[i], moves.index_begin[i] = begin, index_begin


@kernel
def _add_known(links: Links, batch: EdgeBatch, endpoint: int, duplicate_policy: int, directed: bool) -> None:
    """Add an edge to a list that has an index or contains the edge already."""
    row, operation, end = endpoint >> CODE_BITS, (endpoint & CODE_MASK) >> 1, endpoint & 1
    before, neighbor = links.strength[row], batch.pairs[operation, 1 - end]
    change = abs(add_endpoint(links, row, neighbor, batch.weight[operation], end, duplicate_policy, directed))
    if change > 0:
        batch.changed_share[operation, end] = change / max(before, links.strength[row])


@kernel(forceinline=True)
def _prefetch_operation(
    begins: NDArray[np.int64],
    pairs: NDArray[np.int64],
    weights: NDArray[np.float32],
    changed_share: NDArray[np.float64],
    endpoint: int,
) -> None:
    """Prefetch the row of an endpoint, and what the batch holds of its operation."""
    operation = (endpoint & CODE_MASK) >> 1
    prefetch(begins, endpoint >> CODE_BITS, 0)
    prefetch(pairs, operation, 0)
    prefetch(weights, operation, 0)
    prefetch(changed_share, operation, 0)


@kernel
def add_endpoints(
    links: Links,
    batch: EdgeBatch,
    endpoints: NDArray[np.int64],
    moves: BlockMoves,
    duplicate_policy: int,
    directed: bool,
) -> None:
    """Add the edges of sorted endpoints to the lists of their rows, after moving the rows that need it.

    `moves` has exactly the rows that `plan_moves` returned for these endpoints. `links.allocator` must not be shared
    with other threads: the number of edges is counted in it. The loop uses local names of the arrays: reading them
    from the tuples would count references, and threads would wait for each other's counts.
    """
    begins, degrees, strengths, index_begins = links.begin, links.degree, links.strength, links.index_begin
    in_strengths, neighbors, weights = links.in_strength, links.neighbor, links.weight
    outgoing, incoming, move_rows = links.outgoing, links.incoming, moves.rows
    pairs, new_weights, changed_share = batch.pairs, batch.weight, batch.changed_share
    moved, edges, row = 0, 0, np.int64(-1)
    for i in range(endpoints.size):
        if i + 16 < endpoints.size:
            _prefetch_operation(begins, pairs, new_weights, changed_share, endpoints[i + 16])
            later = endpoints[i + 8] >> CODE_BITS
            prefetch(neighbors, begins[later], 0)
            prefetch(neighbors, begins[later] + degrees[later], 0)
        if endpoints[i] >> CODE_BITS != row:
            row = endpoints[i] >> CODE_BITS
            if moved < move_rows.size and move_rows[moved] == row:
                _move_row(links, moves, moved, directed)
                moved += 1
        operation, end = (endpoints[i] & CODE_MASK) >> 1, endpoints[i] & 1
        weight, neighbor = new_weights[operation], pairs[operation, 1 - end]
        at, stop, has_index = begins[row], begins[row] + degrees[row], index_begins[row] != NO_INDEX
        if not has_index:
            at = _search(neighbors, at, stop, neighbor)
        if has_index or at < stop:
            _add_known(links, batch, endpoints[i], duplicate_policy, directed)
            continue
        neighbors[at], weights[at] = neighbor, weight
        if directed:
            outgoing[at] = weight if end == OUT else np.float32(0)
            incoming[at] = weight if end == IN else np.float32(0)
            in_strengths[row] += incoming[at]
        degrees[row] += 1
        strengths[row] += weight
        edges += end == OUT
        changed_share[operation, end] = np.float64(weight) / strengths[row]
    links.allocator[EDGE_COUNT] += edges


@kernel
def free_left_blocks(links: Links, moves: BlockMoves) -> None:
    """Free the blocks and indexes that rows have left."""
    for i in range(moves.rows.size):
        old = moves.size_class[i]
        if old != NO_BLOCK:
            free_block(links.allocator, 0, links.neighbor, moves.begin[i], old)
        if moves.index_begin[i] != NO_INDEX:
            free_block(links.allocator, INDEX_FREE_LISTS, links.index_cells, moves.index_begin[i], old + 1)
