"""Kernels of a shard: who has a name, what its rows read of other shards, and whom they reach there.

Of a neighbor on another shard a slot holds −1 − its code, and a code is (its row there) · shards + (its shard).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.graph._id_kernels import INTEGER, Names, home_of, tag_of
from ripplevec.graph._kernels import drop_neighbor, find_slot
from ripplevec.influence._kernels import draw, mix, sampled_slot
from ripplevec.util.numba_intrinsics import prefetch

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

    All of them, as a round of influence goes; or, of what a refresh reads, those whose neighbors are elsewhere.
    """
    found = 0
    for row in rows:
        begin, count = links.begin[row], links.count[row]
        for i in range(min(count, limit)):
            slot = begin + (i if count <= limit else sampled_slot(key, arrival[row], i, count))
            if not elsewhere or links.neighbor[slot] < 0:
                slots[found], owners[found] = slot, row
                found += 1
    return found


@njit(cache=True, nogil=True, forceinline=True)
def _spot(table: NDArray[np.int64], distinct: NDArray[np.int64], code: int) -> int:
    """Where a code stands in a table, or would."""
    last = table.size - 1
    at: int = np.int64(mix(np.uint64(code)) & np.uint64(last))  # type: ignore[assignment]
    while table[at] >= 0 and distinct[table[at]] != code:
        at = (at + 1) & last
    return at


