"""Kernels of rule `ripple`: a touched vertex is refreshed by one local step of its views' own operator.

Every function that takes a list of rows works on any part of it, so that one thread can run them all in a row and
several threads can share them out: the arithmetic of a row never depends on which of the two happens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.influence._kernels import draw, key_of, look_around, mark_new, spread
from ripplevec.rules._gather_kernels import World, gather, gather_placed, look_ahead, step
from ripplevec.util.numba_intrinsics import number, prefetch

UNLIMITED = 1 << 62
RESAMPLE = 1 << 20  # keeps the draws that sample neighbors for reading apart from those that test them


class Turn(NamedTuple):
    """What distinguishes one batch from the next: the source of its draws, and its bounds."""

    seed: int
    sequence: int
    depth: int
    max_reads: int
    first_new: int  # arrival numbers from here on are new in this batch


@njit(cache=True, nogil=True)
def preview(world: World, rows: NDArray[np.int64], weights: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """The row a vertex with these neighbors would be admitted with; `out` is left alone where none is placed."""
    total = np.zeros(out.size, world.frame.columns.dtype)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(rows.size):
        if world.placed[rows[i]]:
            for j in range(total.size):
                total[j] += weights[i] * number(world.vectors[rows[i], j])
            sum_a += weights[i]
            sum_aa += np.float64(weights[i]) * weights[i]
    if sum_a > 0:
        step(world.frame, total, sum_a, sum_aa, out)


@njit(cache=True, nogil=True)
def refresh(world: World, rows: NDArray[np.int64], limit: int, key: int, out: NDArray[np.float32]) -> int:
    """Write what `rows` would be after one local step from the values as they are now to `out`; nothing is stored.

    Returns how many of them had to be shortened, as all kernels here do that make rows.
    """
    total = np.empty(world.vectors.shape[1], world.frame.columns.dtype)
    shortened = 0
    for i in range(rows.size):
        look_ahead(world, rows, i, False)
        sum_a, sum_aa = gather(world, rows[i], limit, key, total)
        shortened += step(world.frame, total, sum_a, sum_aa, out[i])
    return shortened


@njit(cache=True, nogil=True)
def store(world: World, rows: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Write refreshed values to their rows, which are placed from then on."""
    for i in range(rows.size):
        if i + 4 < rows.size:
            prefetch(world.vectors, rows[i + 4], 0)
            prefetch(world.placed, rows[i + 4], 0)
        target, value = world.vectors[rows[i]], values[i]
        for j in range(target.size):
            target[j] = value[j]
        world.placed[rows[i]] = 1


@njit(cache=True, nogil=True)
def admit(world: World, rows: NDArray[np.int64]) -> int:
    """Place new vertices one after the other, each from its placed neighbors that arrived before it."""
    total = np.empty(world.vectors.shape[1], world.frame.columns.dtype)
    shortened = 0
    for i in range(rows.size):
        look_ahead(world, rows, i, True)
        row = rows[i]
        sum_a, sum_aa = gather_placed(world, row, world.arrival[row], total)
        if sum_a > 0:
            shortened += step(world.frame, total, sum_a, sum_aa, world.vectors[row])
            world.placed[row] = 1
    return shortened


@njit(cache=True, nogil=True)
def waves(world: World, rows: NDArray[np.int64], first_new: int) -> NDArray[np.int64]:
    """The wave in which each new vertex can be admitted: one after the last of the new neighbors it reads."""
    wave = np.zeros(rows.size, np.int64)
    numbers = world.arrival[rows]
    for i in range(rows.size):
        begin = world.links.begin[rows[i]]
        for slot in range(begin, begin + world.links.count[rows[i]]):
            number = world.arrival[world.links.neighbor[slot]]
            if first_new <= number < numbers[i]:
                wave[i] = max(wave[i], wave[np.searchsorted(numbers[:i], number)] + 1)
    return wave


