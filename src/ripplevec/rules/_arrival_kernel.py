"""One arrival in one call: at this size calls and small arrays cost more than the work, so everything happens here.

The same kernels in the same order as for a batch, and therefore the same bits. The two dozen arrays of the state are
handed over once, in a `ArrivalContext`, and not with every call: unpacking them takes longer than refreshing a vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.experimental import structref
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import ARENA_TOP, HUB_SIZE_CLASS, INDEX_ARENA_TOP, MIN_SIZE_CLASS, NO_BLOCK, Links
from ripplevec.graph._edge_kernels import apply_edges
from ripplevec.graph._id_kernels import ARENA_USED, ROW_COUNT, EncodedIds, Table, find_ids, intern_id
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import BatchContext, apply_batch


@structref.register
class _ArrivalContextType(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class ArrivalContext(structref.StructRefProxy):  # type: ignore[misc]
    """What an arrival works with: names, state, who has been seen, and how the rule is set.

    Valid until one of the arrays is replaced. Of `batch_context`, sequence and first_new are each arrival's own.
    """


structref.define_constructor(
    ArrivalContext, _ArrivalContextType, ["table", "state", "seen", "batch_context", "duplicate_policy", "directed"]
)
structref.define_boxing(_ArrivalContextType, ArrivalContext)


@njit(cache=True, nogil=True)
def make_arrival_context(
    table: Table,
    state: KernelState,
    seen: NDArray[np.int64],
    batch_context: BatchContext,
    duplicate_policy: int,
    directed: bool,
) -> ArrivalContext:
    """All of it in one parcel."""
    return ArrivalContext(table, state, seen, batch_context, duplicate_policy, directed)


@njit(cache=True, nogil=True)
def _fits(links: Links, rows: NDArray[np.int64]) -> bool:
    """Whether the arenas have room for edges from the first row to the others, with what `apply_edges` demands."""
    slots, places, widest = 0, 0, 0
    for i in range(rows.size):
        known, more = rows[i] >= 0, rows.size - 1 if i == 0 else 1
        count = links.degree[rows[i]] if known else 0
        room = links.size_class[rows[i]] if known else NO_BLOCK
        if room + 1 >= HUB_SIZE_CLASS:
            places += 4 << room
        while room == NO_BLOCK or 1 << room < count + more:
            room = MIN_SIZE_CLASS if room == NO_BLOCK else room + 1
            slots += 1 << room
            if room + 1 >= HUB_SIZE_CLASS:
                places += 4 << room
        if i == 0:
            slots += 4 << room
        else:
            widest = max(widest, 4 << room)
    return links.allocator[ARENA_TOP] + slots + widest <= links.neighbor.size and (
        places == 0 or links.allocator[INDEX_ARENA_TOP] + places + widest <= links.index_cells.size
    )


@njit(cache=True, nogil=True)
def _has_room(table: Table, names: EncodedIds, state: KernelState, rows: NDArray[np.int64]) -> bool:
    """Whether names, rows and edges of an arrival fit in what is allocated, whatever they turn out to need."""
    _, spans, arena, meta = table
    keys, ends, _ = names
    text = 0
    for i in range(len(ends)):
        text += max(ends[i] - keys[i], 0)
    return (
        meta[ROW_COUNT] + rows.size <= min(len(spans), state.arrival.size)
        and meta[ARENA_USED] + text <= len(arena)
        and _fits(state.links, rows)
    )


@njit(cache=True, nogil=True)
def apply_arrival(
    context: ArrivalContext, names: EncodedIds, weight: NDArray[np.float32], sequence: int, first_new: int
) -> tuple[int, int, int, int, int]:
    """Let the vertex named first arrive with edges to those named after it.

    Returns its row, and the arrival_numbers of newcomers, of edges and rows changed, and of rows shortened. The row is −1, and
    nothing has happened, where there is not enough room.
    """
    table, state, seen = context.table, context.state, context.seen
    batch_context = BatchContext(
        context.batch_context.seed, sequence, context.batch_context.depth, context.batch_context.max_reads, first_new
    )
    count = len(names[0])
    rows, fresh = np.empty(count, np.int64), np.empty(count, np.int64)
    find_ids(table, names, 0, count, rows)
    if not _has_room(table, names, state, rows):
        return -1, 0, 0, 0, 0
    new = 0
    for i in range(count):
        if rows[i] < 0:
            new = intern_id(table, names, i, rows, fresh, new)
    arrived = fresh[:new]
    for i in range(new):
        state.arrival[arrived[i]] = first_new + i
    pairs, arrival_numbers = np.empty((count - 1, 2), np.int64), np.empty((count - 1, 2), np.int64)
    for i in range(count - 1):
        pairs[i, 0], pairs[i, 1] = rows[0], rows[i + 1]
        arrival_numbers[i, 0], arrival_numbers[i, 1] = state.arrival[rows[0]], state.arrival[rows[i + 1]]
    changed_share = np.empty((count - 1, 2))
    apply_edges(
        state.links,
        np.zeros(count - 1, np.int8),
        pairs,
        weight,
        changed_share,
        0,
        context.duplicate_policy,
        context.directed,
    )
    moved, shortened = apply_batch(state, arrived, pairs, arrival_numbers, changed_share, seen, batch_context)
    return rows[0], new, int(np.count_nonzero(changed_share[:, 0])), moved.size, shortened
