"""Kernels of gradual corrections against plain NumPy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from correction_graphs import BOUNDS, DIM, adjacency_matrix, expected_sums, make_engine, make_step, random_block
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.rules import _correction_kernels as kernels
from ripplevec.rules._correction_kernels import MAX_ENTRY, MAX_NEIGHBORS, SLICE_ROWS, FilterStep, RowRange
from ripplevec.rules.correction_workspace import select_columns
from ripplevec.rules.vector_store import VectorStore

RANGES = [(0, 200), (0, SLICE_ROWS), (70, 150), (199, 200)]


@pytest.mark.parametrize("parameters", [{}, {"half_life": 2.0}, {"directed": True}])
@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("part", RANGES)
@pytest.mark.parametrize("forward", [True, False])
def test_filter_rows_equals_dense_recurrence(
    parameters: dict[str, Any], bounds: NDArray[np.int64], part: tuple[int, int], forward: bool
) -> None:
    """Source and target are columns of larger blocks; the other columns stay as they are."""
    engine, step = make_engine(**parameters), make_step(bounds)._replace(first=3)
    unit, links = engine.graph.adjacency.weight_scale.unit, engine.graph.adjacency.links
    assert (unit != 1) == ("half_life" in parameters)
    wide, narrow, rows = random_block(1, columns=DIM + 7), random_block(2), RowRange(*part, 1 / unit)
    sums, totals, others = np.zeros((4, DIM + 7)), np.zeros(4), [0, 1, 2, *range(3 + DIM, DIM + 7)]
    blocks, columns = (wide[:, 3 : 3 + DIM], narrow), (select_columns(wide, 3, DIM), select_columns(narrow, 0, DIM))
    unchanged = wide[:, others].copy()
    (current, target), (source, written) = (blocks, columns) if forward else (blocks[::-1], columns[::-1])
    before = target.copy()
    kernels.filter_rows(links, engine.graph.arrival, step, rows, source, written, sums, totals)
    np.testing.assert_array_equal(wide[:, others], unchanged)
    assert not sums[:, others].any()
    sums = sums[:, 3 : 3 + DIM]

    shift, center, constant = step.per_column.astype(np.float64)
    applied = adjacency_matrix(engine) @ current.astype(np.float64) - np.outer(links.strength[:200], shift) - center
    tau, f0, f1, f2 = (np.repeat(column, np.diff(bounds)) for column in step.per_view.T)
    expected = f0 * applied / (links.strength[:200, None] + tau) + f1 * current + f2 * before - constant
    expected[links.degree[:200] == 0] = 0
    inside = slice(*part)
    np.testing.assert_allclose(target[inside], expected[inside], rtol=1e-4, atol=1e-4)
    outside = np.delete(np.arange(200), np.arange(*part))
    np.testing.assert_array_equal(target[outside], before[outside])
    expected_weighted, expected_totals = expected_sums(engine, target, rows)
    np.testing.assert_allclose(sums, expected_weighted, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(totals, expected_totals, rtol=1e-6)


def test_filter_rows_first_step_ignores_the_target() -> None:
    """The memory of an earlier correction may contain anything: its factor is zero."""
    engine, bounds = make_engine(), BOUNDS[1]
    step = make_step(bounds)
    step.per_view[:, 3] = 0
    results = []
    for content in (0.0, np.nan, np.inf):
        target = np.full((200, DIM), content, np.float32)
        kernels.filter_rows(
            engine.graph.adjacency.links,
            engine.graph.arrival,
            step,
            RowRange(0, 200, 1.0),
            select_columns(random_block(1), 0, DIM),
            select_columns(target, 0, DIM),
            np.zeros((4, DIM)),
            np.zeros(4),
        )
        results.append(target)
    assert np.isfinite(results[0]).all()
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("part", RANGES)
def test_copy_rows_copies_columns_and_fills_the_others_with_noise(dtype: Any, part: tuple[int, int]) -> None:
    engine, columns = make_engine(), np.array([1, -1, 0, 4, -1])
    links, rows = engine.graph.adjacency.links, RowRange(*part, 0.25)
    vectors, block = random_block(3).astype(dtype), np.full((200, DIM), 9, np.float32)
    sums, totals = np.zeros((4, DIM)), np.zeros(4)
    kernel_rows = VectorStore.as_kernel_array(vectors)
    kernels.copy_rows(links, engine.graph.arrival, kernel_rows, columns, 5, rows, block, sums, totals)
    copied, inside = block[slice(*part)], slice(*part)
    active = links.degree[inside] > 0
    np.testing.assert_array_equal(copied[active][:, [0, 2, 3]], vectors[inside][active][:, [1, 0, 4]])
    assert (np.abs(copied[active][:, [1, 4]]) <= 1).all()
    assert not copied[~active].any()
    assert (np.delete(block, np.arange(*part), axis=0) == 9).all()
    expected, expected_totals = expected_sums(engine, block, rows)
    np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(totals, expected_totals, rtol=1e-6)


def test_copy_rows_noise_depends_on_arrival_number_key_and_column() -> None:
    engine, vectors, blocks = make_engine(), random_block(3), []
    links, arrival = engine.graph.adjacency.links, engine.graph.arrival[:200].copy()
    for key, numbers in ((5, arrival), (5, arrival[::-1].copy()), (6, arrival)):
        block = np.zeros((200, DIM), np.float32)
        kernels.copy_rows(
            links,
            numbers,
            vectors,
            np.full(DIM, -1),
            key,
            RowRange(0, 200, 1.0),
            block,
            np.zeros((2, DIM)),
            np.zeros(4),
        )
        blocks.append(block)
    active = links.degree[:200] > 0
    both = active & active[::-1]
    np.testing.assert_array_equal(blocks[1][::-1][both], blocks[0][both])
    assert (blocks[2][active] != blocks[0][active]).mean() > 0.99
    assert np.unique(blocks[0][active]).size > 0.99 * DIM * active.sum()
    assert abs(blocks[0][active].mean()) < 0.1
    assert blocks[0][active].std() == pytest.approx(np.sqrt(1 / 3), abs=0.05)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2 * MAX_ENTRY])
def test_copy_rows_zeroes_unusable_rows(bad: float) -> None:
    engine, vectors, block = make_engine(), random_block(3), np.empty((200, DIM), np.float32)
    row = int(np.flatnonzero(engine.graph.adjacency.links.degree[:200])[0])
    vectors[row, 2] = bad
    sums, totals = np.zeros((4, DIM)), np.zeros(4)
    rows = RowRange(0, 200, 1.0)
    links, arrival = engine.graph.adjacency.links, engine.graph.arrival
    kernels.copy_rows(links, arrival, vectors, np.arange(DIM), 0, rows, block, sums, totals)
    assert not block[row].any()
    assert np.isfinite(block).all()
    np.testing.assert_allclose(sums, expected_sums(engine, block, rows)[0], rtol=1e-4, atol=1e-3)


def test_filter_rows_of_a_hub_reads_an_unbiased_sample() -> None:
    """Of more than `MAX_NEIGHBORS` neighbors a sample is read, and scaled up to the strength of the row."""
    leaves = MAX_NEIGHBORS + 4_000
    model = Embedder(dim=DIM, start_size=10**9)
    model.partial_fit(Batch.of(np.zeros(leaves, int), np.arange(1, leaves + 1)))
    engine = model.engine
    links, hub = engine.graph.adjacency.links, engine.find_row(0)
    assert links.degree[hub] == leaves
    bounds = np.array([0, DIM])
    step = FilterStep(0, bounds, np.array([[1.0, 1.0, 0.0, 0.0]]), np.zeros((3, DIM), np.float32))
    rows = engine.graph.row_count
    for offset in (0.0, 3.0):
        current, target = random_block(4, rows) + np.float32(offset), np.zeros((rows, DIM), np.float32)
        sums, totals = np.zeros((4, DIM)), np.zeros(4)
        source, written = select_columns(current, 0, DIM), select_columns(target, 0, DIM)
        arguments = RowRange(hub, hub + 1, 1.0), source, written, sums, totals
        kernels.filter_rows(links, engine.graph.arrival, step, *arguments)
        exact = np.delete(current, hub, axis=0).mean(axis=0)
        np.testing.assert_allclose(target[hub], exact, atol=6 / np.sqrt(MAX_NEIGHBORS))
        assert (np.abs(target[hub] - exact) > 1e-6).any()  # a sample, not the sum
        again = np.zeros_like(target)
        written = select_columns(again, 0, DIM)
        kernels.filter_rows(links, engine.graph.arrival, step, arguments[0], source, written, sums, totals)
        np.testing.assert_array_equal(again, target)


@pytest.mark.parametrize("with_known", [False, True])
@pytest.mark.parametrize("storage", [np.float32, np.uint16])
def test_queue_moved_zeroes_new_rows_and_queues_each_row_once(with_known: bool, storage: Any) -> None:
    rng = np.random.default_rng(0)
    arrival, marked, queue = np.arange(50), np.zeros(50, np.uint8), np.full(300, -1)
    blocks = [np.ones((50, DIM), dtype) for dtype in (np.float32, np.float32, storage)]
    marked[[3, 4, 45]] = 1  # the vertex that was in row 45 is in the queue; a new one replaces it
    expected, in_queue, zeroed, length = list[int](), {3, 4, 45}, set[int](), 0
    for first_new in (44, 46, 49, 100):
        rows = rng.integers(0, 50, 12)
        rows[[2, 7]] = 45
        length = kernels.queue_moved(rows, arrival, first_new, with_known, *blocks, marked, queue, length)
        new = {row for row in rows.tolist() if row >= first_new}
        in_queue -= new
        for row in rows.tolist():
            if row not in in_queue and (with_known or row in new):
                expected.append(row)
                in_queue.add(row)
        zeroed |= new
        assert queue[:length].tolist() == expected
        assert set(np.flatnonzero(marked)) == in_queue
        for block in blocks:
            assert set(np.flatnonzero(~block.any(axis=1)).tolist()) == zeroed
    assert (queue[length:] == -1).all()
