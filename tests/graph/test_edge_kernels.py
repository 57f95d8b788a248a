"""Each kernel of the adjacency against plain Python on small arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.graph import _block_kernels as blocks
from ripplevec.graph import _edge_kernels as kernels
from ripplevec.graph import _query_kernels as finding
from ripplevec.graph._block_kernels import ARENA_TOP, EDGE_COUNT, LOOP_COUNT, NO_BLOCK, Links
from ripplevec.graph._edge_kernels import ADD, KEEP_FIRST, REMOVE, REPLACE, SUM

ROWS = 6
edges = st.lists(
    st.tuples(
        st.sampled_from([ADD, ADD, REMOVE, 2]),
        st.integers(0, ROWS - 1),
        st.integers(0, ROWS - 1),
        st.sampled_from([0.5, 1.0, 2.25, 8.0]),
    ),
    max_size=40,
)
Edges = list[tuple[int, int, int, float]]


def empty(slots: int, *, directed: bool = False, rows: int = ROWS) -> Links:
    strength, weight = np.zeros(rows), np.zeros(slots, np.float32)
    return Links(
        begin=np.zeros(rows, np.int64),
        degree=np.zeros(rows, np.int32),
        size_class=np.full(rows, NO_BLOCK, np.int8),
        strength=strength,
        in_strength=np.zeros(rows) if directed else strength,
        neighbor=np.zeros(slots, np.int32),
        weight=weight,
        outgoing=np.zeros(slots, np.float32) if directed else weight,
        incoming=np.zeros(slots, np.float32) if directed else weight,
        allocator=blocks.create_allocator(),
        index_begin=np.full(rows, blocks.NO_INDEX, np.int64),
        index_cells=np.zeros(0, np.int32),
    )


def apply(links: Links, history: Edges, *, directed: bool = False, first: int = 0) -> tuple[int, np.ndarray]:
    op, src, dst, weight = (list(column) for column in zip(*history, strict=True)) if history else ([], [], [], [])
    pairs = np.array([src, dst], np.int64).T.copy().reshape(-1, 2)
    chance = np.full((len(history), 2), np.nan)
    done = kernels.apply_edges(
        links, np.array(op, np.int8), pairs, np.array(weight, np.float32), chance, first, SUM, directed
    )
    return done, chance


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("repeated", [SUM, KEEP_FIRST, REPLACE])
@settings(max_examples=80)
@given(history=edges)
def test_ends_by_themselves_become_what_edges_make_of_them(history: Edges, repeated: int, directed: bool) -> None:
    op, src, dst, weight = (np.array(column) for column in zip(*history, strict=True)) if history else np.empty((4, 0))
    pairs = np.stack([src, dst], axis=1).astype(np.int64)
    both, apart = empty(4096, directed=directed), empty(4096, directed=directed)
    chance, of_ends = np.full((len(history), 2), np.nan), np.full(2 * len(history), np.nan)
    kernels.apply_edges(both, op.astype(np.int8), pairs, weight.astype(np.float32), chance, 0, repeated, directed)
    ends = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
    ways = np.tile(np.array([kernels.OUT, kernels.IN], np.int8), len(history))
    parts = np.repeat(op.astype(np.int8), 2), ends, np.repeat(weight.astype(np.float32), 2), ways, of_ends
    assert kernels.apply_endpoints(apart, *parts, 0, repeated, directed) == of_ends.size
    np.testing.assert_array_equal(of_ends.reshape(-1, 2), chance)
    assert both.allocator[EDGE_COUNT] == apart.allocator[EDGE_COUNT]
    for row in range(ROWS):
        assert neighbors(both, row) == neighbors(apart, row)
        for name in ("weight", "outgoing", "incoming"):
            one, other = (
                getattr(links, name)[links.begin[row] : links.begin[row] + links.degree[row]] for links in (both, apart)
            )
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(both.strength, apart.strength)
    np.testing.assert_array_equal(both.in_strength, apart.in_strength)


def neighbors(links: Links, row: int) -> list[int]:
    return links.neighbor[links.begin[row] : links.begin[row] + links.degree[row]].tolist()


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=80)
@given(history=edges)
def test_apply_edges_says_the_share_of_strength_that_changed(directed: bool, history: Edges) -> None:
    links = empty(4096, directed=directed)
    done, chance = apply(links, history, directed=directed)
    assert done == len(history)
    away = np.zeros((ROWS, ROWS))
    for (op, u, v, weight), shares in zip(history, chance, strict=True):
        before = away + away.T
        if op <= REMOVE and u != v:
            away[u, v] = away[u, v] + weight if op == ADD else 0
            if not directed and op == REMOVE:
                away[v, u] = 0
        both = away + away.T
        change = abs(both - before)[u, v]
        for end, share in zip((u, v), shares, strict=True):
            most = max(before[end].sum(), both[end].sum())
            assert share == pytest.approx(change / most if change else 0.0)
    assert links.allocator[LOOP_COUNT] == sum(op == ADD and u == v for op, u, v, _ in history)
    assert links.allocator[EDGE_COUNT] == np.count_nonzero(away if directed else np.triu(away + away.T))
    if directed:
        assert links.in_strength == pytest.approx(away.sum(axis=0))


def test_apply_edges_stops_where_the_arena_is_full_and_goes_on_from_there() -> None:
    history = [(ADD, 0, v, float(v)) for v in range(1, ROWS)] + [(REMOVE, 0, 2, 1.0), (ADD, 2, 3, 1.0)]
    small, large = empty(20), empty(4096)
    done, _ = apply(small, history)
    assert 0 < done < len(history)
    assert small.degree[0] == done
    assert small.allocator[ARENA_TOP] <= 20
    roomy = small._replace(neighbor=np.resize(small.neighbor, 200), weight=np.resize(small.weight, 200))
    roomy = roomy._replace(outgoing=roomy.weight)
    assert apply(roomy, history, first=done)[0] == len(history)
    apply(large, history)
    assert [neighbors(roomy, row) for row in range(ROWS)] == [neighbors(large, row) for row in range(ROWS)]
    assert np.array_equal(roomy.strength, large.strength)


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=60)
@given(history=edges, row=st.integers(0, ROWS - 1))
def test_remove_vertex_takes_out_its_edges_and_names_those_who_lost(directed: bool, history: Edges, row: int) -> None:
    links = empty(4096, directed=directed)
    apply(links, history, directed=directed)
    known = neighbors(links, row)
    shares = [links.weight[kernels.find_slot(links, u, row)] / links.strength[u] for u in known]
    others = {u: [v for v in neighbors(links, u) if v != row] for u in range(ROWS) if u != row}
    pointing = sum(finding.has_edge(links, row, u, directed) for u in range(ROWS))
    pointing += sum(finding.has_edge(links, u, row, directed) for u in range(ROWS)) if directed else 0
    left = links.allocator[EDGE_COUNT] - pointing

    touched, chance = np.empty(len(known), np.int64), np.empty(len(known))
    kernels.remove_vertex(links, row, touched, chance, directed)
    assert touched.tolist() == known
    assert chance == pytest.approx(shares)
    assert {u: neighbors(links, u) for u in others} == others
    assert links.allocator[EDGE_COUNT] == left
    assert (links.degree[row], links.size_class[row], links.strength[row], links.in_strength[row]) == (0, NO_BLOCK, 0, 0)
    for u, around in others.items():
        weights = [links.weight[kernels.find_slot(links, u, v)] for v in around]
        assert links.strength[u] == sum(map(float, weights))


def test_a_moved_row_keeps_its_slots_and_gives_its_block_back() -> None:
    links = empty(64, directed=True)
    apply(links, [(ADD, 0, 3, 1.0), (ADD, 5, 0, 2.0)], directed=True)
    before, old = neighbors(links, 0), links.begin[0]
    kernels._resize(links, 0, 4, True)
    slots = slice(links.begin[0], links.begin[0] + 2)
    assert (links.size_class[0], neighbors(links, 0)) == (4, before)
    assert (links.weight[slots].tolist(), links.outgoing[slots].tolist()) == ([1.0, 2.0], [1.0, 0.0])
    assert links.allocator[1] == old


def test_a_dropped_slot_leaves_the_others_in_order_and_gives_room_back() -> None:
    links = empty(256)
    apply(links, [(ADD, 0, v, float(v)) for v in range(1, ROWS)])
    assert links.size_class[0] == 3
    for gone, left, room in [(3, [1, 2, 4, 5], 3), (1, [2, 4, 5], 3), (5, [2, 4], 2), (4, [2], 1), (2, [], NO_BLOCK)]:
        kernels._remove_slot(links, 0, kernels.find_slot(links, 0, gone), False)
        assert (neighbors(links, 0), links.size_class[0], links.strength[0]) == (left, room, sum(left))


def test_room_is_kept_where_there_is_no_smaller_block_to_move_to() -> None:
    links = empty(8, rows=9)
    links.size_class[0], links.degree[0], links.allocator[ARENA_TOP] = 3, 3, 8
    links.neighbor[:3], links.weight[:3] = [1, 2, 3], 1
    kernels._remove_slot(links, 0, 0, False)
    assert (neighbors(links, 0), links.size_class[0]) == ([2, 3], 3)


def test_strength_is_summed_in_order() -> None:
    links = empty(64)
    weights = [1e8, 1e-3, 3.0, 1e-3]
    apply(links, [(ADD, 0, v, w) for v, w in enumerate(weights, 1)])
    expected = 0.0
    for weight in np.array(weights, np.float32):
        expected += float(weight)
    links.strength[0] = 0
    kernels._recompute_strength(links, 0)
    assert links.strength[0] == expected


def test_an_edge_fits_only_where_both_blocks_could_double() -> None:
    links = empty(8)
    assert kernels._fits(links, 0, 1)
    links.allocator[ARENA_TOP] = 1
    assert not kernels._fits(links, 0, 1)
    links.allocator[ARENA_TOP] = 0
    links.size_class[0] = 1
    assert not kernels._fits(links, 0, 1)