@njit(cache=True, nogil=True)
def unsettled(world: World, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of `rows`, hardly any, that have no vector yet or no edge any more."""
    found = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        found[kept] = row
        kept += (world.placed[row] == 0) | (world.links.count[row] == 0)  # no branch: lines of many rows are awaited
    return found[:kept]


@njit(cache=True, nogil=True)
def unplaced_among(world: World, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int) -> NDArray[np.int64]:
    """The unplaced vertices among `rows` that have a placed neighbor, each once."""
    found = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        if world.placed[row] or seen[row] == stamp:
            continue
        begin = world.links.begin[row]
        for slot in range(begin, begin + world.links.count[row]):
            if world.placed[world.links.neighbor[slot]]:
                seen[row] = stamp
                found[kept] = row
                kept += 1
                break
    return found[:kept]


@njit(cache=True, nogil=True)
def unplaced_around(world: World, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int) -> NDArray[np.int64]:
    """The unplaced neighbors of `rows`, each once."""
    room = 0
    for row in rows:
        room += world.links.count[row]
    found = np.empty(room, np.int64)
    kept = 0
    for row in rows:
        begin = world.links.begin[row]
        for slot in range(begin, begin + world.links.count[row]):
            other = world.links.neighbor[slot]
            if not world.placed[other] and seen[other] != stamp:
                seen[other] = stamp
                found[kept] = other
                kept += 1
    return found[:kept]


@njit(cache=True, nogil=True)
def place_ring(world: World, ring: NDArray[np.int64]) -> int:
    """Place vertices together from the values before, so that their order does not matter."""
    total = np.empty(world.vectors.shape[1], world.frame.columns.dtype)
    values = np.empty((ring.size, total.size), world.vectors.dtype)
    shortened = 0
    for i in range(ring.size):
        sum_a, sum_aa = gather_placed(world, ring[i], UNLIMITED, total)
        shortened += step(world.frame, total, sum_a, sum_aa, values[i])
    store(world, ring, values)
    return shortened


@njit(cache=True, nogil=True)
def place(
    world: World, arrived: NDArray[np.int64], touched: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> tuple[NDArray[np.int64], int]:
    """Place every vertex that now has a placed neighbor, ring by ring; returns all newcomers, those admitted included.

    The first ring is among the `touched`, for edges have brought it there. Also returns how many were shortened.
    """
    newcomers, shortened = arrived[world.placed[arrived] == 1], 0
    ring = unplaced_among(world, touched, seen, stamp)
    while ring.size:
        shortened += place_ring(world, ring)
        newcomers = np.concatenate((newcomers, ring))
        ring = unplaced_around(world, ring, seen, stamp)
    return newcomers, shortened


@njit(cache=True, nogil=True)
def shaken(
    world: World, pairs: NDArray[np.int64], numbers: NDArray[np.int64], chance: NDArray[np.float64], turn: Turn
) -> NDArray[np.int64]:
    """Round 0 among known vertices: the ends of changed edges, each with the share of its strength that changed."""
    key = key_of(turn.seed, turn.sequence, 0)
    found = np.empty(2 * len(pairs), np.int64)
    kept = 0
    for i in range(len(pairs)):
        if max(numbers[i, 0], numbers[i, 1]) >= turn.first_new:
            continue
        for end in range(2):
            row, own = pairs[i, end], numbers[i, end]
            if world.arrival[row] != own or not world.placed[row]:
                continue
            if draw(key, own, numbers[i, 1 - end]) < chance[i, end]:
                found[kept] = row
                kept += 1
    return found[:kept]


@njit(cache=True, nogil=True)
def count_events(arrived: NDArray[np.int64], numbers: NDArray[np.int64], first_new: int) -> int:
    """How many arrivals and changes between known vertices a batch holds: what it may read goes by that."""
    events = arrived.size
    for i in range(len(numbers)):
        if max(numbers[i, 0], numbers[i, 1]) < first_new:
            events += 1
    return max(events, 1)


@njit(cache=True, nogil=True)
def room_for(links: Links, rows: NDArray[np.int64], limit: int) -> int:
    """How many neighbors are looked at when each row looks at `limit` at the most."""
    room = 0
    for row in rows:
        room += int(min(links.count[row], limit))
    return room


@njit(cache=True, nogil=True)
def release(world: World, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Unplace the vertices that have lost their last edge; returns them."""
    lost = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        if world.placed[row] and world.links.count[row] == 0:
            world.placed[row] = 0
            world.vectors[row] = 0
            lost[kept] = row
            kept += 1
    return lost[:kept]


@njit(cache=True, nogil=True)
def outdated(
    world: World, newcomers: NDArray[np.int64], seen: NDArray[np.int64], stamp: int, first_new: int
) -> NDArray[np.int64]:
    """The newcomers that would be refreshed to something else than what they were admitted with.

    Not so where all neighbors were there before the batch and nothing has moved any of them since.
    """
    found = np.empty(newcomers.size, np.int64)
    kept = 0
    for i in range(newcomers.size):
        look_around(world.links, newcomers, i)
        row = newcomers[i]
        begin = world.links.begin[row]
        found[kept] = row
        again = False
        for slot in range(begin, begin + world.links.count[row]):  # to the end, without a branch: it is not foreseeable
            other = world.links.neighbor[slot]
            again |= (seen[other] == stamp) | (world.arrival[other] >= first_new) | (world.placed[other] == 0)
        kept += again
    return found[:kept]


@njit(cache=True, nogil=True)
def _refresh_now(world: World, rows: NDArray[np.int64], limit: int, key: int) -> int:
    values = np.empty((rows.size, world.vectors.shape[1]), world.vectors.dtype)
    shortened = refresh(world, rows, limit, uint64(key), values)
    store(world, rows, values)
    return shortened


@njit(cache=True, nogil=True)
def ripple(
    world: World,
    arrived: NDArray[np.int64],
    pairs: NDArray[np.int64],
    numbers: NDArray[np.int64],
    chance: NDArray[np.float64],
    seen: NDArray[np.int64],
    turn: Turn,
) -> tuple[NDArray[np.int64], int]:
    """A whole batch on one thread; returns the rows whose vectors may have moved, each once, and how many it shortened.

    `seen` holds two stamps per batch, the odd one for placing and the even one for influence. A newcomer is counted as
    shortened when it is placed, not when it is refreshed once more.
    """
    stamp = 2 * turn.sequence
    shortened = admit(world, arrived)
    touched = unsettled(world, pairs.reshape(-1))
    newcomers, more = place(world, arrived, touched, seen, stamp - 1)
    shortened += more
    lost = release(world, touched)
    front = shaken(world, pairs, numbers, chance, turn)
    mark_new(newcomers.copy(), seen, stamp)
    front = front[: mark_new(front, seen, stamp)]
    left = turn.max_reads * count_events(arrived, numbers, turn.first_new)
    moved = front[:0]
    sources = newcomers
    depth = 0
    while True:
        limit = left // (2 * max(1, front.size))
        if limit == 0:
            break
        if front.size:
            shortened += _refresh_now(world, front, limit, key_of(turn.seed, turn.sequence, depth + RESAMPLE))
            left -= room_for(world.links, front, limit)
            moved = np.concatenate((moved, front))
        if depth == turn.depth:
            break
        depth += 1
        key = key_of(turn.seed, turn.sequence, depth)
        limit = max(1, left // (2 * max(1, front.size)))
        own = room_for(world.links, sources, UNLIMITED)
        reached = np.empty(own + room_for(world.links, front, limit), np.int64)
        count = spread(world.links, world.arrival, sources, seen, stamp, uint64(key), UNLIMITED, reached)
        count += spread(world.links, world.arrival, front, seen, stamp, uint64(key), limit, reached[count:])
        front = reached[: mark_new(reached[:count], seen, stamp)]
        left -= reached.size - own
        sources = newcomers[:0]
        if not front.size:
            break
    _refresh_now(world, outdated(world, newcomers, seen, stamp, turn.first_new), UNLIMITED, uint64(0))
    return np.concatenate((newcomers, moved, lost, arrived[world.placed[arrived] == 0])), shortened
