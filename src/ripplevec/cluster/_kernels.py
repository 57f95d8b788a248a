"""Compiled kernels of a shard: id hashing, endpoint routing, wave scheduling, halo rows and influence draws.

A *row code* identifies a vertex outside its shard: (row on its shard) · shards + (shard). A slot of the adjacency whose
neighbor is on another shard holds −1 − code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.graph._edge_kernels import remove_neighbor
from ripplevec.graph._id_kernels import INTEGER, EncodedIds, compute_tag, equals_previous, home_slot
from ripplevec.graph._query_kernels import find_slot
from ripplevec.influence._kernels import draw_uniform, mix, sample_slot
from ripplevec.util.numba_intrinsics import allocation_free, kernel, prefetch

_ALL_BITS = (1 << 62) - 1
_HIGH = 32  # the id table of a shard uses the low bits of the hash, so the shard is chosen by the high bits


@allocation_free
def hash_to_shards(ids: EncodedIds, shards: int, owners: NDArray[np.int64]) -> None:
    """Write the shard of every id to `owners`: a hash that is the same on every machine."""
    keys, ends, data = ids
    for i in range(owners.size):
        tag = compute_tag(keys[i], ends[i] if ends.size else INTEGER, data)
        owners[i] = (home_slot(tag, _ALL_BITS) >> _HIGH) % shards


@allocation_free
def find_runs(ids: EncodedIds, begin: NDArray[np.int64]) -> int:
    """Write where each run of equal consecutive ids begins; return the number of runs."""
    found = 0
    for i in range(begin.size):
        if i == 0 or not equals_previous(ids, i):
            begin[found] = i
            found += 1
    return found


@allocation_free
def fill_runs(begin: NDArray[np.int64], values: NDArray[np.int64], filled: NDArray[np.int64]) -> None:
    """Write the value of each run to all of its positions."""
    for run in range(begin.size):
        last = begin[run + 1] if run + 1 < begin.size else filled.size
        for i in range(begin[run], last):
            filled[i] = values[run]


@allocation_free
def collect_slots(
    links: Links,
    arrival: NDArray[np.int64],
    rows: NDArray[np.int64],
    limit: int,
    key: int,
    remote_only: bool,
    slots: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> int:
    """Collect the slots that `rows` read, at most `limit` per row, and the row of each slot; return their number.

    A round of influence needs all of these slots. A refresh needs to request only the rows of remote neighbors:
    `remote_only` keeps the slots whose neighbors are on other shards.
    """
    found = 0
    for row in rows:
        begin, count = links.begin[row], links.degree[row]
        for i in range(min(count, limit)):
            slot = begin + (i if count <= limit else sample_slot(key, arrival[row], i, count))
            if not remote_only or links.neighbor[slot] < 0:
                slots[found], owners[found] = slot, row
                found += 1
    return found


@allocation_free(forceinline=True)
def _probe(table: NDArray[np.int64], distinct: NDArray[np.int64], code: int) -> int:
    """Return the position of a code in a hash table, or the free position where it belongs."""
    last = table.size - 1
    at: int = np.int64(mix(np.uint64(code)) & np.uint64(last))  # type: ignore[assignment]
    while table[at] >= 0 and distinct[table[at]] != code:
        at = (at + 1) & last
    return at


@kernel
def index_distinct(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number distinct codes in order of first occurrence.

    Returns the index of each code, the distinct codes, and a hash table from codes to indices for `lookup_values`.
    """
    size = 16
    while size < 2 * codes.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    index, distinct = np.empty(codes.size, np.int64), np.empty(codes.size, np.int64)
    count = 0
    for i in range(codes.size):
        at = _probe(table, distinct, codes[i])
        if table[at] < 0:
            table[at] = count
            distinct[count] = codes[i]
            count += 1
        index[i] = table[at]
    return index, distinct[:count], table


