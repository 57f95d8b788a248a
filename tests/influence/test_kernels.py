"""Random draws compared with Python integers and tested for uniformity; one round compared with plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency
from ripplevec.influence import _kernels as kernels

MASK = 2**64 - 1
words = st.integers(0, MASK)
numbers = st.integers(0, 2**62)


def reference_mix(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def key(seed: int, sequence: int = 0, draw_round: int = 0) -> np.uint64:
    return np.uint64(kernels.derive_key(seed, sequence, draw_round))


@njit
def draw_all(key: int, us: int, vs: int) -> NDArray[np.float64]:
    drawn = np.empty((us, vs))
    for u in range(us):
        for v in range(vs):
            drawn[u, v] = kernels.draw_uniform(key, u, v)
    return drawn


def random_adjacency(rows: int, edges: int, *, directed: bool, seed: int = 0) -> Adjacency:
    rng = np.random.default_rng(seed)
    adjacency = Adjacency(directed=directed)
    adjacency.ensure_rows(rows)
    weight = rng.integers(1, 9, edges).astype(np.float32)
    adjacency.apply(np.zeros(edges, np.int8), rng.integers(0, rows, (edges, 2)), weight)
    return adjacency


def test_mix_matches_published_splitmix64_values() -> None:
    assert kernels.mix(np.uint64(0)) == 0xE220A8397B1DCDAF
    assert kernels.mix(np.uint64(0x9E3779B97F4A7C15)) == 0x6E789E6AA1B965F4


@settings(max_examples=50)
@given(seed=words, sequence=numbers, draw_round=st.integers(0, 100), u=numbers, v=numbers)
def test_draws_are_a_hash_of_key_and_pair(seed: int, sequence: int, draw_round: int, u: int, v: int) -> None:
    shared = reference_mix(reference_mix(reference_mix(seed) ^ sequence) ^ draw_round)
    word = reference_mix(reference_mix(shared ^ u) ^ v)
    assert kernels.derive_key(np.uint64(seed), sequence, draw_round) == shared
    assert kernels.random_word(np.uint64(shared), u, v) == word
    assert kernels.draw_uniform(np.uint64(shared), u, v) == (word >> 11) / 2**53
    assert kernels.sample_slot(np.uint64(shared), u, v, 17) == word % 17


@pytest.mark.parametrize("seed", [0, 1, 2**62])
def test_draws_are_uniform_and_look_independent(seed: int) -> None:
    drawn = draw_all(key(seed), 400, 400)
    assert 0 <= drawn.min() < 1e-4
    assert 1 - 1e-4 < drawn.max() < 1
    assert np.unique(drawn).size == drawn.size
    counts = np.bincount((drawn.ravel() * 64).astype(np.int64), minlength=64)
    assert (((counts - counts.mean()) ** 2) / counts.mean()).sum() < 63 + 6 * np.sqrt(2 * 63)
    others = {
        "transposed": drawn.T,
        "next source": np.roll(drawn, 1, axis=1),
        "next target": np.roll(drawn, 1, axis=0),
        "next seed": draw_all(key(seed + 1), 400, 400),
        "next batch": draw_all(key(seed, 1), 400, 400),
        "next round": draw_all(key(seed, 0, 1), 400, 400),
    }
    off_diagonal = ~np.eye(400, dtype=bool)
    for name, other in others.items():
        assert abs(np.corrcoef(drawn[off_diagonal], other[off_diagonal])[0, 1]) < 5 / 400, name


def test_sample_slot_is_uniform() -> None:
    shared = key(3)
    slots = [kernels.sample_slot(shared, 5, i, 7) for i in range(7000)]
    counts = np.bincount(slots, minlength=7)
    assert counts.size == 7
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("limit", [2**62, 3])
def test_spread_round_gives_each_unseen_neighbor_one_chance(directed: bool, limit: int) -> None:
    rows = 60
    adjacency = random_adjacency(rows, 300, directed=directed)
    outgoing = np.zeros((rows, rows))
    packed = adjacency.to_packed()
    ends = np.repeat(np.arange(adjacency.capacity), packed["degree"])
    outgoing[ends, packed["neighbor"]] = packed["outgoing" if directed else "weight"]
    incoming = outgoing.sum(axis=0)
    arrival = np.random.default_rng(1).permutation(adjacency.capacity) + 1000
    reached_at_all = 0
    for number in range(20):
        shared = key(7, number)
        seen = np.zeros(adjacency.capacity, np.int64)
        seen[number::5] = 4
        sources = np.array([number, number + 20, number + 40])
        expected = []
        for v in sources:
            around = adjacency.neighbors(v)
            if len(around) > limit:
                source_number = int(arrival[v])
                around = [around[kernels.sample_slot(shared, source_number, i, len(around))] for i in range(limit)]
            for u in around:
                if seen[u] != 4 and kernels.draw_uniform(shared, arrival[u], arrival[v]) * incoming[u] < outgoing[v, u]:
                    expected.append(u)
        before, reached = seen.copy(), np.full(300, -1, np.int64)
        count = kernels.spread_round(adjacency.links, arrival, sources, seen, 4, shared, limit, reached)
        assert reached[:count].tolist() == expected
        assert np.array_equal(seen, before)
        reached_at_all += count
    assert reached_at_all > 10


@given(reached=st.lists(st.integers(0, 9)), seen=st.sets(st.integers(0, 9)))
def test_mark_seen_keeps_first_mentions(reached: list[int], seen: set[int]) -> None:
    stamps = np.array([7 if row in seen else 3 for row in range(10)])
    rows = np.array(reached, np.int64)
    count = kernels.mark_seen(rows, stamps, 7)
    assert rows[:count].tolist() == [row for row in dict.fromkeys(reached) if row not in seen]
    assert set(np.flatnonzero(stamps == 7).tolist()) == seen | set(reached)


@pytest.mark.parametrize("depth", [0, 1, 3, -1])
def test_run_cascade_equals_successive_rounds(depth: int) -> None:
    adjacency = random_adjacency(80, 90, directed=False)
    arrival = np.arange(adjacency.capacity) * 3
    sizes = set()
    for source in range(80):
        shared, stamp = key(1, source), 9
        seen, marks = np.zeros(adjacency.capacity, np.int64), np.zeros(adjacency.capacity, np.int64)
        influenced, ends = kernels.run_cascade(adjacency.links, arrival, source, depth, seen, stamp, shared)
        marks[source] = stamp
        frontier, expected = np.array([source]), []
        while frontier.size and len(expected) != depth:
            reached = np.empty(1000, np.int64)
            count = kernels.spread_round(adjacency.links, arrival, frontier, marks, stamp, shared, 2**62, reached)
            frontier = reached[: kernels.mark_seen(reached[:count], marks, stamp)].copy()
            expected.append(frontier.tolist())
        assert [influenced[a:b].tolist() for a, b in pairwise(ends)] == expected
        assert np.array_equal(seen, marks)
        sizes.add(len(expected))
    assert max(sizes) == depth if depth >= 0 else max(sizes) > 3


def test_draw_key_any_size_is_uint64() -> None:
    keys = [kernels.draw_key(seed, 3, 1) for seed in range(50)]
    assert {type(key) for key in keys} == {np.uint64}
    assert [int(key) for key in keys] == [kernels.derive_key(seed, 3, 1) for seed in range(50)]
    assert min(keys) < 2**63 <= max(keys)
