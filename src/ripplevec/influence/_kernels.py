"""Kernels of the weighted independent cascade, with counter-based random numbers.

A random number is a hash of a key and of the two vertices concerned, so it depends neither on the order of the draws
nor on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.util.numba_intrinsics import allocation_free, kernel, prefetch

PREFETCHED_NEIGHBORS = 16  # per upcoming row; the loads of a longer list overlap without prefetching


@allocation_free(forceinline=True)
def mix(word: int) -> int:
    """Mix a 64-bit word bijectively so that every input bit affects every output bit (splitmix64 finalizer)."""
    word = uint64(word) + uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@allocation_free
def derive_key(seed: int, sequence: int, draw_round: int) -> int:
    """Derive the key that all draws of one round of one batch share."""
    return mix(mix(mix(uint64(seed)) ^ uint64(sequence)) ^ uint64(draw_round))


def draw_key(seed: int, sequence: int, draw_round: int) -> np.uint64:
    """Return `derive_key` as np.uint64, the type that kernels are compiled for; a Python int could be typed int64."""
    return np.uint64(derive_key(seed, sequence, draw_round))


@allocation_free(forceinline=True)
def random_word(key: int, u: int, v: int) -> int:
    """Return 64 random bits for the pair (u, v) under a key; u and v are arrival numbers."""
    return mix(mix(key ^ uint64(u)) ^ uint64(v))


@allocation_free(forceinline=True)
def draw_uniform(key: int, u: int, v: int) -> float:
    """Return a uniform number in [0, 1) for the pair (u, v) under a key."""
    return (random_word(key, u, v) >> uint64(11)) * (1.0 / 9007199254740992.0)


@allocation_free(forceinline=True)
def sample_slot(key: int, u: int, i: int, count: int) -> int:
    """Return the i-th element of a sample, with replacement, of the slots 0 … count−1 of vertex u."""
    return int64(random_word(key, u, i) % uint64(count))


@allocation_free(forceinline=True)
def prefetch_neighbors(links: Links, rows: NDArray[np.int64], i: int) -> None:
    """Prefetch the neighbor lists of the rows after the i-th, and then the vertex records of these neighbors."""
    if i + 8 < rows.size:
        prefetch(links.neighbor, links.begin[rows[i + 8]], 0)
    if i + 4 < rows.size:
        begin = links.begin[rows[i + 4]]
        for slot in range(begin, begin + min(links.degree[rows[i + 4]], PREFETCHED_NEIGHBORS)):
            prefetch(links.begin, links.neighbor[slot], 0)


@allocation_free
def spread_round(
    links: Links,
    arrival: NDArray[np.int64],
    sources: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
    key: int,
    limit: int,
    reached: NDArray[np.int64],
) -> int:
    """Run one round: each source gets one chance to influence each unseen neighbor; return the length of `reached`.

    `seen` is read but not written, so that blocks of sources can run in parallel; a row influenced by two sources
    appears in `reached` twice. A source with more than `limit` neighbors tries a sample of `limit` of them.
    """
    found = 0
    for position in range(sources.size):
        prefetch_neighbors(links, sources, position)
        source = sources[position]
        begin, degree = links.begin[source], links.degree[source]
        source_number = arrival[source]
        for i in range(min(degree, limit)):
            slot = begin + (i if degree <= limit else sample_slot(key, source_number, i, degree))
            neighbor = links.neighbor[slot]
            if seen[neighbor] == stamp:
                continue
            if draw_uniform(key, arrival[neighbor], source_number) * links.in_strength[neighbor] < links.outgoing[slot]:
                reached[found] = neighbor
                found += 1
    return found


@allocation_free
def draw_edges(
    key: int,
    targets: NDArray[np.int64],
    sources: NDArray[np.int64],
    in_strength: NDArray[np.float64],
    outgoing: NDArray[np.float32],
    drawn: NDArray[np.bool_],
) -> None:
    """Write to `drawn` along which edges influence spreads, as in `spread_round`; vertices are arrival numbers."""
    for i in range(drawn.size):
        drawn[i] = draw_uniform(key, targets[i], sources[i]) * in_strength[i] < outgoing[i]


@allocation_free
def mark_seen(reached: NDArray[np.int64], seen: NDArray[np.int64], stamp: int) -> int:
    """Mark rows as seen and move the first occurrence of each new row to the front; return the number of new rows."""
    count = 0
    for row in reached:
        if seen[row] != stamp:
            seen[row] = stamp
            reached[count] = row
            count += 1
    return count


@kernel
def run_cascade(
    links: Links,
    arrival: NDArray[np.int64],
    source: int,
    depth: int,
    seen: NDArray[np.int64],
    stamp: int,
    key: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows influenced by a vertex within `depth` rounds (negative: unlimited), and the bounds of the rounds.

    The draw for (u, v) does not depend on the round: v tries u at most once, in the round after v was reached.
    """
    influenced = np.empty(max(links.degree[source], 1), np.int64)
    bounds = [np.int64(0)]
    seen[source] = stamp
    frontier = np.full(1, source, np.int64)
    total, rounds = 0, 0
    while frontier.size and rounds != depth:
        max_reached = 0
        for row in frontier:
            max_reached += links.degree[row]
        reached = np.empty(max_reached, np.int64)
        count = spread_round(links, arrival, frontier, seen, stamp, key, np.int64(1) << 62, reached)
        count = mark_seen(reached[:count], seen, stamp)
        frontier = reached[:count]
        if total + count > influenced.size:
            longer = np.empty(2 * (total + count), np.int64)
            longer[:total] = influenced[:total]
            influenced = longer
        influenced[total : total + count] = frontier
        total += count
        rounds += 1
        bounds.append(np.int64(total))
    return influenced[:total], np.array(bounds)