@allocation_free
def lookup_values(
    codes: NDArray[np.int64],
    table: NDArray[np.int64],
    distinct: NDArray[np.int64],
    values: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Write, for each code, the value at the index that `index_distinct` gave it; −1 for codes that it did not see."""
    for i in range(codes.size):
        index = table[_probe(table, distinct, codes[i])]
        found[i] = values[index] if index >= 0 else -1


@allocation_free
def store_rows(
    rows: NDArray[np.int64],
    values: NDArray[np.float32],
    vectors: NDArray[np.float32],
    placed: NDArray[np.uint8],
    seen: NDArray[np.int64],
    stamp: int,
) -> None:
    """Store placed rows, and mark them with `stamp`; negative rows are ignored."""
    for i in range(rows.size):
        if rows[i] >= 0:
            target, value = vectors[rows[i]], values[i]
            for j in range(target.size):
                target[j] = value[j]
            placed[rows[i]], seen[rows[i]] = 1, stamp


@allocation_free
def clear_rows(rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
    """Write zeros to rows."""
    for row in rows:
        vectors[row] = 0


@allocation_free
def sample_influenced(
    links: Links,
    placed: NDArray[np.uint8],
    seen: NDArray[np.int64],
    stamp: int,
    endpoints: NDArray[np.int64],
    numbers: NDArray[np.int64],
    key: int,
    reached: NDArray[np.int64],
) -> int:
    """Draw the rows that new vertices influence in the first round; return their number (rows may repeat).

    The draw is made on the shard of the influenced row, which knows the edge and the degree. `endpoints` are pairs of a
    row and the new vertex connected to it; `numbers` are the arrival numbers of both. A new vertex with a placed
    neighbor is itself placed.
    """
    found = 0
    for i in range(len(endpoints)):
        if i + 8 < len(endpoints):
            prefetch(links.begin, endpoints[i + 8, 0], 0)
        if i + 4 < len(endpoints):
            row = endpoints[i + 4, 0]
            prefetch(links.neighbor, links.begin[row] + links.degree[row] - 1, 0)
        row = endpoints[i, 0]
        if seen[row] == stamp or not placed[row]:
            continue
        slot = find_slot(links, row, endpoints[i, 1])
        if (
            slot >= 0
            and draw_uniform(key, numbers[i, 0], numbers[i, 1]) * links.in_strength[row] < links.incoming[slot]
        ):
            reached[found] = row
            found += 1
    return found


@allocation_free
def has_neighbors(
    links: Links, rows: NDArray[np.int64], neighbors: NDArray[np.int64], found: NDArray[np.bool_], directed: bool
) -> None:
    """Test, pair by pair, whether a row has a neighbor (in a directed graph, by an outgoing edge)."""
    for i in range(rows.size):
        at = find_slot(links, rows[i], neighbors[i])
        found[i] = at >= 0 and (not directed or links.outgoing[at] > 0)


@allocation_free
def drop_neighbor_from(
    links: Links, rows: NDArray[np.int64], neighbor: int, share: NDArray[np.float64], directed: bool
) -> None:
    """Remove one vertex from the adjacency of `rows`; write the share of its strength that each row lost."""
    for i in range(rows.size):
        share[i] = remove_neighbor(links, rows[i], neighbor, directed)


@kernel
def group_by_shard(codes: NDArray[np.int64], shards: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of row codes, grouped by shard, in order, and where each group begins; the end is last.

    Numbers of shards are valid row codes (of row 0).
    """
    begin = np.zeros(shards + 1, np.int64)
    for code in codes:
        begin[code % shards + 1] += 1
    begin = np.cumsum(begin)
    free, order = begin.copy(), np.empty(codes.size, np.int64)
    for i in range(codes.size):
        shard = codes[i] % shards
        order[free[shard]] = i
        free[shard] += 1
    return order, begin


@allocation_free
def record_first_positions(
    rows: NDArray[np.int64], positions: NDArray[np.int64], arrival: NDArray[np.int64], new_rows: NDArray[np.int64]
) -> int:
    """List the new rows (arrival number −1), and set their arrival numbers to −2 − the first position of each.

    Returns the number of new rows.
    """
    found = 0
    for i in range(rows.size):
        number = arrival[rows[i]]
        if number == -1:
            new_rows[found] = rows[i]
            found += 1
        if number < 0:
            arrival[rows[i]] = max(number, -2 - positions[i]) if number < -1 else -2 - positions[i]
    return found


@kernel
def route_endpoints(
    codes: NDArray[np.int64],
    numbers: NDArray[np.int64],
    op: NDArray[np.int8],
    weight: NDArray[np.float32],
    shards: int,
) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
    """Group both endpoints of all operations by shard, in order.

    Returns where the group of each shard begins, with the end of the last group, and the columns of an `EndpointBlock`.
    """
    begin = np.zeros(shards + 1, np.int64)
    for code in codes.ravel():
        begin[code % shards + 1] += 1
    begin = np.cumsum(begin)
    free, count = begin.copy(), codes.size
    ends, end_numbers = np.empty((count, 2), np.int64), np.empty((count, 2), np.int64)
    end_op, end_weight, side = np.empty(count, np.int8), np.empty(count, np.float32), np.empty(count, np.int8)
    for i in range(len(codes)):
        for end in range(2):
            code, other = codes[i, end], codes[i, 1 - end]
            shard = code % shards
            at = free[shard]
            free[shard] += 1
            ends[at, 0], ends[at, 1] = code // shards, other // shards if other % shards == shard else -1 - other
            end_numbers[at, 0], end_numbers[at, 1] = numbers[i, end], numbers[i, 1 - end]
            end_op[at], end_weight[at], side[at] = op[i], weight[i], end
    return begin, (ends, end_numbers, end_op, end_weight, side)


@kernel
def schedule_waves(
    codes: NDArray[np.int64], numbers: NDArray[np.int64], first_new: int, count: int, shards: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Schedule the admission of `count` new vertices: the wave of each, and its step on its shard within that wave.

    A vertex is admitted after all earlier new vertices that it may have an edge to: one wave later if such a vertex is
    on another shard, one step later if it is on the same shard. `codes` and `numbers` describe both endpoints of edges.
    """
    begin = np.zeros(count + 2, np.int64)
    for i in range(len(codes)):
        if min(numbers[i, 0], numbers[i, 1]) >= first_new:
            begin[max(numbers[i, 0], numbers[i, 1]) - first_new + 2] += 1
    begin = np.cumsum(begin)
    # Grouped by the later endpoint: 2 · (earlier endpoint) + (1 if the two are on different shards).
    earlier = np.empty(begin[-1], np.int64)
    for i in range(len(codes)):
        first = min(numbers[i, 0], numbers[i, 1]) - first_new
        if first >= 0:
            later = max(numbers[i, 0], numbers[i, 1]) - first_new
            earlier[begin[later + 1]] = 2 * first + (codes[i, 0] % shards != codes[i, 1] % shards)
            begin[later + 1] += 1
    wave, step = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for later in range(count):
        for entry in earlier[begin[later] : begin[later + 1]]:
            first, remote = entry >> 1, entry & 1
            if first == later:
                continue
            after = (wave[first] + 1, 0) if remote else (wave[first], step[first] + 1)
            if after > (wave[later], step[later]):
                wave[later], step[later] = after
    return wave, step
