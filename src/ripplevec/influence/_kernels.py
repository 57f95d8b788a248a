"""Kernels of the weighted independent cascade. Draws are counter-based: a hash of who asks whom, and when."""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.util.numba_intrinsics import prefetch

PREFETCHED_NEIGHBORS = 16  # neighbors of a row to come whose lines are asked for; in a longer list they overlap by themselves


@njit(cache=True, nogil=True, forceinline=True)
def mix(word: int) -> int:
    """A bijection of 64-bit words in which every input bit reaches every output bit (the splitmix64 finaliser)."""
    word = uint64(word) + uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@njit(cache=True, nogil=True)
def derive_key(seed: int, sequence: int, turn: int) -> int:
    """The key that all draws of one round of one batch share."""
    return mix(mix(mix(uint64(seed)) ^ uint64(sequence)) ^ uint64(turn))


def draw_key(seed: int, sequence: int, turn: int) -> np.uint64:
    """`derive_key` in the one type that kernels are compiled for: a Python int would be signed or not, as it happens."""
    return np.uint64(derive_key(seed, sequence, turn))


@njit(cache=True, nogil=True, forceinline=True)
def random_word(key: int, u: int, v: int) -> int:
    """64 random bits for the pair (u, v) under a key; u and v are arrival numbers."""
    return mix(mix(key ^ uint64(u)) ^ uint64(v))


@njit(cache=True, nogil=True, forceinline=True)
def draw_uniform(key: int, u: int, v: int) -> float:
    """A number in [0, 1) for the pair (u, v) under a key."""
    return (random_word(key, u, v) >> uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True, forceinline=True)
def sample_slot(key: int, u: int, i: int, count: int) -> int:
    """The i-th of a sample (with repetition) of the slots 0 … count−1 of vertex u."""
    return int64(random_word(key, u, i) % uint64(count))


@njit(cache=True, nogil=True, forceinline=True)
def prefetch_neighbors(links: Links, rows: NDArray[np.int64], i: int) -> None:
    """Ask memory for what will be asked of the neighbors of the rows after the i-th: first who they are."""
    if i + 8 < rows.size:
        prefetch(links.neighbor, links.begin[rows[i + 8]], 0)
    if i + 4 < rows.size:
        begin = links.begin[rows[i + 4]]
        for slot in range(begin, begin + min(links.degree[rows[i + 4]], PREFETCHED_NEIGHBORS)):
            prefetch(links.begin, links.neighbor[slot], 0)


@njit(cache=True, nogil=True)
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
    """One round: each source gives each neighbor not seen one chance; returns how many rows were written to `reached`.

    Reads `seen`, never writes it, so that blocks of sources can run side by side; a row reached from two sources
    stands in `reached` twice. A source with more than `limit` neighbors tries a sample of `limit` of them.
    """
    found = 0
    for place in range(sources.size):
        prefetch_neighbors(links, sources, place)
        source = sources[place]
        begin, count = links.begin[source], links.degree[source]
        own = arrival[source]
        for i in range(min(count, limit)):
            slot = begin + (i if count <= limit else sample_slot(key, own, i, count))
            other = links.neighbor[slot]
            if seen[other] == stamp:
                continue
            if draw_uniform(key, arrival[other], own) * links.in_strength[other] < links.outgoing[slot]:
                reached[found] = other
                found += 1
    return found


@njit(cache=True, nogil=True)
def mark_seen(reached: NDArray[np.int64], seen: NDArray[np.int64], stamp: int) -> int:
    """Mark rows as seen and keep the first mention of each, at the front of `reached`; returns how many there are."""
    kept = 0
    for row in reached:
        if seen[row] != stamp:
            seen[row] = stamp
            reached[kept] = row
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def run_cascade(
    links: Links,
    arrival: NDArray[np.int64],
    source: int,
    depth: int,
    seen: NDArray[np.int64],
    stamp: int,
    key: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows a vertex influences within `depth` rounds (negative: until nobody new is), and where each round ends.

    The draw for (u, v) does not depend on the round: v asks u once at most, in the round after v was reached.
    """
    influenced = np.empty(max(links.degree[source], 1), np.int64)
    ends = [np.int64(0)]
    seen[source] = stamp
    front = np.full(1, source, np.int64)
    total, turn = 0, 0
    while front.size and turn != depth:
        room = 0
        for row in front:
            room += links.degree[row]
        reached = np.empty(room, np.int64)
        count = spread_round(links, arrival, front, seen, stamp, key, np.int64(1) << 62, reached)
        count = mark_seen(reached[:count], seen, stamp)
        front = reached[:count]
        if total + count > influenced.size:
            longer = np.empty(2 * (total + count), np.int64)
            longer[:total] = influenced[:total]
            influenced = longer
        influenced[total : total + count] = front
        total += count
        turn += 1
        ends.append(np.int64(total))
    return influenced[:total], np.array(ends)
