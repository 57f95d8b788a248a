"""Kernels of rule `ripple`: admit new vertices, place them, and refresh influenced vertices by one local step.

Vocabulary of a batch step:

- gather: sum over the neighbors of a vertex (`_gather_kernels.py`);
- refresh: replace a row by one local step of the view operators from its neighbors;
- admit: give a new vertex a row from the neighbors that arrived before it;
- place: give an unplaced vertex (one with a zero row) a row, once it has a placed neighbor;
- influence: select vertices to refresh by the independent cascade (`influence/_kernels.py`);
- newcomer: a vertex that is placed for the first time in this batch.

Functions that take a list of rows may be called with any part of it, on one thread or several: the arithmetic of a row
does not depend on how the list is divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.influence._kernels import derive_key, draw_uniform, mark_seen, prefetch_neighbors, spread_round
from ripplevec.rules._gather_kernels import KernelState, gather, gather_placed, local_step, prefetch_rows
from ripplevec.util.numba_intrinsics import allocation_free, as_float, kernel, prefetch

UNLIMITED = 1 << 62
_NO_LIMIT = np.int64(UNLIMITED)  # a number with a type: for literals, kernels are compiled separately
RESAMPLE = 1 << 20  # added to the round, so that sampling neighbors to read uses other draws than testing them


class BatchContext(NamedTuple):
    """Parameters of one batch: the key of its random draws, and its limits."""

    seed: int
    sequence: int
    depth: int  # rounds of influence; −1: unlimited
    max_reads: int  # rows read and neighbors tested per arrival, beyond its own edges
    first_new: int  # vertices with this arrival number or a higher one are new in this batch


@kernel
def preview_row(
    state: KernelState, rows: NDArray[np.int64], weights: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Write the row that a vertex with these neighbors would be admitted with to `out`; unchanged if none is placed."""
    total = np.zeros(out.size, state.coefficients.per_column.dtype)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(rows.size):
        if state.placed[rows[i]]:
            for j in range(total.size):
                total[j] += weights[i] * as_float(state.vectors[rows[i], j])
            sum_a += weights[i]
            sum_aa += np.float64(weights[i]) * weights[i]
    if sum_a > 0:
        local_step(state.coefficients, total, sum_a, sum_aa, out)


@kernel
def compute_refresh(state: KernelState, rows: NDArray[np.int64], limit: int, key: int, out: NDArray[np.float32]) -> int:
    """Write the refreshed values of `rows` to `out`, computed from current vectors, which stay unchanged.

    Returns the number of shortened rows, as do all kernels here that compute rows.
    """
    total = np.empty(state.vectors.shape[1], state.coefficients.per_column.dtype)
    shortened = 0
    for i in range(rows.size):
        prefetch_rows(state, rows, i, np.bool_(False))
        sum_a, sum_aa = gather(state, rows[i], limit, key, total)
        shortened += local_step(state.coefficients, total, sum_a, sum_aa, out[i])
    return shortened


