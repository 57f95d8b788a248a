"""The table and the heap against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.temporal import _kernels as kernels
from ripplevec.temporal._kernels import ADD, EDGE_COUNT, EMPTY, HEAP_SIZE, LATEST, EdgeTimes

LINES = 32
operation = st.tuples(
    st.sampled_from([ADD, ADD, ADD, kernels.REMOVE, 2]), st.integers(0, 5), st.integers(0, 5), st.integers(0, 20)
)


def empty(lines: int = LINES) -> EdgeTimes:
    edge, who = np.full((lines, 4), EMPTY, np.int64), np.empty((1000, 2), np.int64)
    return EdgeTimes(edge, np.empty((lines, 2)), np.empty(1000), who, np.zeros(2, np.int64))


def note(held: EdgeTimes, history: list[tuple[int, int, int, int]], directed: bool) -> None:
    op, a, b, time = (np.array(column) for column in zip(*history, strict=True))
    numbers = np.stack([a, b], axis=1)
    kernels.record_edges(held, op.astype(np.int8), numbers + 100, numbers, time.astype(np.float64), directed)


def lines(held: EdgeTimes) -> dict[tuple[int, int], float]:
    return {
        (int(edge[0]), int(edge[1])): float(time[LATEST])
        for edge, time in zip(held.edge, held.time, strict=True)
        if edge[0] != EMPTY
    }


@settings(max_examples=150, deadline=None)
@given(
    rounds=st.lists(st.tuples(st.lists(operation, min_size=1, max_size=12), st.integers(0, 20)), max_size=8),
    directed=st.booleans(),
    room=st.integers(1, 5),
)
def test_edges_wait_until_their_latest_mention_is_old(
    rounds: list[tuple[list[tuple[int, int, int, int]], int]], directed: bool, room: int
) -> None:
    held, plain = empty(64), dict[tuple[int, int], float]()
    for history, before in rounds:
        note(held, history, directed)
        for op, u, v, time in history:
            key = (u, v) if directed else (min(u, v), max(u, v))
            if op == kernels.REMOVE:
                plain.pop(key, None)
            elif op == ADD and u != v:
                plain[key] = max(plain.get(key, -1.0), time)
        assert lines(held) == plain
        gone = []
        while kernels.has_due(held, before):
            out, when = np.empty((room, 4), np.int64), np.empty(room)
            found = kernels.pop_expired(held, before, out, when)
            assert np.array_equal(out[:found, 2:], out[:found, :2] + 100)
            gone += [(int(edge[0]), int(edge[1]), time) for edge, time in zip(out[:found], when[:found], strict=True)]
        assert sorted(gone) == sorted((*key, time) for key, time in plain.items() if time < before)
        plain = {key: time for key, time in plain.items() if time >= before}
        assert lines(held) == plain
        assert held.sizes[EDGE_COUNT] == len(plain)


def test_a_mention_again_takes_no_place_in_the_heap() -> None:
    held = empty()
    note(held, [(ADD, 0, 1, time) for time in range(50)], False)
    assert held.sizes.tolist() == [1, 1]
    assert kernels.pop_expired(held, 40.0, np.empty((1, 4), np.int64), np.empty(1)) == 0
    assert (held.sizes[HEAP_SIZE], held.heap_time[0]) == (1, 49.0)


def test_what_has_moved_house_leaves_dead_entries_behind() -> None:
    held, new = empty(), empty(64)
    note(held, [(op, 0, 1, time) for time in range(10) for op in (ADD, kernels.REMOVE)] + [(ADD, 2, 3, 4)], False)
    assert held.sizes.tolist() == [1, 11]
    kernels.rehash(held, new)
    assert new.sizes.tolist() == [1, 1]
    assert lines(new) == {(2, 3): 4.0}
