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
from ripplevec.influence._kernels import derive_key, draw_uniform, mark_seen, prefetch_neighbors, spread_round
from ripplevec.rules._gather_kernels import KernelState, gather, gather_placed, local_step, prefetch_rows
from ripplevec.util.numba_intrinsics import as_float, prefetch

UNLIMITED = 1 << 62
RESAMPLE = 1 << 20  # keeps the draws that sample neighbors for reading apart from those that test them


class BatchContext(NamedTuple):
    """What distinguishes one batch from the next: the source of its draws, and its bounds."""

    seed: int
    sequence: int
    depth: int
    max_reads: int
    first_new: int  # arrival arrival_numbers from here on are new in this batch


@njit(cache=True, nogil=True)
def preview_row(
    state: KernelState, rows: NDArray[np.int64], weights: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """The row a vertex with these neighbors would be admitted with; `out` is left alone where none is placed."""
    total = np.zeros(out.size, state.coefficients.columns.dtype)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(rows.size):
        if state.placed[rows[i]]:
            for j in range(total.size):
                total[j] += weights[i] * as_float(state.vectors[rows[i], j])
            sum_a += weights[i]
            sum_aa += np.float64(weights[i]) * weights[i]
    if sum_a > 0:
        local_step(state.coefficients, total, sum_a, sum_aa, out)


@njit(cache=True, nogil=True)
def compute_refresh(state: KernelState, rows: NDArray[np.int64], limit: int, key: int, out: NDArray[np.float32]) -> int:
    """Write what `rows` would be after one local step from the values as they are now to `out`; nothing is stored.

    Returns how many of them had to be shortened, as all kernels here do that make rows.
    """
    total = np.empty(state.vectors.shape[1], state.coefficients.columns.dtype)
    shortened = 0
    for i in range(rows.size):
        prefetch_rows(state, rows, i, False)
        sum_a, sum_aa = gather(state, rows[i], limit, key, total)
        shortened += local_step(state.coefficients, total, sum_a, sum_aa, out[i])
    return shortened


@njit(cache=True, nogil=True)
def write_rows(state: KernelState, rows: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Write refreshed values to their rows, which are placed from then on."""
    for i in range(rows.size):
        if i + 4 < rows.size:
            prefetch(state.vectors, rows[i + 4], 0)
            prefetch(state.placed, rows[i + 4], 0)
        target, value = state.vectors[rows[i]], values[i]
        for j in range(target.size):
            target[j] = value[j]
        state.placed[rows[i]] = 1


@njit(cache=True, nogil=True)
def admit(state: KernelState, rows: NDArray[np.int64]) -> int:
    """Place new vertices one after the other, each from its placed neighbors that arrived before it."""
    total = np.empty(state.vectors.shape[1], state.coefficients.columns.dtype)
    shortened = 0
    for i in range(rows.size):
        prefetch_rows(state, rows, i, True)
        row = rows[i]
        sum_a, sum_aa = gather_placed(state, row, state.arrival[row], total)
        if sum_a > 0:
            shortened += local_step(state.coefficients, total, sum_a, sum_aa, state.vectors[row])
            state.placed[row] = 1
    return shortened


@njit(cache=True, nogil=True)
def admission_waves(state: KernelState, rows: NDArray[np.int64], first_new: int) -> NDArray[np.int64]:
    """The wave in which each new vertex can be admitted: one after the last of the new neighbors it reads."""
    wave = np.zeros(rows.size, np.int64)
    arrival_numbers = state.arrival[rows]
    for i in range(rows.size):
        begin = state.links.begin[rows[i]]
        for slot in range(begin, begin + state.links.degree[rows[i]]):
            number = state.arrival[state.links.neighbor[slot]]
            if first_new <= number < arrival_numbers[i]:
                wave[i] = max(wave[i], wave[np.searchsorted(arrival_numbers[:i], number)] + 1)
    return wave


@njit(cache=True, nogil=True)
def find_placement_candidates(state: KernelState, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of `rows`, hardly any, that have no vector yet or no edge any more."""
    found = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        found[kept] = row
        kept += (state.placed[row] == 0) | (state.links.degree[row] == 0)  # no branch: lines of many rows are awaited
    return found[:kept]


@njit(cache=True, nogil=True)
def find_placeable(
    state: KernelState, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> NDArray[np.int64]:
    """The unplaced vertices among `rows` that have a placed neighbor, each once."""
    found = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        if state.placed[row] or seen[row] == stamp:
            continue
        begin = state.links.begin[row]
        for slot in range(begin, begin + state.links.degree[row]):
            if state.placed[state.links.neighbor[slot]]:
                seen[row] = stamp
                found[kept] = row
                kept += 1
                break
    return found[:kept]


@njit(cache=True, nogil=True)
def find_unplaced_neighbors(
    state: KernelState, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> NDArray[np.int64]:
    """The unplaced neighbors of `rows`, each once."""
    room = 0
    for row in rows:
        room += state.links.degree[row]
    found = np.empty(room, np.int64)
    kept = 0
    for row in rows:
        begin = state.links.begin[row]
        for slot in range(begin, begin + state.links.degree[row]):
            other = state.links.neighbor[slot]
            if not state.placed[other] and seen[other] != stamp:
                seen[other] = stamp
                found[kept] = other
                kept += 1
    return found[:kept]


@njit(cache=True, nogil=True)
def place_frontier(state: KernelState, ring: NDArray[np.int64]) -> int:
    """Place vertices together from the values before, so that their order does not matter."""
    total = np.empty(state.vectors.shape[1], state.coefficients.columns.dtype)
    values = np.empty((ring.size, total.size), state.vectors.dtype)
    shortened = 0
    for i in range(ring.size):
        sum_a, sum_aa = gather_placed(state, ring[i], UNLIMITED, total)
        shortened += local_step(state.coefficients, total, sum_a, sum_aa, values[i])
    write_rows(state, ring, values)
    return shortened


@njit(cache=True, nogil=True)
def place_reachable(
    state: KernelState, arrived: NDArray[np.int64], touched: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> tuple[NDArray[np.int64], int]:
    """Place every vertex that now has a placed neighbor, ring by ring; returns all newcomers, those admitted included.

    The first ring is among the `touched`, for edges have brought it there. Also returns how many were shortened.
    """
    newcomers, shortened = arrived[state.placed[arrived] == 1], 0
    ring = find_placeable(state, touched, seen, stamp)
    while ring.size:
        shortened += place_frontier(state, ring)
        newcomers = np.concatenate((newcomers, ring))
        ring = find_unplaced_neighbors(state, ring, seen, stamp)
    return newcomers, shortened


@njit(cache=True, nogil=True)
def sample_changed_endpoints(
    state: KernelState,
    pairs: NDArray[np.int64],
    arrival_numbers: NDArray[np.int64],
    changed_share: NDArray[np.float64],
    context: BatchContext,
) -> NDArray[np.int64]:
    """Round 0 among known vertices: the ends of changed edges, each with the share of its strength that changed."""
    key = derive_key(context.seed, context.sequence, 0)
    found = np.empty(2 * len(pairs), np.int64)
    kept = 0
    for i in range(len(pairs)):
        if max(arrival_numbers[i, 0], arrival_numbers[i, 1]) >= context.first_new:
            continue
        for end in range(2):
            row, own = pairs[i, end], arrival_numbers[i, end]
            if state.arrival[row] != own or not state.placed[row]:
                continue
            if draw_uniform(key, own, arrival_numbers[i, 1 - end]) < changed_share[i, end]:
                found[kept] = row
                kept += 1
    return found[:kept]


@njit(cache=True, nogil=True)
def count_events(arrived: NDArray[np.int64], arrival_numbers: NDArray[np.int64], first_new: int) -> int:
    """How many arrivals and changes between known vertices a batch holds: what it may read goes by that."""
    events = arrived.size
    for i in range(len(arrival_numbers)):
        if max(arrival_numbers[i, 0], arrival_numbers[i, 1]) < first_new:
            events += 1
    return max(events, 1)


@njit(cache=True, nogil=True)
def count_neighbor_reads(links: Links, rows: NDArray[np.int64], limit: int) -> int:
    """How many neighbors are looked at when each row looks at `limit` at the most."""
    room = 0
    for row in rows:
        room += int(min(links.degree[row], limit))
    return room


@njit(cache=True, nogil=True)
def unplace_isolated(state: KernelState, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Unplace the vertices that have lost their last edge; returns them."""
    lost = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        if state.placed[row] and state.links.degree[row] == 0:
            state.placed[row] = 0
            state.vectors[row] = 0
            lost[kept] = row
            kept += 1
    return lost[:kept]


@njit(cache=True, nogil=True)
def find_second_refresh_rows(
    state: KernelState, newcomers: NDArray[np.int64], seen: NDArray[np.int64], stamp: int, first_new: int
) -> NDArray[np.int64]:
    """The newcomers that would be refreshed to something else than what they were admitted with.

    Not so where all neighbors were there before the batch and nothing has moved any of them since.
    """
    found = np.empty(newcomers.size, np.int64)
    kept = 0
    for i in range(newcomers.size):
        prefetch_neighbors(state.links, newcomers, i)
        row = newcomers[i]
        begin = state.links.begin[row]
        found[kept] = row
        again = False
        for slot in range(
            begin, begin + state.links.degree[row]
        ):  # to the end, without a branch: it is not foreseeable
            other = state.links.neighbor[slot]
            again |= (seen[other] == stamp) | (state.arrival[other] >= first_new) | (state.placed[other] == 0)
        kept += again
    return found[:kept]


@njit(cache=True, nogil=True)
def refresh(state: KernelState, rows: NDArray[np.int64], limit: int, key: int) -> int:
    values = np.empty((rows.size, state.vectors.shape[1]), state.vectors.dtype)
    shortened = compute_refresh(state, rows, limit, uint64(key), values)
    write_rows(state, rows, values)
    return shortened


@njit(cache=True, nogil=True)
def apply_batch(
    state: KernelState,
    arrived: NDArray[np.int64],
    pairs: NDArray[np.int64],
    arrival_numbers: NDArray[np.int64],
    changed_share: NDArray[np.float64],
    seen: NDArray[np.int64],
    context: BatchContext,
) -> tuple[NDArray[np.int64], int]:
    """A whole batch on one thread; returns the rows whose vectors may have moved, each once, and how many it shortened.

    `seen` holds two stamps per batch, the odd one for placing and the even one for influence. A newcomer is counted as
    shortened when it is placed, not when it is refreshed once more.
    """
    stamp = 2 * context.sequence
    shortened = admit(state, arrived)
    touched = find_placement_candidates(state, pairs.reshape(-1))
    newcomers, more = place_reachable(state, arrived, touched, seen, stamp - 1)
    shortened += more
    lost = unplace_isolated(state, touched)
    front = sample_changed_endpoints(state, pairs, arrival_numbers, changed_share, context)
    mark_seen(newcomers.copy(), seen, stamp)
    front = front[: mark_seen(front, seen, stamp)]
    left = context.max_reads * count_events(arrived, arrival_numbers, context.first_new)
    moved = front[:0]
    sources = newcomers
    depth = 0
    while True:
        limit = left // (2 * max(1, front.size))
        if limit == 0:
            break
        if front.size:
            shortened += refresh(state, front, limit, derive_key(context.seed, context.sequence, depth + RESAMPLE))
            left -= count_neighbor_reads(state.links, front, limit)
            moved = np.concatenate((moved, front))
        if depth == context.depth:
            break
        depth += 1
        key = derive_key(context.seed, context.sequence, depth)
        limit = max(1, left // (2 * max(1, front.size)))
        own = count_neighbor_reads(state.links, sources, UNLIMITED)
        reached = np.empty(own + count_neighbor_reads(state.links, front, limit), np.int64)
        count = spread_round(state.links, state.arrival, sources, seen, stamp, uint64(key), UNLIMITED, reached)
        count += spread_round(state.links, state.arrival, front, seen, stamp, uint64(key), limit, reached[count:])
        front = reached[: mark_seen(reached[:count], seen, stamp)]
        left -= reached.size - own
        sources = newcomers[:0]
        if not front.size:
            break
    refresh(state, find_second_refresh_rows(state, newcomers, seen, stamp, context.first_new), UNLIMITED, uint64(0))
    return np.concatenate((newcomers, moved, lost, arrived[state.placed[arrived] == 0])), shortened
