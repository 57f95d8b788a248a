"""Kernels of the addition of edges in bulk compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import Op
from ripplevec.graph import _bulk_edge_kernels as kernels
from ripplevec.graph._block_kernels import ARENA_TOP, MAX_SIZE_CLASS, NO_INDEX
from ripplevec.graph._bulk_edge_kernels import BlockMoves, EdgeBatch
from ripplevec.graph.adjacency import Adjacency

operations = st.lists(
    st.tuples(st.sampled_from([Op.ADD, Op.VERTEX]), st.integers(0, 40), st.integers(0, 40)), min_size=1
)


def create_batch(rows: list[tuple[Any, int, int]]) -> EdgeBatch:
    op, src, dst = (np.array(column) for column in zip(*rows, strict=True))
    pairs = np.stack([src, dst], axis=1).astype(np.int64)
    return EdgeBatch(op.astype(np.int8), pairs, np.ones(len(rows), np.float32), np.zeros((len(rows), 2)))


def reference_endpoints(batch: EdgeBatch) -> NDArray[np.int64]:
    """Return the endpoints of edges sorted by row, then by operation."""
    codes = np.arange(2 * len(batch.op)).reshape(-1, 2)
    chosen = (batch.op == Op.ADD) & (batch.pairs[:, 0] != batch.pairs[:, 1])
    return np.sort(((batch.pairs << kernels.CODE_BITS) | codes)[chosen].reshape(-1))


def sort_endpoints(batch: EdgeBatch, shift: int) -> NDArray[np.int64]:
    """Sort with the kernels, in two parts of the batch."""
    middle, last, buckets = len(batch.op) // 2, len(batch.op), (40 >> shift) + 1
    counts = np.zeros((2, buckets), np.int64)
    kernels.count_endpoints(batch, 0, middle, shift, counts[0])
    kernels.count_endpoints(batch, middle, last, shift, counts[1])
    bounds = np.append(0, np.cumsum(counts.sum(axis=0)))
    endpoints = np.empty(bounds[-1], np.int64)
    offsets = np.stack([bounds[:-1], bounds[:-1] + counts[0]])
    kernels.scatter_endpoints(batch, middle, last, shift, offsets[1], endpoints)
    kernels.scatter_endpoints(batch, 0, middle, shift, offsets[0], endpoints)
    kernels.sort_buckets(endpoints, bounds, shift)
    return endpoints


@given(rows=operations, shift=st.integers(0, 7))
def test_sorted_endpoints_random_batch_match_numpy(rows: list[tuple[Any, int, int]], shift: int) -> None:
    batch = create_batch(rows)
    np.testing.assert_array_equal(sort_endpoints(batch, shift), reference_endpoints(batch))
    loops = kernels.count_endpoints(batch, 0, len(rows), shift, np.zeros(41, np.int64))
    assert loops == sum(op == Op.ADD and src == dst for op, src, dst in rows)


@given(known=operations, rows=operations)
def test_plan_moves_random_batch_wants_the_smallest_block_that_fits(
    known: list[tuple[Any, int, int]], rows: list[tuple[Any, int, int]]
) -> None:
    adjacency, before, batch = Adjacency(), create_batch(known), create_batch(rows)
    adjacency.ensure_rows(41)
    adjacency.apply(before.op, before.pairs, before.weight)
    planned = dict(zip(*kernels.plan_moves(adjacency.links, batch.pairs, sort_endpoints(batch, 3)), strict=True))
    edges = {tuple(pair) for part in (before, batch) for pair in part.pairs[part.op == Op.ADD].tolist()}
    for row in range(41):
        neighbors = {v for u, v in edges if u == row} | {u for u, v in edges if v == row}
        degree, size_class = len(neighbors - {row}), int(adjacency.links.size_class[row])
        wanted = max(size_class, int(np.ceil(np.log2(max(degree, 2)))) if degree else size_class)
        assert planned.get(row, size_class) == wanted


def create_moves(rows: list[int], size_classes: list[int]) -> BlockMoves:
    numbers = np.array(rows, np.int64)
    return BlockMoves(numbers, np.array(size_classes, np.int8), np.empty_like(numbers), np.empty_like(numbers))


def test_reserve_blocks_full_arena_stops_and_resumes() -> None:
    adjacency = Adjacency()
    adjacency.ensure_rows(3)
    moves = create_moves([0, 1, 2], [3, 9, 2])
    adjacency._grow_arena(0)
    allocator = adjacency.links.allocator
    allocator[ARENA_TOP] = adjacency.links.neighbor.size - 8
    assert kernels.reserve_blocks(adjacency.links, moves, 0) == 1
    assert allocator[MAX_SIZE_CLASS] == 9, "the arena grows by enough for the block that did not fit"
    adjacency._grow_arena()
    assert kernels.reserve_blocks(adjacency.links, moves, 1) == 3
    assert np.diff(moves.begin).tolist() == [1 << 3, 1 << 9]
    assert (moves.index_begin == NO_INDEX).all()


@pytest.mark.parametrize("directed", [False, True])
def test_free_left_blocks_are_reused(directed: bool) -> None:
    adjacency = Adjacency(directed=directed)
    adjacency.ensure_rows(8)
    pairs = np.array([[0, 1], [0, 2]])
    adjacency.apply(np.zeros(2, np.int8), pairs, np.ones(2, np.float32))
    left = int(adjacency.links.begin[0])
    batch = create_batch([(Op.ADD, 0, v) for v in (3, 4)])
    endpoints = sort_endpoints(batch, 0)
    moves = create_moves(*(part.tolist() for part in kernels.plan_moves(adjacency.links, batch.pairs, endpoints)))
    assert kernels.reserve_blocks(adjacency.links, moves, 0) == moves.rows.size
    kernels.add_endpoints(adjacency.links, batch, endpoints, moves, adjacency.duplicate_policy, directed)
    kernels.free_left_blocks(adjacency.links, moves)
    assert adjacency.neighbors(0).tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(batch.changed_share, [[1 / 3, 1], [1 / 4, 1]])
    adjacency.check()
    adjacency.apply(np.zeros(1, np.int8), np.array([[5, 6]]), np.ones(1, np.float32))
    assert left in adjacency.links.begin[5:7]
