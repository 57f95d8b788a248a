"""Addition of the edges of large batches compared with the addition edge by edge, for any number of threads."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import Op
from ripplevec.graph import adjacency as adjacency_module
from ripplevec.graph import bulk_edges
from ripplevec.graph._block_kernels import ARENA_TOP, HUB_SIZE_CLASS
from ripplevec.graph.adjacency import DECAYING_DUPLICATE_POLICIES, Adjacency
from ripplevec.graph.bulk_edges import _divide_buckets

THREADS = (1, 2, 4)
ALWAYS, NEVER = 1, 1 << 40  # values of MIN_BULK_EDGES


class Edges:
    """Operations of a batch."""

    def __init__(self, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32]) -> None:
        self.op, self.pairs, self.weight = op, pairs, weight

    @classmethod
    def random(cls, seed: int, size: int, rows: int, ops: tuple[Op, ...] = (Op.ADD, Op.ADD, Op.VERTEX)) -> Edges:
        """Draw operations, with many duplicates and self-loops, and more of them at low rows."""
        rng = np.random.default_rng(seed)
        pairs = (rng.random((size, 2)) ** 3 * rows).astype(np.int64)
        weight = rng.choice(np.array([0.1, 0.3, 1.0, 7.7], np.float32), size)
        return cls(rng.choice(np.array(ops, np.int8), size), pairs, weight)


def apply(adjacency: Adjacency, edges: Edges, threads: int | None) -> NDArray[np.float64]:
    """Apply a batch in bulk on a number of threads, or edge by edge if None."""
    with patch.object(adjacency_module, "MIN_BULK_EDGES", NEVER if threads is None else ALWAYS):
        return adjacency.apply(edges.op, edges.pairs, edges.weight, threads or 1)


def create_adjacency(rows: int, directed: bool = False, duplicates: str = "add", decays: bool = False) -> Adjacency:
    adjacency = Adjacency(directed=directed, duplicates=duplicates)
    if decays:
        adjacency.duplicate_policy = DECAYING_DUPLICATE_POLICIES[duplicates]
    adjacency.ensure_rows(rows)
    return adjacency


def check_equal(one: Adjacency, other: Adjacency) -> None:
    """Check that two adjacencies have the same content, bit for bit, and that the second is consistent."""
    expected, packed = one.to_packed(), other.to_packed()
    for name, array in expected.items():
        np.testing.assert_array_equal(array, packed[name], err_msg=name)
    assert (one.edge_count, one.self_loop_count) == (other.edge_count, other.self_loop_count)
    other.check()


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=60)
@given(
    seed=st.integers(0, 1 << 20),
    sizes=st.lists(st.integers(1, 120), min_size=1, max_size=6),
    rows=st.integers(1, 90),
    duplicates=st.sampled_from(["add", "ignore", "replace"]),
    decays=st.booleans(),
    buckets=st.sampled_from([1, 4, 4096]),
)
def test_apply_in_bulk_random_history_matches_edge_by_edge(
    directed: bool, seed: int, sizes: list[int], rows: int, duplicates: str, decays: bool, buckets: int
) -> None:
    """Batches alternate: additions, which are added in bulk, and additions with removals, which never are."""
    one_by_one, *bulk = (create_adjacency(rows, directed, duplicates, decays) for _ in (None, *THREADS))
    with patch.object(bulk_edges, "MAX_BUCKETS", buckets):
        for number, size in enumerate(sizes):
            ops = (Op.ADD, Op.REMOVE) if number % 3 == 2 else (Op.ADD, Op.ADD, Op.VERTEX)
            edges = Edges.random(seed + number, size, rows, ops)
            expected = apply(one_by_one, edges, None)
            for adjacency, threads in zip(bulk, THREADS, strict=True):
                np.testing.assert_array_equal(apply(adjacency, edges, threads), expected)
    for adjacency in bulk:
        check_equal(one_by_one, adjacency)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threads", THREADS)
def test_apply_in_bulk_hubs_match_edge_by_edge(directed: bool, threads: int) -> None:
    """Hubs arise in one batch, grow, lose their index, and get it back."""
    rows, hub_degree = 12_000, 1 << HUB_SIZE_CLASS
    one_by_one, bulk = (create_adjacency(rows, directed) for _ in range(2))
    rng = np.random.default_rng(3)
    for number, size in enumerate([3 * hub_degree, 10, 4 * hub_degree, 10, 10]):
        pairs = np.stack([np.tile([0, 1], size // 2), rng.integers(0, rows, size)], axis=1)
        pairs = np.where(rng.random((size, 1)) < 0.5, pairs, pairs[:, ::-1])
        edges = Edges(np.zeros(size, np.int8), np.ascontiguousarray(pairs), np.ones(size, np.float32))
        if number == 3:  # removals free the index and leave the block large enough
            stored = one_by_one.neighbors(0)[:size]
            edges.pairs[:] = np.stack([np.zeros(size, np.int64), stored], axis=1)
            if directed:
                outgoing = one_by_one.has_edges(edges.pairs[:, 0], edges.pairs[:, 1])
                edges.pairs[~outgoing] = edges.pairs[~outgoing, ::-1]
            edges.op[:] = Op.REMOVE
        np.testing.assert_array_equal(apply(bulk, edges, threads), apply(one_by_one, edges, None))
        check_equal(one_by_one, bulk)
    assert bulk.links.degree[0] > hub_degree
    assert (bulk.links.index_begin[:2] >= 0).all()


def test_apply_in_bulk_star_grows_an_empty_arena() -> None:
    leaves = np.arange(1, 50_001)
    adjacency = create_adjacency(leaves.size + 1)
    pairs = np.stack([np.zeros_like(leaves), leaves], axis=1)
    adjacency.apply(np.zeros(leaves.size, np.int8), pairs, np.ones(leaves.size, np.float32), 2)
    np.testing.assert_array_equal(adjacency.neighbors(0), leaves)
    adjacency.check()


@pytest.mark.parametrize("threads", THREADS)
def test_apply_in_bulk_without_edges_changes_only_loop_count(threads: int) -> None:
    adjacency = create_adjacency(3)
    edges = Edges(np.array([Op.ADD, Op.VERTEX], np.int8), np.array([[1, 1], [2, 2]]), np.ones(2, np.float32))
    assert not apply(adjacency, edges, threads).any()
    assert (adjacency.edge_count, adjacency.self_loop_count) == (0, 1)


@pytest.mark.parametrize("duplicates", ["add", "ignore"])
def test_apply_in_bulk_repeated_edge_needs_the_smallest_block(duplicates: str) -> None:
    adjacency = create_adjacency(2, duplicates=duplicates)
    size = 3000
    adjacency.apply(np.zeros(size, np.int8), np.tile([0, 1], (size, 1)), np.ones(size, np.float32))
    assert adjacency.links.allocator[ARENA_TOP] == 2 * 2
    assert adjacency.links.weight[adjacency.slots()].tolist() == ([3000.0] * 2 if duplicates == "add" else [1.0] * 2)


def test_apply_in_bulk_memory_layout_does_not_depend_on_threads() -> None:
    edges = Edges.random(1, 20_000, 4_000)
    first, *others = (create_adjacency(4_000) for _ in THREADS)
    for adjacency, threads in zip((first, *others), THREADS, strict=True):
        apply(adjacency, edges, threads)
    for other in others:
        np.testing.assert_array_equal(first.links.begin, other.links.begin)
        np.testing.assert_array_equal(first.links.allocator, other.links.allocator)


def test_divide_buckets_gives_every_task_about_the_same_work() -> None:
    bounds = np.concatenate([[0], np.cumsum([5, 0, 100, 3, 2, 40, 50])])
    tasks = _divide_buckets(bounds, 3)
    assert (tasks[0], tasks[-1]) == (0, 7)
    assert (np.diff(tasks) > 0).all()
    assert np.diff(bounds[tasks]).max() <= 105
