"""Edge kernels compared with plain Python on small arrays, and exact rescaling of weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.graph import _block_kernels as blocks
from ripplevec.graph import _edge_kernels as kernels
from ripplevec.graph import _query_kernels as queries
from ripplevec.graph._block_kernels import ARENA_TOP, EDGE_COUNT, LOOP_COUNT, NO_BLOCK, Links
from ripplevec.graph._edge_kernels import ADD, KEEP_FIRST, REMOVE, REPLACE, SUM
from ripplevec.graph.adjacency import Adjacency

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


def create_links(slots: int, *, directed: bool = False, rows: int = ROWS) -> Links:
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
    changed_share = np.full((len(history), 2), np.nan)
    done = kernels.apply_edges(
        links, np.array(op, np.int8), pairs, np.array(weight, np.float32), changed_share, first, SUM, directed
    )
    return done, changed_share


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("duplicate_policy", [SUM, KEEP_FIRST, REPLACE])
@settings(max_examples=80)
@given(history=edges)
def test_apply_endpoints_random_history_matches_apply_edges(
    history: Edges, duplicate_policy: int, directed: bool
) -> None:
    op, src, dst, weight = (np.array(column) for column in zip(*history, strict=True)) if history else np.empty((4, 0))
    pairs = np.stack([src, dst], axis=1).astype(np.int64)
    together, separate = create_links(4096, directed=directed), create_links(4096, directed=directed)
    changed_share, endpoint_share = np.full((len(history), 2), np.nan), np.full(2 * len(history), np.nan)
    kernels.apply_edges(
        together, op.astype(np.int8), pairs, weight.astype(np.float32), changed_share, 0, duplicate_policy, directed
    )
    ends = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
    directions = np.tile(np.array([kernels.OUT, kernels.IN], np.int8), len(history))
    parts = np.repeat(op.astype(np.int8), 2), ends, np.repeat(weight.astype(np.float32), 2), directions, endpoint_share
    assert kernels.apply_endpoints(separate, *parts, 0, duplicate_policy, directed) == endpoint_share.size
    np.testing.assert_array_equal(endpoint_share.reshape(-1, 2), changed_share)
    assert together.allocator[EDGE_COUNT] == separate.allocator[EDGE_COUNT]
    for row in range(ROWS):
        assert neighbors(together, row) == neighbors(separate, row)
        for name in ("weight", "outgoing", "incoming"):
            one, other = (
                getattr(links, name)[links.begin[row] : links.begin[row] + links.degree[row]]
                for links in (together, separate)
            )
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(together.strength, separate.strength)
    np.testing.assert_array_equal(together.in_strength, separate.in_strength)


def neighbors(links: Links, row: int) -> list[int]:
    return links.neighbor[links.begin[row] : links.begin[row] + links.degree[row]].tolist()


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=80)
@given(history=edges)
def test_apply_edges_random_history_returns_changed_shares(directed: bool, history: Edges) -> None:
    links = create_links(4096, directed=directed)
    done, changed_share = apply(links, history, directed=directed)
    assert done == len(history)
    outgoing = np.zeros((ROWS, ROWS))
    for (op, u, v, weight), shares in zip(history, changed_share, strict=True):
        before = outgoing + outgoing.T
        if op <= REMOVE and u != v:
            outgoing[u, v] = outgoing[u, v] + weight if op == ADD else 0
            if not directed and op == REMOVE:
                outgoing[v, u] = 0
        together = outgoing + outgoing.T
        change = abs(together - before)[u, v]
        for end, share in zip((u, v), shares, strict=True):
            larger = max(before[end].sum(), together[end].sum())
            assert share == pytest.approx(change / larger if change else 0.0)
    assert links.allocator[LOOP_COUNT] == sum(op == ADD and u == v for op, u, v, _ in history)
    assert links.allocator[EDGE_COUNT] == np.count_nonzero(outgoing if directed else np.triu(outgoing + outgoing.T))
    if directed:
        assert links.in_strength == pytest.approx(outgoing.sum(axis=0))


def test_apply_edges_full_arena_stops_and_resumes() -> None:
    history = [(ADD, 0, v, float(v)) for v in range(1, ROWS)] + [(REMOVE, 0, 2, 1.0), (ADD, 2, 3, 1.0)]
    small, large = create_links(20), create_links(4096)
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
def test_remove_vertex_removes_edges_and_returns_neighbors(directed: bool, history: Edges, row: int) -> None:
    links = create_links(4096, directed=directed)
    apply(links, history, directed=directed)
    known = neighbors(links, row)
    shares = [links.weight[queries.find_slot(links, u, row)] / links.strength[u] for u in known]
    others = {u: [v for v in neighbors(links, u) if v != row] for u in range(ROWS) if u != row}
    pointing = sum(queries.has_edge(links, row, u, directed) for u in range(ROWS))
    pointing += sum(queries.has_edge(links, u, row, directed) for u in range(ROWS)) if directed else 0
    left = links.allocator[EDGE_COUNT] - pointing

    touched, lost_share = np.empty(len(known), np.int64), np.empty(len(known))
    kernels.remove_vertex(links, row, touched, lost_share, directed)
    assert touched.tolist() == known
    assert lost_share == pytest.approx(shares)
    assert {u: neighbors(links, u) for u in others} == others
    assert links.allocator[EDGE_COUNT] == left
    assert (links.degree[row], links.size_class[row], links.strength[row], links.in_strength[row]) == (
        0,
        NO_BLOCK,
        0,
        0,
    )
    for u, around in others.items():
        weights = [links.weight[queries.find_slot(links, u, v)] for v in around]
        assert links.strength[u] == sum(map(float, weights))


def test_resize_keeps_slots_and_frees_old_block() -> None:
    links = create_links(64, directed=True)
    apply(links, [(ADD, 0, 3, 1.0), (ADD, 5, 0, 2.0)], directed=True)
    before, old = neighbors(links, 0), links.begin[0]
    kernels._resize(links, 0, 4, True)
    slots = slice(links.begin[0], links.begin[0] + 2)
    assert (links.size_class[0], neighbors(links, 0)) == (4, before)
    assert (links.weight[slots].tolist(), links.outgoing[slots].tolist()) == ([1.0, 2.0], [1.0, 0.0])
    assert links.allocator[1] == old


def test_remove_slot_keeps_order_and_shrinks_block() -> None:
    links = create_links(256)
    apply(links, [(ADD, 0, v, float(v)) for v in range(1, ROWS)])
    assert links.size_class[0] == 3
    for removed, left, size_class in [
        (3, [1, 2, 4, 5], 3),
        (1, [2, 4, 5], 3),
        (5, [2, 4], 2),
        (4, [2], 1),
        (2, [], NO_BLOCK),
    ]:
        kernels._remove_slot(links, 0, queries.find_slot(links, 0, removed), False)
        assert (neighbors(links, 0), links.size_class[0], links.strength[0]) == (left, size_class, sum(left))


def test_remove_slot_without_smaller_block_keeps_block() -> None:
    links = create_links(8, rows=9)
    links.size_class[0], links.degree[0], links.allocator[ARENA_TOP] = 3, 3, 8
    links.neighbor[:3], links.weight[:3] = [1, 2, 3], 1
    kernels._remove_slot(links, 0, 0, False)
    assert (neighbors(links, 0), links.size_class[0]) == ([2, 3], 3)


def test_recompute_strength_sums_in_slot_order() -> None:
    links = create_links(64)
    weights = [1e8, 1e-3, 3.0, 1e-3]
    apply(links, [(ADD, 0, v, w) for v, w in enumerate(weights, 1)])
    expected = 0.0
    for weight in np.array(weights, np.float32):
        expected += float(weight)
    links.strength[0] = 0
    kernels._recompute_strength(links, 0)
    assert links.strength[0] == expected


def test_fits_requires_room_to_double_both_blocks() -> None:
    links = create_links(8)
    assert kernels._fits(links, 0, 1)
    links.allocator[ARENA_TOP] = 1
    assert not kernels._fits(links, 0, 1)
    links.allocator[ARENA_TOP] = 0
    links.size_class[0] = 1
    assert not kernels._fits(links, 0, 1)


weighted_edges = st.lists(
    st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS - 1), st.sampled_from([1e-30, 0.1, 1.0, 3e5, 1e30])),
    max_size=30,
)


def create_adjacency(history: list[tuple[int, int, float]], directed: bool) -> Adjacency:
    adjacency = Adjacency(directed=directed)
    adjacency.ensure_rows(ROWS)
    pairs = np.array([edge[:2] for edge in history], np.int64).reshape(-1, 2)
    weight = np.array([edge[2] for edge in history], np.float32)
    adjacency.apply(np.zeros(len(history), np.int8), pairs, weight)
    return adjacency


@settings(max_examples=60, deadline=None)
@given(history=weighted_edges, directed=st.booleans(), halvings=st.sampled_from([0, 1, 20, 90, 500]))
def test_scale_weights_power_of_two_scales_exactly_down_to_minimum(
    history: list[tuple[int, int, float]], directed: bool, halvings: int
) -> None:
    adjacency = create_adjacency(history, directed)
    slots, before = adjacency.slots(), adjacency.copy()
    adjacency.scale_weights(0.5**halvings)
    for name in ("outgoing", "incoming") if directed else ("weight",):
        old, new = getattr(before.links, name)[slots], getattr(adjacency.links, name)[slots]
        expected = np.where(old > 0, np.maximum(old.astype(np.float64) * 0.5**halvings, kernels.MIN_WEIGHT), 0.0)
        assert np.array_equal(new, expected.astype(np.float32))
    adjacency.check()


@pytest.mark.parametrize("directed", [False, True])
def test_scale_weights_without_clamping_scales_strengths_exactly(directed: bool) -> None:
    adjacency = create_adjacency([(u, (u + k) % ROWS, 1 / (u + k)) for u in range(ROWS) for k in (1, 2)], directed)
    strength = adjacency.links.strength.copy(), adjacency.links.in_strength.copy()
    adjacency.scale_weights(2.0**-20)
    assert np.array_equal(adjacency.links.strength * 2.0**20, strength[0])
    assert np.array_equal(adjacency.links.in_strength * 2.0**20, strength[1])
    adjacency.check()
