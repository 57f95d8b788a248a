"""Hash table and heap of edge times compared with a dict."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.temporal import _kernels as kernels
from ripplevec.temporal._kernels import ADD, EDGE_COUNT, EMPTY, HEAP_SIZE, LATEST, EdgeTimes

ENTRIES = 32
operation = st.tuples(
    st.sampled_from([ADD, ADD, ADD, kernels.REMOVE, 2]), st.integers(0, 5), st.integers(0, 5), st.integers(0, 20)
)


def create_edge_times(entries: int = ENTRIES) -> EdgeTimes:
    edge, heap_edge = np.full((entries, 4), EMPTY, np.int64), np.empty((1000, 2), np.int64)
    return EdgeTimes(edge, np.empty((entries, 2)), np.empty(1000), heap_edge, np.zeros(2, np.int64))


def record(edges: EdgeTimes, history: list[tuple[int, int, int, int]], directed: bool) -> None:
    op, a, b, time = (np.array(column) for column in zip(*history, strict=True))
    numbers = np.stack([a, b], axis=1)
    kernels.record_edges(edges, op.astype(np.int8), numbers + 100, numbers, time.astype(np.float64), directed)


def read_edges(edges: EdgeTimes) -> dict[tuple[int, int], float]:
    return {
        (int(edge[0]), int(edge[1])): float(time[LATEST])
        for edge, time in zip(edges.edge, edges.time, strict=True)
        if edge[0] != EMPTY
    }


@settings(max_examples=150, deadline=None)
@given(
    rounds=st.lists(st.tuples(st.lists(operation, min_size=1, max_size=12), st.integers(0, 20)), max_size=8),
    directed=st.booleans(),
    chunk=st.integers(1, 5),
)
def test_pop_expired_random_history_matches_dict(
    rounds: list[tuple[list[tuple[int, int, int, int]], int]], directed: bool, chunk: int
) -> None:
    edges, reference = create_edge_times(64), dict[tuple[int, int], float]()
    for history, before in rounds:
        record(edges, history, directed)
        for op, u, v, time in history:
            key = (u, v) if directed else (min(u, v), max(u, v))
            if op == kernels.REMOVE:
                reference.pop(key, None)
            elif op == ADD and u != v:
                reference[key] = max(reference.get(key, -1.0), time)
        assert read_edges(edges) == reference
        expired = []
        while kernels.has_due(edges, before):
            out, when = np.empty((chunk, 4), np.int64), np.empty(chunk)
            found = kernels.pop_expired(edges, before, out, when)
            assert np.array_equal(out[:found, 2:], out[:found, :2] + 100)
            expired += [
                (int(edge[0]), int(edge[1]), time) for edge, time in zip(out[:found], when[:found], strict=True)
            ]
        assert sorted(expired) == sorted((*key, time) for key, time in reference.items() if time < before)
        reference = {key: time for key, time in reference.items() if time >= before}
        assert read_edges(edges) == reference
        assert edges.sizes[EDGE_COUNT] == len(reference)


def test_record_edges_repeated_edge_adds_no_heap_entry() -> None:
    edges = create_edge_times()
    record(edges, [(ADD, 0, 1, time) for time in range(50)], False)
    assert edges.sizes.tolist() == [1, 1]
    assert kernels.pop_expired(edges, 40.0, np.empty((1, 4), np.int64), np.empty(1)) == 0
    assert (edges.sizes[HEAP_SIZE], edges.heap_time[0]) == (1, 49.0)


def test_rehash_drops_stale_heap_entries() -> None:
    edges, new = create_edge_times(), create_edge_times(64)
    record(edges, [(op, 0, 1, time) for time in range(10) for op in (ADD, kernels.REMOVE)] + [(ADD, 2, 3, 4)], False)
    assert edges.sizes.tolist() == [1, 11]
    kernels.rehash(edges, new)
    assert new.sizes.tolist() == [1, 1]
    assert read_edges(new) == {(2, 3): 4.0}
