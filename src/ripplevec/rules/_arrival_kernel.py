"""One arrival in one call: at this size calls and small arrays cost more than the work, so everything happens here.

The same kernels in the same order as for a batch, and therefore the same bits. The two dozen arrays of the state are
handed over once, in a `Stage`, and not with every call: unpacking them takes longer than refreshing a vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.experimental import structref
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import HUB, INDEX_TOP, MIN_ROOM, NO_ROOM, TOP, Links
from ripplevec.graph._id_kernels import ROWS, USED, Names, Table, find_names, resolve
from ripplevec.graph._kernels import apply_edges
from ripplevec.rules._gather_kernels import World
from ripplevec.rules._kernels import Turn, ripple


@structref.register
class _StageType(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Stage(structref.StructRefProxy):  # type: ignore[misc]
    """What an arrival works with: names, state, who has been seen, and how the rule is set.

    Valid until one of the arrays is replaced. Of `turn`, sequence and first_new are each arrival's own.
    """


structref.define_constructor(Stage, _StageType, ["table", "world", "seen", "turn", "repeated", "directed"])
structref.define_boxing(_StageType, Stage)


@njit(cache=True, nogil=True)
def set_stage(table: Table, world: World, seen: NDArray[np.int64], turn: Turn, repeated: int, directed: bool) -> Stage:
    """All of it in one parcel."""
    return Stage(table, world, seen, turn, repeated, directed)


@njit(cache=True, nogil=True)
def _fits(links: Links, rows: NDArray[np.int64]) -> bool:
    """Whether the arenas have room for edges from the first row to the others, with what `apply_edges` demands."""
    slots, places, widest = 0, 0, 0
    for i in range(rows.size):
        known, more = rows[i] >= 0, rows.size - 1 if i == 0 else 1
        count = links.count[rows[i]] if known else 0
        room = links.room[rows[i]] if known else NO_ROOM
        if room + 1 >= HUB:
            places += 4 << room
        while room == NO_ROOM or 1 << room < count + more:
            room = MIN_ROOM if room == NO_ROOM else room + 1
            slots += 1 << room
            if room + 1 >= HUB:
                places += 4 << room
        if i == 0:
            slots += 4 << room
        else:
            widest = max(widest, 4 << room)
    return links.heads[TOP] + slots + widest <= links.neighbor.size and (
        places == 0 or links.heads[INDEX_TOP] + places + widest <= links.places.size
    )


@njit(cache=True, nogil=True)
def _has_room(table: Table, names: Names, world: World, rows: NDArray[np.int64]) -> bool:
    """Whether names, rows and edges of an arrival fit in what is allocated, whatever they turn out to need."""
    _, spans, arena, meta = table
    keys, ends, _ = names
    text = 0
    for i in range(len(ends)):
        text += max(ends[i] - keys[i], 0)
    return (
        meta[ROWS] + rows.size <= min(len(spans), world.arrival.size)
        and meta[USED] + text <= len(arena)
        and _fits(world.links, rows)
    )


@njit(cache=True, nogil=True)
def arrive(
    stage: Stage, names: Names, weight: NDArray[np.float32], sequence: int, first_new: int
) -> tuple[int, int, int, int, int]:
    """Let the vertex named first arrive with edges to those named after it.

    Returns its row, and the numbers of newcomers, of edges and rows changed, and of rows shortened. The row is −1, and
    nothing has happened, where there is not enough room.
    """
    table, world, seen = stage.table, stage.world, stage.seen
    turn = Turn(stage.turn.seed, sequence, stage.turn.depth, stage.turn.max_reads, first_new)
    count = len(names[0])
    rows, fresh = np.empty(count, np.int64), np.empty(count, np.int64)
    find_names(table, names, 0, count, rows)
    if not _has_room(table, names, world, rows):
        return -1, 0, 0, 0, 0
    new = 0
    for i in range(count):
        if rows[i] < 0:
            new = resolve(table, names, i, rows, fresh, new)
    arrived = fresh[:new]
    for i in range(new):
        world.arrival[arrived[i]] = first_new + i
    pairs, numbers = np.empty((count - 1, 2), np.int64), np.empty((count - 1, 2), np.int64)
    for i in range(count - 1):
        pairs[i, 0], pairs[i, 1] = rows[0], rows[i + 1]
        numbers[i, 0], numbers[i, 1] = world.arrival[rows[0]], world.arrival[rows[i + 1]]
    chance = np.empty((count - 1, 2))
    apply_edges(world.links, np.zeros(count - 1, np.int8), pairs, weight, chance, 0, stage.repeated, stage.directed)
    moved, shortened = ripple(world, arrived, pairs, numbers, chance, seen, turn)
    return rows[0], new, int(np.count_nonzero(chance[:, 0])), moved.size, shortened
