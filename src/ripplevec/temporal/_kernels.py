"""Kernels of the time window: a hash table of edge times, and a heap of the times at which edges must be checked.

The table has one entry per edge: the arrival numbers of its endpoints, their rows, the time of its latest arrival, and
the time under which it is queued in the heap. When an edge arrives again, only its latest time changes; its heap entry
stays in place. When that entry becomes due too early, it is queued again under the latest time. The heap therefore has
one entry per edge, plus a few stale entries of edges that were removed; the table tells which entries are stale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.influence._kernels import random_word
from ripplevec.util.numba_intrinsics import kernel

ADD, REMOVE = 0, 1  # as in ripplevec.batch.Op
LATEST, QUEUED = 0, 1  # columns of `time`
EMPTY = -1  # first arrival number of a free entry
EDGE_COUNT, HEAP_SIZE = 0, 1  # cells of `sizes`: entries of the table in use, entries of the heap in use


class EdgeTimes(NamedTuple):
    """Hash table of edges, whose length is a power of two, and heap of due times."""

    edge: NDArray[np.int64]  # (entries, 4): two arrival numbers, two rows; EMPTY if the entry is free
    time: NDArray[np.float64]  # (entries, 2): latest and queued time
    heap_time: NDArray[np.float64]  # (heap entries): due times
    heap_edge: NDArray[np.int64]  # (heap entries, 2): arrival numbers of the edge
    sizes: NDArray[np.int64]


@kernel(forceinline=True)
def _home_entry(edges: EdgeTimes, a: int, b: int) -> Any:
    """Return the entry at which the search for an edge starts."""
    return np.int64(random_word(np.uint64(0), a, b) & np.uint64(len(edges.edge) - 1))


@kernel
def _find_entry(edges: EdgeTimes, a: int, b: int) -> int:
    """Return the entry of an edge, or the free entry where it would be inserted."""
    mask = len(edges.edge) - 1
    at = _home_entry(edges, a, b)
    while edges.edge[at, 0] != EMPTY and (edges.edge[at, 0] != a or edges.edge[at, 1] != b):
        at = (at + 1) & mask
    return at


@kernel
def _remove_entry(edges: EdgeTimes, at: int) -> None:
    """Remove an entry and move up the entries that were displaced past it."""
    mask = len(edges.edge) - 1
    after = at
    while True:
        after = (after + 1) & mask
        if edges.edge[after, 0] == EMPTY:
            break
        home = _home_entry(edges, edges.edge[after, 0], edges.edge[after, 1])
        if (after - home) & mask >= (after - at) & mask:
            edges.edge[at] = edges.edge[after]
            edges.time[at] = edges.time[after]
            at = after
    edges.edge[at, 0] = EMPTY
    edges.sizes[EDGE_COUNT] -= 1


@kernel
def _push(edges: EdgeTimes, when: float, a: int, b: int) -> None:
    """Insert an edge, given by its arrival numbers, into the heap."""
    at = edges.sizes[HEAP_SIZE]
    edges.sizes[HEAP_SIZE] += 1
    while at > 0 and edges.heap_time[(at - 1) >> 1] > when:
        parent = (at - 1) >> 1
        edges.heap_time[at] = edges.heap_time[parent]
        edges.heap_edge[at] = edges.heap_edge[parent]
        at = parent
    edges.heap_time[at], edges.heap_edge[at, 0], edges.heap_edge[at, 1] = when, a, b


@kernel
def _pop(edges: EdgeTimes) -> None:
    """Remove the first entry of the heap."""
    size = edges.sizes[HEAP_SIZE] - 1
    edges.sizes[HEAP_SIZE] = size
    when, a, b = edges.heap_time[size], edges.heap_edge[size, 0], edges.heap_edge[size, 1]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and edges.heap_time[child + 1] < edges.heap_time[child]:
            child += 1
        if edges.heap_time[child] >= when:
            break
        edges.heap_time[at] = edges.heap_time[child]
        edges.heap_edge[at] = edges.heap_edge[child]
        at = child
    edges.heap_time[at], edges.heap_edge[at, 0], edges.heap_edge[at, 1] = when, a, b


@kernel
def record_edges(
    edges: EdgeTimes,
    op: NDArray[np.int8],
    ends: NDArray[np.int64],
    numbers: NDArray[np.int64],
    times: NDArray[np.float64],
    directed: bool,
) -> None:
    """Record added and removed edges, in order. There must be room for all of them."""
    for i in range(op.size):
        a, b = numbers[i]
        if op[i] > REMOVE or a == b:
            continue
        row_a, row_b = ends[i]
        if not directed and a > b:
            a, b, row_a, row_b = b, a, row_b, row_a
        at = _find_entry(edges, a, b)
        known = edges.edge[at, 0] != EMPTY
        if op[i] == REMOVE:
            if known:
                _remove_entry(edges, at)
        elif known:
            edges.time[at, LATEST] = max(edges.time[at, LATEST], times[i])
        else:
            edges.edge[at, 0], edges.edge[at, 1], edges.edge[at, 2], edges.edge[at, 3] = a, b, row_a, row_b
            edges.time[at] = times[i]
            edges.sizes[EDGE_COUNT] += 1
            _push(edges, times[i], a, b)


@kernel
def has_due(edges: EdgeTimes, before: float) -> bool:
    """Return whether the first heap entry is due."""
    return edges.sizes[HEAP_SIZE] > 0 and edges.heap_time[0] < before


@kernel
def count_due(edges: EdgeTimes, before: float) -> int:
    """Return the number of due heap entries, including those of edges that arrived again later."""
    count, heap_size = 0, edges.sizes[HEAP_SIZE]
    stack = np.zeros(128, np.int64)  # the depth of the heap is less than half of this
    depth = 1 if heap_size else 0
    while depth:
        depth -= 1
        at = stack[depth]
        if edges.heap_time[at] < before:
            count += 1
            for child in range(2 * at + 1, min(2 * at + 3, heap_size)):
                stack[depth] = child
                depth += 1
    return count


@kernel
def pop_expired(edges: EdgeTimes, before: float, out: NDArray[np.int64], when: NDArray[np.float64]) -> int:
    """Remove edges whose latest arrival is before a time, at most as many as `out` can hold; return how many."""
    found = 0
    while found < len(out) and has_due(edges, before):
        due, a, b = edges.heap_time[0], edges.heap_edge[0, 0], edges.heap_edge[0, 1]
        _pop(edges)
        at = _find_entry(edges, a, b)
        if edges.edge[at, 0] == EMPTY or edges.time[at, QUEUED] != due:
            continue  # stale: the edge was removed; if it was added again, it has another heap entry
        latest = edges.time[at, LATEST]
        if latest < before:
            out[found] = edges.edge[at]
            when[found] = latest
            found += 1
            _remove_entry(edges, at)
        else:
            edges.time[at, QUEUED] = latest
            _push(edges, latest, a, b)
    return found


@kernel
def rehash(old: EdgeTimes, new: EdgeTimes) -> None:
    """Move all edges into another, empty table and heap; stale heap entries are dropped."""
    for at in range(len(old.edge)):
        if old.edge[at, 0] != EMPTY:
            a, b = old.edge[at, 0], old.edge[at, 1]
            to = _find_entry(new, a, b)
            new.edge[to] = old.edge[at]
            new.time[to] = old.time[at, LATEST]
            new.sizes[EDGE_COUNT] += 1
            _push(new, old.time[at, LATEST], a, b)
