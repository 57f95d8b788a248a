"""Tests of the shard kernels against plain Python references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import id_column
from ripplevec.cluster import _kernels as kernels
from ripplevec.cluster.ingestion import number_by_position
from ripplevec.cluster.routing import assign_shards, find_runs
from ripplevec.graph._edge_kernels import IN, OUT
from ripplevec.graph.adjacency import Adjacency
from ripplevec.influence._kernels import draw_key, draw_uniform, sample_slot

RowArray = NDArray[np.int64]
SEEDS = st.integers(0, 10**6)
ROWS = 12


def random_adjacency(seed: int, *, directed: bool = False, edges: int = 60) -> Adjacency:
    """Return rows 0 … 11 with one-sided edges to each other and to remote neighbors (negative numbers)."""
    rng = np.random.default_rng(seed)
    adjacency = Adjacency(directed=directed)
    adjacency.ensure_rows(ROWS)
    ends = np.stack([rng.integers(0, ROWS, edges), rng.integers(-9, ROWS, edges)], axis=1)
    weight = rng.integers(1, 9, edges).astype(np.float32)
    adjacency.apply_endpoints(np.zeros(edges, np.int8), ends, weight, rng.choice([OUT, IN], edges).astype(np.int8))
    adjacency.arrival[:ROWS] = rng.permutation(ROWS)
    return adjacency


def slots_read(adjacency: Adjacency, row: int, limit: int, key: Any) -> list[int]:
    """Return the slots of a row that are read: all of them, or a sample."""
    begin, count = int(adjacency.links.begin[row]), int(adjacency.links.degree[row])
    if count <= limit:
        return list(range(begin, begin + count))
    return [begin + int(sample_slot(key, int(adjacency.arrival[row]), i, count)) for i in range(limit)]


def test_assign_shards_is_independent_of_column_type() -> None:
    ids = [*range(-3, 20), *(f"v{number}" for number in range(20)), 2**70, -(2**63), "", "ü"]
    mixed = assign_shards(id_column(ids), 5)
    integers = [name for name in ids if isinstance(name, int) and abs(name) < 2**62]
    assert assign_shards(np.array(integers), 5).tolist() == [mixed[ids.index(name)] for name in integers]
    text = [name for name in ids if isinstance(name, str)]
    assert assign_shards(id_column(text), 5).tolist() == [mixed[ids.index(name)] for name in text]
    assert assign_shards(id_column([]), 5).size == 0


@pytest.mark.parametrize("ids", [[], [7], [1, 1, 1], [1, 2, 2, 1], ["a", "a", "b"], [1, "1", "1", 2**70, 2**70, "ab"]])
def test_find_runs_begins_a_run_where_the_id_changes(ids: list[Any]) -> None:
    begin = find_runs(id_column(ids))
    assert begin.tolist() == [
        i for i, vertex in enumerate(ids) if i == 0 or (type(vertex), vertex) != (type(ids[i - 1]), ids[i - 1])
    ]
    filled = np.full(len(ids), -1)
    kernels.fill_runs(begin, begin, filled)
    assert [ids[i] for i in filled] == ids


def test_assign_shards_never_changes() -> None:
    """Saved models are split by this assignment, so it must never change."""
    assert assign_shards(np.arange(8), 3).tolist() == [0, 2, 2, 0, 1, 1, 0, 1]
    assert assign_shards(id_column(["a", "b", "alice", ""]), 5).tolist() == [1, 3, 3, 2]


@pytest.mark.parametrize("step", [1, 2, 64, 2**20])
def test_assign_shards_is_balanced(step: int) -> None:
    counts = np.bincount(assign_shards(np.arange(0, 8_000 * step, step), 4), minlength=4)
    assert (abs(counts - 2_000) < 200).all()


@settings(max_examples=30)
@given(seed=SEEDS, limit=st.sampled_from([1, 3, 2**40]))
def test_collect_slots_remote_only_matches_reference(seed: int, limit: int) -> None:
    adjacency, key = random_adjacency(seed), draw_key(seed, 3, 1)
    rows = np.random.default_rng(seed).permutation(ROWS)[:7]
    slots, readers = np.empty((2, 100), np.int64)
    found = kernels.collect_slots(adjacency.links, adjacency.arrival, rows, limit, key, True, slots, readers)
    expected = [
        (slot, row)
        for row in rows.tolist()
        for slot in slots_read(adjacency, row, limit, key)
        if adjacency.links.neighbor[slot] < 0
    ]
    assert list(zip(slots[:found].tolist(), readers[:found].tolist(), strict=True)) == expected


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**40) | st.integers(0, 5), max_size=60))
def test_index_distinct_numbers_by_first_occurrence(codes: list[int]) -> None:
    index, distinct, table = kernels.index_distinct(np.array(codes, np.int64))
    first = list(dict.fromkeys(codes))
    assert distinct.tolist() == first
    assert index.tolist() == [first.index(code) for code in codes]
    requested = np.array([*codes[::2], 2**41, -7, 3], np.int64)
    found = np.empty(requested.size, np.int64)
    kernels.lookup_values(requested, table, distinct, 10 * np.arange(distinct.size), found)
    assert found.tolist() == [10 * first.index(code) if code in first else -1 for code in requested.tolist()]


@settings(max_examples=30)
@given(seed=SEEDS, limit=st.sampled_from([1, 3, 2**40]))
def test_collect_slots_of_all_neighbors_matches_reference(seed: int, limit: int) -> None:
    adjacency, key = random_adjacency(seed), draw_key(seed, 3, 1)
    sources = np.random.default_rng(seed).permutation(ROWS)[:7]
    expected = [
        (slot, int(adjacency.arrival[row]))
        for row in sources.tolist()
        for slot in slots_read(adjacency, row, limit, key)
    ]
    slots, owners = np.empty((2, len(expected)), np.int64)
    found = kernels.collect_slots(adjacency.links, adjacency.arrival, sources, limit, key, False, slots, owners)
    assert found == len(expected)
    assert list(zip(slots.tolist(), adjacency.arrival[owners].tolist(), strict=True)) == expected


def neighbor_dicts(adjacency: Adjacency) -> list[dict[int, tuple[float, float]]]:
    links = adjacency.links
    return [
        {
            int(links.neighbor[slot]): (float(links.outgoing[slot]), float(links.incoming[slot]))
            for slot in adjacency.slots(np.array([row]))
        }
        for row in range(ROWS)
    ]


@settings(max_examples=30)
@given(seed=SEEDS, directed=st.booleans())
def test_has_neighbors_matches_reference(seed: int, directed: bool) -> None:
    adjacency = random_adjacency(seed, directed=directed)
    rows, others = (grid.ravel() for grid in np.meshgrid(np.arange(ROWS), np.arange(-10, ROWS)))
    found = np.empty(rows.size, np.bool_)
    kernels.has_neighbors(adjacency.links, rows, others, found, directed)
    lists = neighbor_dicts(adjacency)
    expected = [
        other in lists[row] and (not directed or lists[row][other][0] > 0)
        for row, other in zip(rows.tolist(), others.tolist(), strict=True)
    ]
    assert found.tolist() == expected


@settings(max_examples=30)
@given(seed=SEEDS, directed=st.booleans(), other=st.integers(-9, ROWS - 1))
def test_drop_neighbor_from_matches_reference(seed: int, directed: bool, other: int) -> None:
    adjacency = random_adjacency(seed, directed=directed)
    before, strength = neighbor_dicts(adjacency), adjacency.links.strength[:ROWS].copy()
    rows = np.array([row for row in range(ROWS) if other in before[row]], np.int64)
    shares = np.empty(rows.size)
    kernels.drop_neighbor_from(adjacency.links, rows, other, shares, directed)
    assert neighbor_dicts(adjacency) == [
        {name: weights for name, weights in neighbors.items() if name != other} for neighbors in before
    ]
    for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
        outgoing, incoming = before[row][other]
        assert share == pytest.approx((outgoing + incoming if directed else outgoing) / strength[row])
    adjacency.check(whole=False)


PAIRS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40)


@settings(max_examples=100)
@given(pairs=PAIRS, shards=st.integers(1, 4), first_new=st.integers(0, 5))
def test_schedule_waves_admits_after_earlier_neighbors(
    pairs: list[tuple[int, int]], shards: int, first_new: int
) -> None:
    """Vertex n has row code n here; vertices below `first_new` are not new."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    wave, step = (column.tolist() for column in kernels.schedule_waves(ends, ends, first_new, 15 - first_new, shards))
    for later in range(first_new, 15):
        expected = (0, 0)
        for earlier in [min(pair) for pair in pairs if max(pair) == later and first_new <= min(pair) < later]:
            at = wave[earlier - first_new], step[earlier - first_new]
            after = (at[0], at[1] + 1) if earlier % shards == later % shards else (at[0] + 1, 0)
            expected = max(expected, after)
        assert (wave[later - first_new], step[later - first_new]) == expected