@allocation_free
def write_rows(state: KernelState, rows: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Write refreshed values to their rows and mark them as placed."""
    for i in range(rows.size):
        if i + 4 < rows.size:
            prefetch(state.vectors, rows[i + 4], 0)
            prefetch(state.placed, rows[i + 4], 0)
        target, value = state.vectors[rows[i]], values[i]
        for j in range(target.size):
            target[j] = value[j]
        state.placed[rows[i]] = 1


@kernel
def admit(state: KernelState, rows: NDArray[np.int64]) -> int:
    """Admit new vertices in order, each from its placed neighbors that arrived before it; return the shortened rows."""
    total = np.empty(state.vectors.shape[1], state.coefficients.per_column.dtype)
    shortened = 0
    for i in range(rows.size):
        prefetch_rows(state, rows, i, np.bool_(True))
        row = rows[i]
        sum_a, sum_aa = gather_placed(state, row, state.arrival[row], total)
        if sum_a > 0:
            shortened += local_step(state.coefficients, total, sum_a, sum_aa, state.vectors[row])
            state.placed[row] = 1
    return shortened


@kernel
def admission_waves(state: KernelState, rows: NDArray[np.int64], first_new: int) -> NDArray[np.int64]:
    """Return the wave in which each new vertex can be admitted: one after the last new neighbor that it reads."""
    wave = np.zeros(rows.size, np.int64)
    arrival_numbers = state.arrival[rows]
    for i in range(rows.size):
        begin = state.links.begin[rows[i]]
        for slot in range(begin, begin + state.links.degree[rows[i]]):
            number = state.arrival[state.links.neighbor[slot]]
            if first_new <= number < arrival_numbers[i]:
                wave[i] = max(wave[i], wave[np.searchsorted(arrival_numbers[:i], number)] + 1)
    return wave


@kernel
def find_placement_candidates(state: KernelState, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of `rows` (few) that are unplaced or have no edge left, so that their placement may change."""
    found = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        found[kept] = row
        kept += (state.placed[row] == 0) | (state.links.degree[row] == 0)  # branch-free: cache misses overlap
    return found[:kept]


@kernel
def find_placeable(
    state: KernelState, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> NDArray[np.int64]:
    """Return the unplaced vertices among `rows` that have a placed neighbor, each once."""
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


@kernel
def find_unplaced_neighbors(
    state: KernelState, rows: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> NDArray[np.int64]:
    """Return the unplaced neighbors of `rows`, each once."""
    capacity = 0
    for row in rows:
        capacity += state.links.degree[row]
    found = np.empty(capacity, np.int64)
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


@kernel
def place_frontier(state: KernelState, frontier: NDArray[np.int64]) -> int:
    """Place vertices together, all from the values before, so that their order does not matter."""
    total = np.empty(state.vectors.shape[1], state.coefficients.per_column.dtype)
    values = np.empty((frontier.size, total.size), state.vectors.dtype)
    shortened = 0
    for i in range(frontier.size):
        sum_a, sum_aa = gather_placed(state, frontier[i], _NO_LIMIT, total)
        shortened += local_step(state.coefficients, total, sum_a, sum_aa, values[i])
    write_rows(state, frontier, values)
    return shortened


@kernel
def place_reachable(
    state: KernelState, arrived: NDArray[np.int64], touched: NDArray[np.int64], seen: NDArray[np.int64], stamp: int
) -> tuple[NDArray[np.int64], int]:
    """Place every unplaced vertex that can be reached from a placed one, in breadth-first order.

    The first frontier is among `touched`, the endpoints of changed edges. Returns all newcomers, including admitted
    ones, and the number of shortened rows.
    """
    newcomers, shortened = arrived[state.placed[arrived] == 1], 0
    frontier = find_placeable(state, touched, seen, stamp)
    while frontier.size:
        shortened += place_frontier(state, frontier)
        newcomers = np.concatenate((newcomers, frontier))
        frontier = find_unplaced_neighbors(state, frontier, seen, stamp)
    return newcomers, shortened


@kernel
def sample_changed_endpoints(
    state: KernelState,
    pairs: NDArray[np.int64],
    arrival_numbers: NDArray[np.int64],
    changed_share: NDArray[np.float64],
    context: BatchContext,
) -> NDArray[np.int64]:
    """Sample endpoints of changed edges between existing vertices, each with probability `changed_share` (round 0)."""
    key = derive_key(context.seed, context.sequence, np.int64(0))
    found = np.empty(2 * len(pairs), np.int64)
    kept = 0
    for i in range(len(pairs)):
        if max(arrival_numbers[i, 0], arrival_numbers[i, 1]) >= context.first_new:
            continue
        for end in range(2):
            row, number = pairs[i, end], arrival_numbers[i, end]
            if state.arrival[row] != number or not state.placed[row]:
                continue
            if draw_uniform(key, number, arrival_numbers[i, 1 - end]) < changed_share[i, end]:
                found[kept] = row
                kept += 1
    return found[:kept]


@allocation_free
def count_events(arrived: NDArray[np.int64], arrival_numbers: NDArray[np.int64], first_new: int) -> int:
    """Count arrivals and changed edges between existing vertices; the read limit of a batch is proportional to it."""
    events = arrived.size
    for i in range(len(arrival_numbers)):
        if max(arrival_numbers[i, 0], arrival_numbers[i, 1]) < first_new:
            events += 1
    return max(events, 1)


@allocation_free
def count_neighbor_reads(links: Links, rows: NDArray[np.int64], limit: int) -> int:
    """Count the neighbors that are read if each row reads at most `limit` of them."""
    reads = 0
    for row in rows:
        reads += int(min(links.degree[row], limit))
    return reads


@kernel
def unplace_isolated(state: KernelState, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Unplace vertices that have lost their last edge, and return them."""
    lost = np.empty(rows.size, np.int64)
    kept = 0
    for row in rows:
        if state.placed[row] and state.links.degree[row] == 0:
            state.placed[row] = 0
            state.vectors[row] = 0
            lost[kept] = row
            kept += 1
    return lost[:kept]


@kernel
def find_second_refresh_rows(
    state: KernelState, newcomers: NDArray[np.int64], seen: NDArray[np.int64], stamp: int, first_new: int
) -> NDArray[np.int64]:
    """Return the newcomers whose row a second refresh would change.

    It changes nothing if all neighbors existed before the batch and none of them has moved in it.
    """
    found = np.empty(newcomers.size, np.int64)
    kept = 0
    for i in range(newcomers.size):
        prefetch_neighbors(state.links, newcomers, i)
        row = newcomers[i]
        begin = state.links.begin[row]
        found[kept] = row
        again = False
        for slot in range(begin, begin + state.links.degree[row]):  # no early exit: the branch is unpredictable
            other = state.links.neighbor[slot]
            again |= (seen[other] == stamp) | (state.arrival[other] >= first_new) | (state.placed[other] == 0)
        kept += again
    return found[:kept]


@kernel
def refresh(state: KernelState, rows: NDArray[np.int64], limit: int, key: int) -> int:
    """Refresh rows together, all from the values before; return the number of shortened rows."""
    values = np.empty((rows.size, state.vectors.shape[1]), state.vectors.dtype)
    shortened = compute_refresh(state, rows, limit, uint64(key), values)
    write_rows(state, rows, values)
    return shortened


@kernel
def apply_batch(
    state: KernelState,
    arrived: NDArray[np.int64],
    pairs: NDArray[np.int64],
    arrival_numbers: NDArray[np.int64],
    changed_share: NDArray[np.float64],
    seen: NDArray[np.int64],
    context: BatchContext,
) -> tuple[NDArray[np.int64], int]:
    """Apply a whole batch on one thread, after the graph has changed.

    Returns the rows whose vectors may have moved, each once, and the number of shortened rows. `seen` holds two stamps
    per batch: the odd one for placing, the even one for influence. A newcomer counts as shortened when it is placed,
    not again in its second refresh.
    """
    stamp = 2 * context.sequence
    shortened = admit(state, arrived)
    touched = find_placement_candidates(state, pairs.reshape(-1))
    newcomers, shortened_by_placing = place_reachable(state, arrived, touched, seen, stamp - 1)
    shortened += shortened_by_placing
    lost = unplace_isolated(state, touched)
    frontier = sample_changed_endpoints(state, pairs, arrival_numbers, changed_share, context)
    mark_seen(newcomers.copy(), seen, stamp)
    frontier = frontier[: mark_seen(frontier, seen, stamp)]
    reads_left = context.max_reads * count_events(arrived, arrival_numbers, context.first_new)
    moved = frontier[:0]
    sources = newcomers
    depth = 0
    while True:
        limit = reads_left // (2 * max(1, frontier.size))
        if limit == 0:
            break
        if frontier.size:
            shortened += refresh(state, frontier, limit, derive_key(context.seed, context.sequence, depth + RESAMPLE))
            reads_left -= count_neighbor_reads(state.links, frontier, limit)
            moved = np.concatenate((moved, frontier))
        if depth == context.depth:
            break
        depth += 1
        key = derive_key(context.seed, context.sequence, depth)
        limit = max(1, reads_left // (2 * max(1, frontier.size)))
        newcomer_reads = count_neighbor_reads(state.links, sources, _NO_LIMIT)
        reached = np.empty(newcomer_reads + count_neighbor_reads(state.links, frontier, limit), np.int64)
        count = spread_round(state.links, state.arrival, sources, seen, stamp, uint64(key), _NO_LIMIT, reached)
        count += spread_round(state.links, state.arrival, frontier, seen, stamp, uint64(key), limit, reached[count:])
        frontier = reached[: mark_seen(reached[:count], seen, stamp)]
        reads_left -= reached.size - newcomer_reads
        sources = newcomers[:0]
        if not frontier.size:
            break
    refresh(state, find_second_refresh_rows(state, newcomers, seen, stamp, context.first_new), _NO_LIMIT, uint64(0))
    return np.concatenate((newcomers, moved, lost, arrived[state.placed[arrived] == 0])), shortened
