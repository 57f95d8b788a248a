"""Kernel for a single arrival: one compiled call updates ids, graph and vectors.

For one arrival, Python calls and small arrays would cost more than the work itself. The kernel runs the same functions
in the same order as a batch and gives the same bits. The two dozen arrays of the state are passed once, in an
`ArrivalContext`, because unpacking them in every call takes longer than refreshing a vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import ARENA_TOP, HUB_SIZE_CLASS, INDEX_ARENA_TOP, MIN_SIZE_CLASS, NO_BLOCK, Links
from ripplevec.graph._edge_kernels import apply_edges
from ripplevec.graph._id_kernels import ARENA_USED, ROW_COUNT, EncodedIds, Table, find_ids, intern_id
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import BatchContext, apply_batch
from ripplevec.util.numba_intrinsics import allocation_free, kernel


@structref.register
class _ArrivalContextType(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class ArrivalContext(structref.StructRefProxy):  # type: ignore[misc]
    """State and settings that single arrivals share: id table, kernel state, stamps, and rule parameters.

    Valid until one of the arrays is replaced. `sequence` and `first_new` of `batch_context` are set per arrival.
    """


structref.define_constructor(
    ArrivalContext, _ArrivalContextType, ["table", "state", "seen", "batch_context", "duplicate_policy", "directed"]
)
structref.define_boxing(_ArrivalContextType, ArrivalContext)


@kernel
def make_arrival_context(
    table: Table,
    state: KernelState,
    seen: NDArray[np.int64],
    batch_context: BatchContext,
    duplicate_policy: int,
    directed: bool,
) -> ArrivalContext:
    """Bundle the arguments into a context that kernels accept without unpacking."""
    return ArrivalContext(table, state, seen, batch_context, duplicate_policy, directed)


@allocation_free(inner=True)
def _edges_fit(links: Links, rows: NDArray[np.int64]) -> bool:
    """Return whether the arenas have room for edges from the first row to the others, as `apply_edges` requires."""
    slots, index_cells, widest = 0, 0, 0
    for i in range(rows.size):
        exists, added = rows[i] >= 0, rows.size - 1 if i == 0 else 1
        degree = links.degree[rows[i]] if exists else 0
        size_class = links.size_class[rows[i]] if exists else NO_BLOCK
        if size_class + 1 >= HUB_SIZE_CLASS:
            index_cells += 4 << size_class
        while size_class == NO_BLOCK or 1 << size_class < degree + added:
            size_class = MIN_SIZE_CLASS if size_class == NO_BLOCK else size_class + 1
            slots += 1 << size_class
            if size_class + 1 >= HUB_SIZE_CLASS:
                index_cells += 4 << size_class
        if i == 0:
            slots += 4 << size_class
        else:
            widest = max(widest, 4 << size_class)
    return links.allocator[ARENA_TOP] + slots + widest <= links.neighbor.size and (
        index_cells == 0 or links.allocator[INDEX_ARENA_TOP] + index_cells + widest <= links.index_cells.size
    )


@allocation_free(inner=True)
def _has_room(table: Table, ids: EncodedIds, state: KernelState, rows: NDArray[np.int64]) -> bool:
    """Return whether ids, rows and edges of an arrival fit into the allocated arrays in the worst case."""
    spans, arena, meta = table.spans, table.arena, table.meta
    keys, ends, _ = ids
    text = 0
    for i in range(len(ends)):
        text += max(ends[i] - keys[i], 0)
    return (
        meta[ROW_COUNT] + rows.size <= min(len(spans), state.arrival.size)
        and meta[ARENA_USED] + text <= len(arena)
        and _edges_fit(state.links, rows)
    )


@kernel
def apply_arrival(
    context: ArrivalContext, ids: EncodedIds, weight: NDArray[np.float32], sequence: int, first_new: int
) -> tuple[int, int, int, NDArray[np.int64], int]:
    """Add the first vertex of `ids` with edges to the others, and move the vectors.

    Returns its row, the numbers of new vertices and changed edges, the rows that may have moved, and the number of
    shortened rows. The row is −1, and nothing has changed, if the allocated arrays have too little room.
    """
    table, state, seen = context.table, context.state, context.seen
    shared = context.batch_context
    batch_context = BatchContext(shared.seed, sequence, shared.depth, shared.max_reads, first_new)
    count = len(ids[0])
    rows, new_rows = np.empty(count, np.int64), np.empty(count, np.int64)
    find_ids(table, ids, np.int64(0), count, rows)
    if not _has_room(table, ids, state, rows):
        return -1, 0, 0, new_rows[:0], 0
    new_count: Any = np.int64(0)
    for i in range(count):
        if rows[i] < 0:
            new_count = intern_id(table, ids, i, rows, new_rows, new_count)
    arrived = new_rows[:new_count]
    for i in range(new_count):
        state.arrival[arrived[i]] = first_new + i
        state.vectors[arrived[i]] = 0  # memory of an earlier correction
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
        np.int64(0),
        context.duplicate_policy,
        context.directed,
    )
    moved, shortened = apply_batch(state, arrived, pairs, arrival_numbers, changed_share, seen, batch_context)
    changed = 0
    for i in range(count - 1):
        changed += changed_share[i, 0] != 0
    return rows[0], new_count, changed, moved, shortened
