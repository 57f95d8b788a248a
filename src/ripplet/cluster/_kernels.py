"""Kernels of a shard: who has a name, what its rows read of other shards, and whom they reach there.

Of a neighbour on another shard a slot holds −1 − its code, and a code is (its row there) · shards + (its shard).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplet.graph._block_kernels import Links
from ripplet.graph._id_kernels import INTEGER, Names, home_of, tag_of
from ripplet.graph._kernels import drop_neighbour, find_slot
from ripplet.influence._kernels import mix, sampled_slot
from ripplet.intrinsics import prefetch

_ALL_BITS = (1 << 62) - 1
_HIGH = 32  # the table of names goes by the low bits: names of one shard must not have these in common


@njit(cache=True, nogil=True)
def owners_of(names: Names, shards: int, owners: NDArray[np.int64]) -> None:
    """The shard of every name: a hash, the same on every machine."""
    keys, ends, data = names
    for i in range(owners.size):
        tag = tag_of(keys[i], ends[i] if ends.size else INTEGER, data)
        owners[i] = (home_of(tag, _ALL_BITS) >> _HIGH) % shards


@njit(cache=True, nogil=True)
def slots_of(
    links: Links,
    arrival: NDArray[np.int64],
    rows: NDArray[np.int64],
    limit: int,
    key: int,
    elsewhere: bool,
    slots: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> int:
    """The slots that rows look at, `limit` at the most each, and whose slots these are; how many.

    All of them, as a round of influence goes; or, of what a refresh reads, those whose neighbours are elsewhere.
    """
    found = 0
    for row in rows:
        begin, count = links.begin[row], links.count[row]
        for i in range(min(count, limit)):
            slot = begin + (i if count <= limit else sampled_slot(key, arrival[row], i, count))
            if not elsewhere or links.neighbour[slot] < 0:
                slots[found], owners[found] = slot, row
                found += 1
    return found


@njit(cache=True, nogil=True)
def numbered(codes: NDArray[np.int64], place: NDArray[np.int64], distinct: NDArray[np.int64]) -> int:
    """Number codes in the order of their first mention: `place` of each, and the `distinct` ones; how many."""
    size = 16
    while size < 2 * codes.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    known = 0
    for i in range(codes.size):
        at = np.int64(mix(np.uint64(codes[i])) & np.uint64(size - 1))
        while table[at] >= 0 and distinct[table[at]] != codes[i]:
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at] = known
            distinct[known] = codes[i]
            known += 1
        place[i] = table[at]
    return known


@njit(cache=True, nogil=True)
def pack(vectors: NDArray[np.float32], rows: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """Copy rows one behind the other."""
    for i in range(rows.size):
        if i + 8 < rows.size:
            prefetch(vectors, rows[i + 8], 0)
        source, target = vectors[rows[i]], out[i]
        for j in range(target.size):
            target[j] = source[j]


@njit(cache=True, nogil=True)
def has_ends(
    links: Links, rows: NDArray[np.int64], others: NDArray[np.int64], found: NDArray[np.bool_], directed: bool
) -> None:
    """Whether rows have these neighbours (by edges away from them when directed)."""
    for i in range(rows.size):
        at = find_slot(links, rows[i], others[i])
        found[i] = at >= 0 and (not directed or links.outgoing[at] > 0)


@njit(cache=True, nogil=True)
def drop_ends(links: Links, rows: NDArray[np.int64], other: int, chance: NDArray[np.float64], directed: bool) -> None:
    """Take a vertex that goes out of the lists of `rows`; `chance` becomes what each lost of its strength."""
    for i in range(rows.size):
        chance[i] = drop_neighbour(links, rows[i], other, directed)


@njit(cache=True, nogil=True)
def waves_of(earlier: NDArray[np.int64], later: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The wave of each of `count` newcomers: one after the last of those it has an edge to and who came before it.

    Edges come in the order of the later end, so that the wave of the earlier one is known.
    """
    wave = np.zeros(count, np.int64)
    for i in range(later.size):
        wave[later[i]] = max(wave[later[i]], wave[earlier[i]] + 1)
    return wave


@njit(cache=True, nogil=True)
def codes_elsewhere(links: Links, rows: int, codes: NDArray[np.int64]) -> int:
    """The codes of the neighbours on other shards that the first rows have, slot by slot; how many."""
    found = 0
    for row in range(rows):
        for slot in range(links.begin[row], links.begin[row] + links.count[row]):
            if links.neighbour[slot] < 0:
                codes[found] = -1 - np.int64(links.neighbour[slot])
                found += 1
    return found


@njit(cache=True, nogil=True)
def point_to(links: Links, rows: int, place: NDArray[np.int64]) -> None:
    """Have the slots that `codes_elsewhere` found, in the same order, point to places behind the first rows."""
    found = 0
    for row in range(rows):
        for slot in range(links.begin[row], links.begin[row] + links.count[row]):
            if links.neighbour[slot] < 0:
                links.neighbour[slot] = rows + place[found]
                found += 1


@njit(cache=True, nogil=True)
def point_back(links: Links, rows: int, codes: NDArray[np.int64]) -> None:
    """Have the slots that point behind the first rows hold again what they held: these codes are there."""
    for row in range(rows):
        for slot in range(links.begin[row], links.begin[row] + links.count[row]):
            if links.neighbour[slot] >= rows:
                links.neighbour[slot] = -1 - codes[links.neighbour[slot] - rows]
