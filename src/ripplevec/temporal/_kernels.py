"""Kernels of the window: a hash table of edges with the times of their latest mentions, and a heap that wakes them.

An edge has one line in the table: the arrival numbers of its ends, who they are to the engine, and two times, that of
its latest mention and that under which it stands in the heap. Mentioned again, it stays where it is in the heap; when
it is woken too early, it goes back under its latest time. So there are as many entries as edges, and a few that no
longer stand for any: the table knows which.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.influence._kernels import random_word

ADD, REMOVE = 0, 1  # as ripplevec.batch.Op
LATEST, QUEUED = 0, 1
EMPTY = -1
EDGE_COUNT, HEAP_SIZE = 0, 1  # sizes[EDGES]: lines of the table in use; sizes[WAITING]: entries of the heap


class EdgeTimes(NamedTuple):
    """The table, whose length is a power of two, and the heap."""

    edge: NDArray[np.int64]  # (lines, 4): two arrival numbers, two ends; NOBODY where a line is free
    time: NDArray[np.float64]  # (lines, 2)
    wake: NDArray[np.float64]  # (entries): when
    who: NDArray[np.int64]  # (entries, 2): the arrival numbers of an edge
    sizes: NDArray[np.int64]


@njit(cache=True, nogil=True, forceinline=True)
def _home_entry(held: EdgeTimes, a: int, b: int) -> Any:
    return np.int64(random_word(np.uint64(0), a, b) & np.uint64(len(held.edge) - 1))


@njit(cache=True, nogil=True)
def _find_entry(held: EdgeTimes, a: int, b: int) -> int:
    """The line of an edge, or the free one where it would be."""
    mask = len(held.edge) - 1
    at = _home_entry(held, a, b)
    while held.edge[at, 0] != EMPTY and (held.edge[at, 0] != a or held.edge[at, 1] != b):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _remove_entry(held: EdgeTimes, at: int) -> None:
    """Take a line out; those behind it that were pushed aside move up."""
    mask = len(held.edge) - 1
    after = at
    while True:
        after = (after + 1) & mask
        if held.edge[after, 0] == EMPTY:
            break
        home = _home_entry(held, held.edge[after, 0], held.edge[after, 1])
        if (after - home) & mask >= (after - at) & mask:
            held.edge[at] = held.edge[after]
            held.time[at] = held.time[after]
            at = after
    held.edge[at, 0] = EMPTY
    held.sizes[EDGE_COUNT] -= 1


@njit(cache=True, nogil=True)
def _push(held: EdgeTimes, when: float, a: int, b: int) -> None:
    at = held.sizes[HEAP_SIZE]
    held.sizes[HEAP_SIZE] += 1
    while at > 0 and held.wake[(at - 1) >> 1] > when:
        above = (at - 1) >> 1
        held.wake[at] = held.wake[above]
        held.who[at] = held.who[above]
        at = above
    held.wake[at], held.who[at, 0], held.who[at, 1] = when, a, b


@njit(cache=True, nogil=True)
def _pop(held: EdgeTimes) -> None:
    """Take the first out of the heap."""
    size = held.sizes[HEAP_SIZE] - 1
    held.sizes[HEAP_SIZE] = size
    when, a, b = held.wake[size], held.who[size, 0], held.who[size, 1]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and held.wake[below + 1] < held.wake[below]:
            below += 1
        if held.wake[below] >= when:
            break
        held.wake[at] = held.wake[below]
        held.who[at] = held.who[below]
        at = below
    held.wake[at], held.who[at, 0], held.who[at, 1] = when, a, b


@njit(cache=True, nogil=True)
def record_edges(
    held: EdgeTimes,
    op: NDArray[np.int8],
    ends: NDArray[np.int64],
    numbers: NDArray[np.int64],
    times: NDArray[np.float64],
    directed: bool,
) -> None:
    """Remember which edges were mentioned and which removed, in order. There must be room for all of them."""
    for i in range(op.size):
        a, b = numbers[i]
        if op[i] > REMOVE or a == b:
            continue
        x, y = ends[i]
        if not directed and a > b:
            a, b, x, y = b, a, y, x
        at = _find_entry(held, a, b)
        known = held.edge[at, 0] != EMPTY
        if op[i] == REMOVE:
            if known:
                _remove_entry(held, at)
        elif known:
            held.time[at, LATEST] = max(held.time[at, LATEST], times[i])
        else:
            held.edge[at, 0], held.edge[at, 1], held.edge[at, 2], held.edge[at, 3] = a, b, x, y
            held.time[at] = times[i]
            held.sizes[EDGE_COUNT] += 1
            _push(held, times[i], a, b)


@njit(cache=True, nogil=True)
def has_due(held: EdgeTimes, before: float) -> bool:
    """Whether an edge has to be woken."""
    return held.sizes[HEAP_SIZE] > 0 and held.wake[0] < before


@njit(cache=True, nogil=True)
def count_due(held: EdgeTimes, before: float) -> int:
    """How many edges have to be woken, those that were mentioned again included."""
    count, waiting = 0, held.sizes[HEAP_SIZE]
    stack = np.zeros(128, np.int64)  # a heap is less deep than half of that
    depth = 1 if waiting else 0
    while depth:
        depth -= 1
        at = stack[depth]
        if held.wake[at] < before:
            count += 1
            for below in range(2 * at + 1, min(2 * at + 3, waiting)):
                stack[depth] = below
                depth += 1
    return count


@njit(cache=True, nogil=True)
def pop_expired(held: EdgeTimes, before: float, out: NDArray[np.int64], when: NDArray[np.float64]) -> int:
    """Take out edges whose latest mention lies before a time, as many as there is room for; returns how many."""
    found = 0
    while found < len(out) and has_due(held, before):
        due, a, b = held.wake[0], held.who[0, 0], held.who[0, 1]
        _pop(held)
        at = _find_entry(held, a, b)
        if held.edge[at, 0] == EMPTY or held.time[at, QUEUED] != due:
            continue  # it was removed, and if it is there again it has another entry
        latest = held.time[at, LATEST]
        if latest < before:
            out[found] = held.edge[at]
            when[found] = latest
            found += 1
            _remove_entry(held, at)
        else:
            held.time[at, QUEUED] = latest
            _push(held, latest, a, b)
    return found


@njit(cache=True, nogil=True)
def rehash(old: EdgeTimes, new: EdgeTimes) -> None:
    """Have all edges in another, empty, table and heap; entries that stand for none are left behind."""
    for at in range(len(old.edge)):
        if old.edge[at, 0] != EMPTY:
            a, b = old.edge[at, 0], old.edge[at, 1]
            to = _find_entry(new, a, b)
            new.edge[to] = old.edge[at]
            new.time[to] = old.time[at, LATEST]
            new.sizes[EDGE_COUNT] += 1
            _push(new, old.time[at, LATEST], a, b)
