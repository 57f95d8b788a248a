"""Kernels that write and compare the new rows of a gradual correction, against plain NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from correction_graphs import BOUNDS, DIM, expected_sums, make_engine, random_block
from numpy.typing import NDArray

from ripplevec.rules import _rotation_kernels as kernels
from ripplevec.rules._correction_kernels import SLICE_ROWS, RowRange
from ripplevec.rules._ritz_kernels import Sample
from ripplevec.rules._rotation_kernels import RowTransform, ServedScalings
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views._kernels import ViewScaling

PARTS = [(0, 200), (0, SLICE_ROWS), (64, 150), (199, 200)]


def make_transform(bounds: NDArray[np.int64]) -> RowTransform:
    rng = np.random.default_rng(5)
    shift, matrix = rng.standard_normal(DIM).astype(np.float32), np.zeros((DIM, DIM), np.float32)
    for first, last in pairwise(bounds):
        matrix[first:last, first:last] = rng.standard_normal((last - first, last - first))
    return RowTransform(bounds, shift, matrix)


def transformed(transform: RowTransform, block: NDArray[Any], degree: NDArray[Any]) -> NDArray[np.float64]:
    rows = (block - transform.shift).astype(np.float64) @ transform.matrix
    rows[degree == 0] = 0
    return rows


def make_scalings(bounds: NDArray[np.int64], normalize: bool) -> ServedScalings:
    views = len(bounds) - 1
    old = ViewScaling(bounds, np.linspace(1, 0.5, views), np.full(views, 0.5))
    return ServedScalings(old, ViewScaling(bounds, np.linspace(0.7, 1, views), np.ones(views)), normalize)


def scaled(rows: NDArray[Any], scaling: ViewScaling, normalize: bool) -> NDArray[np.float64]:
    values = rows.astype(np.float64)
    if not normalize:
        return values
    for g, (first, last) in enumerate(zip(scaling.bounds[:-1], scaling.bounds[1:], strict=True)):
        length = np.linalg.norm(values[:, first:last], axis=1, keepdims=True)
        values[:, first:last] *= scaling.weights[g] / np.maximum(length, 1e-30) ** scaling.flatten[g]
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-30)


@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("part", PARTS)
def test_rotate_rows_transforms_in_place_and_adds_sums(bounds: NDArray[np.int64], part: tuple[int, int]) -> None:
    engine, transform, block = make_engine(), make_transform(bounds), random_block(2)
    links, rows, before = engine.graph.adjacency.links, RowRange(*part, 0.5), block.copy()
    sums, totals = np.zeros((4, DIM)), np.zeros(4)
    kernels.rotate_rows(links, transform, rows, block, sums, totals)
    expected = before.astype(np.float64)
    expected[slice(*part)] = transformed(transform, before, links.degree[:200])[slice(*part)]
    np.testing.assert_allclose(block, expected, rtol=1e-4, atol=1e-5)
    expected_values, expected_totals = expected_sums(engine, block, rows)
    np.testing.assert_allclose(sums, expected_values, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(totals, expected_totals, rtol=1e-6)


@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_write_new_rows_transforms_rows_and_finds_the_longest(
    bounds: NDArray[np.int64], part: tuple[int, int], dtype: Any
) -> None:
    engine, transform, block = make_engine(), make_transform(bounds), random_block(2)
    links, target, longest = engine.graph.adjacency.links, np.full((200, DIM), 9, dtype), np.full(len(bounds) - 1, 0.1)
    target_array = VectorStore.as_kernel_array(target)
    kernels.write_new_rows(links, transform, RowRange(*part, 1.0), block, target_array, longest)
    rows = transformed(transform, block, links.degree[:200])[slice(*part)]
    precision = 1e-4 if dtype == np.float32 else 2e-3
    np.testing.assert_allclose(target[slice(*part)], rows, rtol=precision, atol=precision)
    assert (np.delete(target, np.arange(*part), axis=0) == 9).all()
    lengths = [np.linalg.norm(rows[:, first:last], axis=1).max() for first, last in pairwise(bounds)]
    np.testing.assert_allclose(longest, np.maximum(lengths, 0.1), rtol=1e-5)


def test_write_new_rows_reports_a_row_that_is_not_a_number() -> None:
    engine, transform, block = make_engine(), make_transform(BOUNDS[0]), random_block(2)
    links, longest = engine.graph.adjacency.links, np.zeros(1)
    block[np.flatnonzero(links.degree[:200])[5], 1] = np.nan
    kernels.write_new_rows(links, transform, RowRange(0, 200, 1.0), block, np.zeros_like(block), longest)
    assert np.isnan(longest).all()


@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("sample", [(0, 200, SLICE_ROWS), (SLICE_ROWS, 200, 2 * SLICE_ROWS), (128, 150, SLICE_ROWS)])
def test_add_alignment_sums_products_of_scaled_rows(
    bounds: NDArray[np.int64], normalize: bool, sample: tuple[int, int, int]
) -> None:
    new, old, scalings, sums = random_block(1), random_block(2), make_scalings(bounds, normalize), np.zeros((DIM, DIM))
    new[:3] = 0
    kernels.add_alignment(new, old, scalings, Sample(*sample, 1.0), sums)
    first, last, step = sample
    rows = np.concatenate([np.arange(begin, min(begin + SLICE_ROWS, last)) for begin in range(first, last, step)])
    expected = scaled(new[rows], scalings.new, normalize).T @ scaled(old[rows], scalings.old, normalize)
    np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bounds", [np.array([0, 40]), np.array([0, 25, 40])], ids=len)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("part", PARTS)
def test_find_moved_compares_distances_with_the_threshold(
    bounds: NDArray[np.int64], normalize: bool, part: tuple[int, int]
) -> None:
    """Rows that differ in the first columns, in the last ones only, by less than the threshold, and not at all."""
    rng, dim, threshold = np.random.default_rng(0), 40, 0.01
    old, scalings = rng.standard_normal((200, dim)).astype(np.float32), make_scalings(bounds, normalize)
    scalings = scalings._replace(new=scalings.old)
    new = old.copy()
    new[:50] += rng.standard_normal((50, dim)).astype(np.float32)
    new[50:100, -1] += rng.uniform(-0.3, 0.3, 50).astype(np.float32)
    moved = np.zeros(part[1] - part[0], bool)
    axes = np.eye(dim, dtype=np.float32)
    kernels.find_moved(old, new, scalings, axes, RowRange(*part, 1.0), threshold, moved)
    before, after = (scaled(rows, scalings.old, normalize) for rows in (old, new))
    distance = np.linalg.norm(after - before, axis=1)
    assert (distance > threshold).any()
    assert (distance < threshold).any()
    assert not (np.abs(distance - threshold) < 1e-5).any()
    np.testing.assert_array_equal(moved, (distance > threshold)[slice(*part)])


def test_find_moved_scales_old_and_new_rows_differently() -> None:
    rng, scalings = np.random.default_rng(2), make_scalings(np.array([0, 25, 40]), True)
    old = rng.standard_normal((70, 40)).astype(np.float32)
    for part in (slice(0, 25), slice(25, 40)):  # parts of equal length: all rows move by the same distance
        old[:, part] *= 5 / np.linalg.norm(old[:, part], axis=1, keepdims=True)
    new, moved = old * np.repeat(np.float32([2.0, 1.0]), [25, 15]), np.zeros(70, bool)
    distance = np.linalg.norm(scaled(new, scalings.new, True) - scaled(old, scalings.old, True), axis=1)
    exchanged = np.linalg.norm(scaled(new, scalings.old, True) - scaled(old, scalings.new, True), axis=1)
    threshold = float((distance.max() + exchanged.min()) / 2)
    assert distance.max() < threshold < exchanged.min() or exchanged.max() < threshold < distance.min()
    kernels.find_moved(old, new, scalings, np.eye(40, dtype=np.float32), RowRange(0, 70, 1.0), threshold, moved)
    np.testing.assert_array_equal(moved, distance > threshold)


def test_find_moved_rotates_old_rows_by_the_axes() -> None:
    rng = np.random.default_rng(1)
    old = rng.standard_normal((70, 24)).astype(np.float32)
    axes = np.linalg.qr(rng.standard_normal((24, 24)))[0].astype(np.float32)
    new = (old @ axes).astype(np.float32)
    scalings = make_scalings(np.array([0, 24]), False)
    moved = np.zeros(70, bool)
    kernels.find_moved(old, new, scalings, axes, RowRange(0, 70, 1.0), 1e-3, moved)
    assert not moved.any()
    new[33] *= np.float32(1.01)
    kernels.find_moved(old, new, scalings, axes, RowRange(0, 70, 1.0), 1e-3, moved)
    assert np.flatnonzero(moved).tolist() == [33]
