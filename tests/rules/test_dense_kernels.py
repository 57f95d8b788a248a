"""Products of rows with small matrices against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.rules._dense_kernels import ROWS_AT_ONCE, add_products, multiply_rows

DIM = 23


@pytest.mark.parametrize("inputs", [(0, DIM), (3, 3), (2, 9), (20, 23)])
@pytest.mark.parametrize("outputs", [(0, DIM), (5, 6), (16, 23)])
def test_multiply_rows_equals_matrix_product(inputs: tuple[int, int], outputs: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows, matrix = (rng.standard_normal((size, DIM)).astype(np.float32) for size in (ROWS_AT_ONCE, DIM))
    result = np.full((ROWS_AT_ONCE, DIM), 7, np.float32)
    multiply_rows(rows, matrix, inputs, outputs, result)
    i, j = slice(*inputs), slice(*outputs)
    expected = np.full((ROWS_AT_ONCE, DIM), 7.0)
    expected[:, j] = rows[:, i].astype(np.float64) @ matrix[i, j]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_multiply_rows_does_not_depend_on_the_other_rows() -> None:
    rng = np.random.default_rng(1)
    rows, matrix = (rng.standard_normal((size, DIM)).astype(np.float32) for size in (ROWS_AT_ONCE, DIM))
    results = np.zeros((3, ROWS_AT_ONCE, DIM), np.float32)
    multiply_rows(rows, matrix, (0, DIM), (0, DIM), results[0])
    multiply_rows(rows[::-1].copy(), matrix, (0, DIM), (0, DIM), results[1])
    for first in range(0, DIM, 5):  # nor on how the columns are divided
        multiply_rows(rows, matrix, (0, DIM), (first, min(first + 5, DIM)), results[2])
    np.testing.assert_array_equal(results[1][::-1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize("rows", [0, 1, 4, 11, 64])
@pytest.mark.parametrize("columns", [(0, DIM), (4, 10), (7, 7)])
@pytest.mark.parametrize("upper", [False, True])
def test_add_products_adds_to_the_columns_of_a_view(rows: int, columns: tuple[int, int], upper: bool) -> None:
    rng = np.random.default_rng(rows)
    left, right, total = (rng.standard_normal((size, DIM)) for size in (rows, rows, DIM))
    before, expected, part = total.copy(), total.copy(), slice(*columns)
    expected[part, part] += left[:, part].T @ right[:, part]
    add_products(left, right, columns, upper, total)
    complete = np.triu if upper else np.asarray
    np.testing.assert_allclose(complete(total), complete(expected), rtol=1e-12, atol=1e-12)
    before[part, part] = total[part, part]
    np.testing.assert_array_equal(total, before)


def test_add_products_sums_rows_in_order() -> None:
    """Two calls with a part of the rows each give the same bits as one, so slices may be added one by one."""
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((2, 30, DIM))
    once, twice = np.zeros((2, DIM, DIM))
    add_products(left, right, (0, DIM), False, once)
    for part in (slice(0, 7), slice(7, 30)):
        add_products(left[part].copy(), right[part].copy(), (0, DIM), False, twice)
    np.testing.assert_array_equal(once, twice)
