"""Kernels of attributes against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.attributes import _kernels as kernels
from ripplevec.batch import Batch
from ripplevec.graph.graph import Graph

RANDOM = np.random.default_rng(5)
COLUMNS = np.array([4, 0, 7], np.int32)
VALUES = np.array([1.0, 2.0, 5.0], np.float32)


def test_weigh_counts_is_tf_idf_of_length_one() -> None:
    counts = RANDOM.integers(0, 9, 10).astype(np.float64)
    weights = np.empty(3, np.float32)
    kernels.weigh_counts(COLUMNS, VALUES, counts, 12.0, weights)
    expected = VALUES * (np.log(13.0 / (1.0 + counts[COLUMNS])) + 1.0)
    np.testing.assert_allclose(weights, expected / np.linalg.norm(expected), rtol=1e-6)


def test_standardize_subtracts_the_mean_and_a_constant_row_stays_zero() -> None:
    mean, scale = RANDOM.normal(size=3), np.array([1.0, 0.5, 0.0])
    weights = np.empty(3, np.float32)
    kernels.standardize(VALUES, mean, scale, weights)
    expected = (VALUES - mean) * scale
    np.testing.assert_allclose(weights, expected / np.linalg.norm(expected), rtol=1e-6)
    kernels.standardize(mean.astype(np.float32), mean.astype(np.float32).astype(np.float64), scale, weights)
    assert not weights.any()


def test_project_row_and_add_products_are_the_matrix_products() -> None:
    basis, products = RANDOM.normal(size=(2, 10, 4)).astype(np.float32)
    dense = np.zeros(10, np.float32)
    dense[COLUMNS] = VALUES
    part, before = np.empty(4, np.float32), products.copy()
    kernels.project_row(COLUMNS, VALUES, basis, part)
    np.testing.assert_allclose(part, dense @ basis, rtol=1e-5)
    kernels.add_products(COLUMNS, VALUES, part, products)
    np.testing.assert_allclose(products, before + np.outer(dense, part), rtol=1e-5, atol=1e-5)


def test_random_directions_depend_on_the_number_of_the_row_only() -> None:
    rows, later = np.empty((400, 16), np.float32), np.empty((2, 16), np.float32)
    kernels.fill_random_directions(rows, 0, 3, 2.0)
    kernels.fill_random_directions(later, 7, 3, 2.0)
    np.testing.assert_array_equal(later, rows[7:9])
    assert np.linalg.norm(rows, axis=1).mean() == pytest.approx(2.0, rel=0.05)
    assert abs(rows.mean()) < 0.05


def test_mean_of_rows_averages_directions_of_rows_with_attributes() -> None:
    parts, status = RANDOM.normal(size=(4, 3)).astype(np.float32), np.array([1, 1, 0, 2], np.uint8)
    part = np.empty(3, np.float32)
    weights = np.array([1.0, 3.0, 5.0, 5.0], np.float32)
    assert kernels.mean_of_rows(np.arange(4), weights, status, parts, part)
    units = parts / np.linalg.norm(parts, axis=1, keepdims=True)
    np.testing.assert_allclose(part, units[0] + 3 * units[1], rtol=1e-5)
    assert not kernels.mean_of_rows(np.array([2, 3]), weights[2:], status, parts, part)


def test_sums_and_means_over_neighbors_match_the_adjacency_matrix() -> None:
    graph = Graph()
    for _ in graph.apply(Batch.of([0, 0, 0, 1], [1, 2, 3, 2], [1.0, 2.0, 4.0, 1.0])):
        pass
    rows = graph.ids.find_rows(np.arange(4))
    parts = RANDOM.normal(size=(graph.adjacency.capacity, 3)).astype(np.float32)
    status = np.ones(graph.adjacency.capacity, np.uint8)
    status[rows[3]] = 0
    part = np.empty(3, np.float32)
    kernels.sum_of_neighbors(graph.adjacency.links, rows[0], status, parts, 10, part)
    expected = 1 / np.sqrt(7 * 2) * parts[rows[1]] + 2 / np.sqrt(7 * 3) * parts[rows[2]]
    np.testing.assert_allclose(part, expected, rtol=1e-5)
    assert kernels.mean_of_neighbors(graph.adjacency.links, rows[0], status, parts, 10, part)
    units = parts / np.linalg.norm(parts, axis=1, keepdims=True)
    np.testing.assert_allclose(part, units[rows[1]] + 2 * units[rows[2]], rtol=1e-5)
    assert not kernels.mean_of_neighbors(graph.adjacency.links, rows[0], status, parts, 1, part)  # only the latest


def test_join_rows_scales_both_parts_and_keeps_a_missing_part_zero() -> None:
    edge = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]], np.float32)
    parts = np.array([[0.0, 2.0], [5.0, 0.0], [0.0, 0.0]], np.float32)
    joined = np.empty((3, 4), np.float32)
    kernels.join_rows(edge, parts, 0.5, joined)
    length = np.sqrt(1.25)
    expected = [[0.6 / length, 0.8 / length, 0, 0.5 / length], [0, 0, 1, 0], [1, 0, 0, 0]]
    np.testing.assert_allclose(joined, expected, rtol=1e-6)
