"""Kernels of rule `ripple`: a touched vertex is refreshed by one local step of its views' own operator.

Every function that takes a list of rows works on any part of it, so that one thread can run them all in a row and
several threads can share them out: the arithmetic of a row never depends on which of the two happens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from ripplet.graph._kernels import Links
from ripplet.influence._kernels import draw, key_of, mark_new, sampled_slot, spread
from ripplet.intrinsics import LINE, number, prefetch, set_number
from ripplet.views._kernels import Frame

UNLIMITED = 1 << 62
RESAMPLE = 1 << 20  # keeps the draws that sample neighbours for reading apart from those that test them


class World(NamedTuple):
    """The state that a batch works on."""

    links: Links
    arrival: NDArray[np.int64]
    placed: NDArray[np.uint8]
    vectors: NDArray[np.float32]
    frame: Frame


class Turn(NamedTuple):
    """What distinguishes one batch from the next: the source of its draws, and its bounds."""

    seed: int
    sequence: int
    depth: int
    max_reads: int
    first_new: int  # arrival numbers from here on are new in this batch


AHEAD = 12  # neighbours of the next row whose vectors are asked for; a longer list is on its way by itself


@njit(cache=True, nogil=True, forceinline=True)
def look_ahead(world: World, rows: NDArray[np.int64], i: int, lines_too: bool) -> None:
    """Ask memory for what the rows after the i-th will read: their lines, their neighbours, these neighbours' vectors.

    With `lines_too`, also what is noted of these neighbours. A row is reached by three steps that each wait for the one
    before. Taken for different rows at a time, they overlap.
    """
    links, vectors = world.links, world.vectors
    if i + 6 < rows.size:
        prefetch(links.begin, rows[i + 6], 0)
    if i + 3 < rows.size:
        prefetch(links.neighbour, links.begin[rows[i + 3]], 0)
        prefetch(links.neighbour, links.begin[rows[i + 3]], 1)
    if i + 1 < rows.size:
        begin, lines = links.begin[rows[i + 1]], -(-vectors.shape[1] * vectors.itemsize // LINE)
        for slot in range(begin, begin + min(links.count[rows[i + 1]], AHEAD)):
            other = links.neighbour[slot]
            if lines_too:
                prefetch(world.arrival, other, 0)
            for line in range(lines):
                prefetch(vectors, other, line)


@njit(cache=True, nogil=True, forceinline=True)
def _add_all(world: World, begin: int, end: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Add a·x of the slots begin … end−1 to the total, one after the other; Σa and Σa²."""
    links, vectors = world.links, world.vectors
    sum_a, sum_aa = 0.0, 0.0
    slot = begin
    while slot + 4 <= end:  # four at a time: the total is loaded and stored a quarter as often
        a, p = links.weight[slot], vectors[links.neighbour[slot]]
        b, q = links.weight[slot + 1], vectors[links.neighbour[slot + 1]]
        c, r = links.weight[slot + 2], vectors[links.neighbour[slot + 2]]
        d, s = links.weight[slot + 3], vectors[links.neighbour[slot + 3]]
        for j in range(total.size):
            sum_j = total[j] + a * number(p[j])
            sum_j = sum_j + b * number(q[j])
            sum_j = sum_j + c * number(r[j])
            total[j] = sum_j + d * number(s[j])
        slot += 4
    for rest in range(slot, end):
        a, p = links.weight[rest], vectors[links.neighbour[rest]]
        for j in range(total.size):
            total[j] += a * number(p[j])
    for at in range(begin, end):
        sum_a += links.weight[at]
        sum_aa += np.float64(links.weight[at]) * links.weight[at]
    return sum_a, sum_aa