@settings(max_examples=50)
@given(pairs=PAIRS, shards=st.integers(1, 4))
def test_route_endpoints_groups_by_shard_in_order(pairs: list[tuple[int, int]], shards: int) -> None:
    codes = np.array(pairs, np.int64).reshape(-1, 2)
    op, weight = np.arange(len(codes), dtype=np.int8), np.arange(len(codes)).astype(np.float32) / 2
    begin, columns = kernels.route_endpoints(codes, codes + 100, op, weight, shards)
    assert begin[0] == 0
    assert begin[-1] == codes.size
    for shard in range(shards):
        expected = []
        for i, pair in enumerate(pairs):
            for end, (code, other) in enumerate((pair, pair[::-1])):
                if code % shards == shard:
                    neighbor = other // shards if other % shards == shard else -1 - other
                    expected.append([code // shards, neighbor, code + 100, other + 100, i, i / 2, end])
        part = slice(begin[shard], begin[shard + 1])
        assert np.column_stack([column[part] for column in columns]).tolist() == expected


@settings(max_examples=50)
@given(occurrences=st.lists(st.integers(0, 9), max_size=40), seed=SEEDS)
def test_new_rows_are_numbered_by_first_position(occurrences: list[int], seed: int) -> None:
    """Rows 0 to 4 are known, with arrival numbers 0 to 4; the others are new."""
    rows = np.array(occurrences, np.int64)
    positions = np.random.default_rng(seed).permutation(rows.size)
    arrival = np.where(np.arange(10) < 5, np.arange(10), -1)
    new_rows = np.empty(rows.size, np.int64)
    found = kernels.record_first_positions(rows, positions, arrival, new_rows)
    in_order = rows[np.argsort(positions)]
    expected = list(dict.fromkeys(in_order[in_order >= 5].tolist()))
    assert sorted(new_rows[:found].tolist()) == sorted(expected)
    first_positions = np.sort(-2 - arrival[new_rows[:found]])
    numbers = arrival[rows]
    number_by_position(numbers, first_positions, 100)
    assert numbers.tolist() == [row if row < 5 else 100 + expected.index(row) for row in occurrences]


@settings(max_examples=50)
@given(seed=SEEDS, directed=st.booleans())
def test_sample_influenced_matches_reference(seed: int, directed: bool) -> None:
    adjacency, key, rng = random_adjacency(seed, directed=directed), draw_key(seed, 3, 1), np.random.default_rng(seed)
    links, lists = adjacency.links, neighbor_dicts(adjacency)
    ends = np.stack([rng.integers(0, ROWS, 50), rng.integers(-9, ROWS, 50)], axis=1)
    numbers = np.stack([adjacency.arrival[ends[:, 0]], 100 + ends[:, 1]], axis=1)
    placed, seen = rng.integers(0, 2, ROWS).astype(np.uint8), rng.integers(0, 2, ROWS)
    reached = np.empty(50, np.int64)
    found = kernels.sample_influenced(links, placed, seen, 1, ends, numbers, key, reached)
    expected = [
        row
        for (row, other), (own, others) in zip(ends.tolist(), numbers.tolist(), strict=True)
        if placed[row] and seen[row] != 1 and other in lists[row]
        if draw_uniform(key, own, others) * links.in_strength[row] < lists[row][other][1 if directed else 0]
    ]
    assert reached[:found].tolist() == expected


def test_store_rows_ignores_negative_rows_and_clear_rows_writes_zeros() -> None:
    vectors, placed, seen = np.zeros((5, 3), np.float32), np.zeros(5, np.uint8), np.zeros(5, np.int64)
    rows, values = np.array([3, -1, 1]), np.arange(9, dtype=np.float32).reshape(3, 3) + 1
    kernels.store_rows(rows, values, vectors, placed, seen, 7)
    assert vectors.tolist() == [[0] * 3, [7, 8, 9], [0] * 3, [1, 2, 3], [0] * 3]
    assert placed.tolist() == [0, 1, 0, 1, 0]
    assert seen.tolist() == [0, 7, 0, 7, 0]
    kernels.clear_rows(np.array([3]), vectors)
    assert vectors.tolist() == [[0] * 3, [7, 8, 9], *[[0] * 3] * 3]