@njit(cache=True, nogil=True)
def numbered(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number codes in the order of their first mention: the number of each, the distinct ones, and a table.

    The table leads from a code to its number: see `places_of`.
    """
    size = 16
    while size < 2 * codes.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    place, distinct = np.empty(codes.size, np.int64), np.empty(codes.size, np.int64)
    known = 0
    for i in range(codes.size):
        at = _spot(table, distinct, codes[i])
        if table[at] < 0:
            table[at] = known
            distinct[known] = codes[i]
            known += 1
        place[i] = table[at]
    return place, distinct[:known], table


@njit(cache=True, nogil=True)
def places_of(
    codes: NDArray[np.int64], table: NDArray[np.int64], distinct: NDArray[np.int64], place: NDArray[np.int64]
) -> None:
    """The numbers that `numbered` gave to codes, −1 where it gave none."""
    for i in range(codes.size):
        place[i] = table[_spot(table, distinct, codes[i])]


@njit(cache=True, nogil=True)
def influenced(
    links: Links,
    placed: NDArray[np.uint8],
    seen: NDArray[np.int64],
    stamp: int,
    ends: NDArray[np.int64],
    numbers: NDArray[np.int64],
    key: int,
    reached: NDArray[np.int64],
) -> int:
    """The rows that newcomers influence in the first round, drawn where these rows are; how many, some more than once.

    `ends` are rows and the newcomers that came to them, `numbers` the arrival numbers of both. A newcomer with a
    neighbor that has a place has one itself.
    """
    found = 0
    for i in range(len(ends)):
        if i + 8 < len(ends):
            prefetch(links.begin, ends[i + 8, 0], 0)
        if i + 4 < len(ends):
            row = ends[i + 4, 0]
            prefetch(links.neighbor, links.begin[row] + links.count[row] - 1, 0)
        row = ends[i, 0]
        if seen[row] == stamp or not placed[row]:
            continue
        slot = find_slot(links, row, ends[i, 1])
        if slot >= 0 and draw(key, numbers[i, 0], numbers[i, 1]) * links.in_strength[row] < links.incoming[slot]:
            reached[found] = row
            found += 1
    return found


@njit(cache=True, nogil=True)
def unpack(
    part: NDArray[np.float32], place: NDArray[np.int64], cells: NDArray[np.float32], placed: NDArray[np.uint8]
) -> None:
    """Copy rows to their places, which are placed then; those without (−1) are passed over."""
    for i in range(place.size):
        if place[i] >= 0:
            source, target = part[i], cells[place[i]]
            for j in range(target.size):
                target[j] = source[j]
            placed[place[i]] = 1


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
    """Whether rows have these neighbors (by edges away from them when directed)."""
    for i in range(rows.size):
        at = find_slot(links, rows[i], others[i])
        found[i] = at >= 0 and (not directed or links.outgoing[at] > 0)


@njit(cache=True, nogil=True)
def drop_ends(links: Links, rows: NDArray[np.int64], other: int, chance: NDArray[np.float64], directed: bool) -> None:
    """Take a vertex that goes out of the lists of `rows`; `chance` becomes what each lost of its strength."""
    for i in range(rows.size):
        chance[i] = drop_neighbor(links, rows[i], other, directed)


@njit(cache=True, nogil=True)
def routed(
    codes: NDArray[np.int64], numbers: NDArray[np.int64], shards: int, end_of: NDArray[np.int64], out: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Both ends of all operations by shard, in order; where those of each shard begin, and where the last ones end.

    `end_of` becomes 2 · (the operation) + (which end), `out` the row, its neighbor, and the numbers of both.
    """
    begin = np.zeros(shards + 1, np.int64)
    for code in codes.ravel():
        begin[code % shards + 1] += 1
    begin = np.cumsum(begin)
    free = begin.copy()
    for i in range(len(codes)):
        for end in range(2):
            code, other = codes[i, end], codes[i, 1 - end]
            shard = code % shards
            at = free[shard]
            free[shard] += 1
            end_of[at] = 2 * i + end
            out[at, 0], out[at, 1] = code // shards, other // shards if other % shards == shard else -1 - other
            out[at, 2], out[at, 3] = numbers[i, end], numbers[i, 1 - end]
    return begin


@njit(cache=True, nogil=True)
def waves_of(
    codes: NDArray[np.int64], numbers: NDArray[np.int64], first_new: int, count: int, shards: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When each of `count` newcomers can be admitted: in which wave, and at which turn of its shard in that wave.

    After everybody who came before it and whom it may have an edge to: a wave later if that is on another shard, a turn
    later on its own. `codes` and `numbers` are those of both ends of edges.
    """
    begin = np.zeros(count + 2, np.int64)
    for i in range(len(codes)):
        if min(numbers[i, 0], numbers[i, 1]) >= first_new:
            begin[max(numbers[i, 0], numbers[i, 1]) - first_new + 2] += 1
    begin = np.cumsum(begin)
    earlier = np.empty(begin[-1], np.int64)  # by the later end: twice the earlier, and one where that is elsewhere
    for i in range(len(codes)):
        first = min(numbers[i, 0], numbers[i, 1]) - first_new
        if first >= 0:
            later = max(numbers[i, 0], numbers[i, 1]) - first_new
            earlier[begin[later + 1]] = 2 * first + (codes[i, 0] % shards != codes[i, 1] % shards)
            begin[later + 1] += 1
    wave, turn = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for later in range(count):
        for known in earlier[begin[later] : begin[later + 1]]:
            first, elsewhere = known >> 1, known & 1
            if first == later:
                continue
            after = (wave[first] + 1, 0) if elsewhere else (wave[first], turn[first] + 1)
            if after > (wave[later], turn[later]):
                wave[later], turn[later] = after
    return wave, turn


@njit(cache=True, nogil=True)
def codes_elsewhere(links: Links, rows: int, codes: NDArray[np.int64]) -> int:
    """The codes of the neighbors on other shards that the first rows have, slot by slot; how many."""
    found = 0
    for row in range(rows):
        for slot in range(links.begin[row], links.begin[row] + links.count[row]):
            if links.neighbor[slot] < 0:
                codes[found] = -1 - np.int64(links.neighbor[slot])
                found += 1
    return found


@njit(cache=True, nogil=True)
def point_to(links: Links, rows: int, place: NDArray[np.int64]) -> None:
    """Have the slots that `codes_elsewhere` found, in the same order, point to places behind the first rows."""
    found = 0
    for row in range(rows):
        for slot in range(links.begin[row], links.begin[row] + links.count[row]):
            if links.neighbor[slot] < 0:
                links.neighbor[slot] = rows + place[found]
                found += 1


@njit(cache=True, nogil=True)
def point_back(links: Links, rows: int, codes: NDArray[np.int64]) -> None:
    """Have the slots that point behind the first rows hold again what they held: these codes are there."""
    for row in range(rows):
        for slot in range(links.begin[row], links.begin[row] + links.count[row]):
            if links.neighbor[slot] >= rows:
                links.neighbor[slot] = -1 - codes[links.neighbor[slot] - rows]