@njit(cache=True, nogil=True, forceinline=True)
def _gather(world: World, row: int, limit: int, key: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Sum a·x over all neighbours (over `limit` sampled ones, scaled up, where there are more); Σa and Σa²."""
    links = world.links
    begin, count = links.begin[row], links.count[row]
    total[:] = 0
    if count <= limit:
        return _add_all(world, begin, begin + count, total)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(limit):
        slot = begin + sampled_slot(key, world.arrival[row], i, count)
        a, aa = _add_all(world, slot, slot + 1, total)
        sum_a += a
        sum_aa += aa
    if sum_a > 0:
        scale = links.strength[row] / sum_a
        for j in range(total.size):
            total[j] *= scale
        sum_a *= scale
        sum_aa *= scale * scale  # the effective number of neighbours stays that of the sample
    return sum_a, sum_aa


@njit(cache=True, nogil=True, forceinline=True)
def _gather_placed(world: World, row: int, before: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Sum a·x over the neighbours that are placed and have an arrival number below `before`; Σa and Σa²."""
    links = world.links
    first, end = links.begin[row], links.begin[row] + links.count[row]
    total[:] = 0
    sum_a, sum_aa = 0.0, 0.0
    while first < end:  # nearly always all of them, in one stretch
        last = first
        while last < end and world.placed[links.neighbour[last]] and world.arrival[links.neighbour[last]] < before:
            last += 1
        if last > first:
            a, aa = _add_all(world, first, last, total)
            sum_a += a
            sum_aa += aa
        first = last + 1
    return sum_a, sum_aa


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _step(frame: Frame, total: NDArray[np.float32], sum_a: float, sum_aa: float, out: NDArray[np.float32]) -> None:
    """Turn a sum over neighbours into a row: z = (Σax − c)/((d+τ)μ₁), times μ'(1 + ρ/b)/(μ'² + ρ/b)."""
    one = total.dtype.type(1)
    mu, centre = frame.columns
    for g in range(len(frame.views)):
        tau, top, ridge = frame.views[g]
        over = total.dtype.type(1.0 / ((sum_a + tau) * top))
        r = total.dtype.type(ridge * sum_aa / (sum_a * sum_a))
        for j in range(np.uint64(frame.bounds[g]), np.uint64(frame.bounds[g + 1])):  # never negative: no check of that
            m = mu[j]
            set_number(out, j, (total[j] - centre[j]) * over * (m * (one + r) / (m * m + r)))


@njit(cache=True, nogil=True)
def preview(world: World, rows: NDArray[np.int64], weights: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """The row a vertex with these neighbours would be admitted with; `out` is left alone where none is placed."""
    total = np.zeros(out.size, world.frame.columns.dtype)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(rows.size):
        if world.placed[rows[i]]:
            for j in range(total.size):
                total[j] += weights[i] * number(world.vectors[rows[i], j])
            sum_a += weights[i]
            sum_aa += np.float64(weights[i]) * weights[i]
    if sum_a > 0:
        _step(world.frame, total, sum_a, sum_aa, out)


@njit(cache=True, nogil=True)
def refresh(world: World, rows: NDArray[np.int64], limit: int, key: int, out: NDArray[np.float32]) -> None:
    """What `rows` would be after one local step from the values as they are now; nothing is stored."""
    total = np.empty(world.vectors.shape[1], world.frame.columns.dtype)
    for i in range(rows.size):
        look_ahead(world, rows, i, False)
        sum_a, sum_aa = _gather(world, rows[i], limit, key, total)
        _step(world.frame, total, sum_a, sum_aa, out[i])


@njit(cache=True, nogil=True)
def widen(vectors: NDArray[np.float32], row: int, out: NDArray[np.float32]) -> None:
    """One row as numbers, whatever it is stored as."""
    for j in range(out.size):
        out[j] = number(vectors[row, j])


@njit(cache=True, nogil=True)
def store(world: World, rows: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Write refreshed values to their rows, which are placed from then on."""
    for i in range(rows.size):
        world.vectors[rows[i]] = values[i]
        world.placed[rows[i]] = 1


@njit(cache=True, nogil=True)
def admit(world: World, rows: NDArray[np.int64]) -> None:
    """Place new vertices one after the other, each from its placed neighbours that arrived before it."""
    total = np.empty(world.vectors.shape[1], world.frame.columns.dtype)
    for i in range(rows.size):
        look_ahead(world, rows, i, True)
        row = rows[i]
        sum_a, sum_aa = _gather_placed(world, row, world.arrival[row], total)
        if sum_a > 0:
            _step(world.frame, total, sum_a, sum_aa, world.vectors[row])
            world.placed[row] = 1


@njit(cache=True, nogil=True)
def waves(world: World, rows: NDArray[np.int64], first_new: int) -> NDArray[np.int64]:
    """The wave in which each new vertex can be admitted: one after the last of the new neighbours it reads."""
    wave = np.zeros(rows.size, np.int64)
    numbers = world.arrival[rows]
    for i in range(rows.size):
        begin = world.links.begin[rows[i]]
        for slot in range(begin, begin + world.links.count[rows[i]]):
            number = world.arrival[world.links.neighbour[slot]]
            if first_new <= number < numbers[i]:
                wave[i] = max(wave[i], wave[np.searchsorted(numbers[:i], number)] + 1)
    return wave


@njit(cache=True, nogil=True)
def unplaced_among(world: World, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int) -> NDArray[np.int64]:
    """The unplaced vertices among `rows` that have a placed neighbour, each once."""
    found = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        if world.placed[row] or seen[row] == stamp:
            continue
        begin = world.links.begin[row]
        for slot in range(begin, begin + world.links.count[row]):
            if world.placed[world.links.neighbour[slot]]:
                seen[row] = stamp
                found[kept] = row
                kept += 1
                break
    return found[:kept]


@njit(cache=True, nogil=True)
def _unplaced_around(world: World, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int) -> NDArray[np.int64]:
    """The unplaced neighbours of `rows`, each once."""
    room = 0
    for row in rows:
        room += world.links.count[row]
    found = np.empty(room, np.int64)
    kept = 0
    for row in rows:
        begin = world.links.begin[row]
        for slot in range(begin, begin + world.links.count[row]):
            other = world.links.neighbour[slot]
            if not world.placed[other] and seen[other] != stamp:
                seen[other] = stamp
                found[kept] = other
                kept += 1
    return found[:kept]


@njit(cache=True, nogil=True)
def place(
    world: World, arrived: NDArray[np.int64], touched: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> NDArray[np.int64]:
    """Place every vertex that now has a placed neighbour, ring by ring; returns all newcomers, those admitted included.

    A ring is placed together from the values before it, so that its order does not matter.
    """
    newcomers = arrived[world.placed[arrived] == 1]
    ring = np.concatenate(
        (unplaced_among(world, touched, seen, stamp), _unplaced_around(world, newcomers, seen, stamp))
    )
    total = np.empty(world.vectors.shape[1], world.frame.columns.dtype)
    while ring.size:
        values = np.empty((ring.size, total.size), world.vectors.dtype)
        for i in range(ring.size):
            sum_a, sum_aa = _gather_placed(world, ring[i], UNLIMITED, total)
            _step(world.frame, total, sum_a, sum_aa, values[i])
        store(world, ring, values)
        newcomers = np.concatenate((newcomers, ring))
        ring = _unplaced_around(world, ring, seen, stamp)
    return newcomers


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
    """How many neighbours are looked at when each row looks at `limit` at the most."""
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

    Not so where all neighbours were there before the batch and nothing has moved any of them since.
    """
    found = np.empty(newcomers.size, np.int64)
    kept = 0
    for row in newcomers:
        begin = world.links.begin[row]
        for slot in range(begin, begin + world.links.count[row]):
            other = world.links.neighbour[slot]
            if seen[other] == stamp or world.arrival[other] >= first_new or not world.placed[other]:
                found[kept] = row
                kept += 1
                break
    return found[:kept]


@njit(cache=True, nogil=True)
def _refresh_now(world: World, rows: NDArray[np.int64], limit: int, key: int) -> None:
    values = np.empty((rows.size, world.vectors.shape[1]), world.vectors.dtype)
    refresh(world, rows, limit, uint64(key), values)
    store(world, rows, values)


@njit(cache=True, nogil=True)
def ripple(
    world: World,
    arrived: NDArray[np.int64],
    pairs: NDArray[np.int64],
    numbers: NDArray[np.int64],
    chance: NDArray[np.float64],
    seen: NDArray[np.int64],
    turn: Turn,
) -> NDArray[np.int64]:
    """A whole batch on one thread; returns the rows whose vectors may have moved, each once.

    `seen` holds two stamps per batch, the odd one for placing and the even one for influence.
    """
    stamp = 2 * turn.sequence
    admit(world, arrived)
    touched = pairs.reshape(-1)
    newcomers = place(world, arrived, touched, seen, stamp - 1)
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
            _refresh_now(world, front, limit, key_of(turn.seed, turn.sequence, depth + RESAMPLE))
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
    return np.concatenate((newcomers, moved, lost, arrived[world.placed[arrived] == 0]))
