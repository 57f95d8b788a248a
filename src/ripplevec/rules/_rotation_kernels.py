"""Kernels that turn the filtered columns of a gradual correction into new rows, and compare these with the old ones.

They belong to the stages rotate (`rotate_rows`), transform (`write_new_rows`, `add_alignment`) and announce
(`find_moved`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.rules._correction_kernels import SLICE_ROWS, RowRange, add_row, close_slice
from ripplevec.rules._dense_kernels import ROWS_AT_ONCE, add_products, multiply_rows
from ripplevec.rules._ritz_kernels import Sample
from ripplevec.util.numba_intrinsics import allocation_free, as_float, kernel, store_float
from ripplevec.views._kernels import ViewScaling, pairwise_sum, scale_to_unit

COMPARED_COLUMNS = 16  # columns of served vectors that are compared at a time: the first ones decide nearly always


class RowTransform(NamedTuple):
    """Subtract a shift from a row, then multiply each view's part by its block of the matrix."""

    bounds: NDArray[np.int64]  # view g has columns bounds[g] … bounds[g+1]−1
    shift: NDArray[np.float32]
    matrix: NDArray[np.float32]


class ServedScalings(NamedTuple):
    """How rows are scaled to be served, before and after a correction; without `normalize`, they are not scaled."""

    old: ViewScaling
    new: ViewScaling
    normalize: bool


@allocation_free(inner=True)
def _transform_rows(
    links: Links,
    transform: RowTransform,
    rows: RowRange,
    current: NDArray[np.float32],
    deflated: NDArray[np.float32],
    result: NDArray[np.float32],
) -> None:
    """Write up to `ROWS_AT_ONCE` rows, deflated and transformed, to `result`; zero for rows without edges."""
    for q in range(ROWS_AT_ONCE):
        row = rows.first + q
        if row < rows.last and links.degree[row] > 0:
            for j in range(deflated.shape[1]):
                deflated[q, j] = current[row, j] - transform.shift[j]
        else:
            deflated[q] = 0
    for g in range(len(transform.bounds) - 1):
        columns = (transform.bounds[g], transform.bounds[g + 1])
        multiply_rows(deflated, transform.matrix, columns, columns, result)


@kernel
def rotate_rows(
    links: Links,
    transform: RowTransform,
    rows: RowRange,
    current: NDArray[np.float32],
    sums: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Replace rows by deflated and transformed ones, and add up the same sums as a filter step."""
    dim = current.shape[1]
    deflated, result = np.zeros((ROWS_AT_ONCE, dim), np.float32), np.zeros((ROWS_AT_ONCE, dim), np.float32)
    slice_sums = np.zeros(sums.shape, np.float32)
    for first in range(rows.first, rows.last, ROWS_AT_ONCE):
        part = RowRange(first, min(first + ROWS_AT_ONCE, rows.last), rows.per_unit)
        _transform_rows(links, transform, part, current, deflated, result)
        for row in range(first, part.last):
            current[row] = result[row - first]
            if links.degree[row] > 0:
                add_row(links, row, rows.per_unit, current[row], slice_sums, totals)
            close_slice(row, rows.last, slice_sums, sums)


@kernel
def write_new_rows(
    links: Links,
    transform: RowTransform,
    rows: RowRange,
    current: NDArray[np.float32],
    target: NDArray[Any],
    longest: NDArray[np.float64],
) -> None:
    """Write deflated and transformed rows to the target; `longest` becomes the largest length of a part, or NaN."""
    dim = current.shape[1]
    deflated, result = np.zeros((ROWS_AT_ONCE, dim), np.float32), np.zeros((ROWS_AT_ONCE, dim), np.float32)
    squares = np.zeros(dim, np.float32)
    for first in range(rows.first, rows.last, ROWS_AT_ONCE):
        part = RowRange(first, min(first + ROWS_AT_ONCE, rows.last), rows.per_unit)
        _transform_rows(links, transform, part, current, deflated, result)
        for row in range(first, part.last):
            _write_row(result[row - first], transform.bounds, target[row], squares, longest)


@allocation_free(inner=True)
def _write_row(
    new: NDArray[np.float32],
    bounds: NDArray[np.int64],
    written: NDArray[Any],
    squares: NDArray[np.float32],
    longest: NDArray[np.float64],
) -> None:
    for j in range(new.size):
        store_float(written, j, new[j])
        squares[j] = new[j] * new[j]
    for g in range(longest.size):
        begin, end = bounds[g], bounds[g + 1]
        length = np.sqrt(pairwise_sum(squares[begin:end], end - begin))
        if length > longest[g] or np.isnan(length):
            longest[g] = length


@kernel
def scale_slice(
    rows: NDArray[Any], first: int, last: int, scaling: ViewScaling, normalize: bool, scaled: NDArray[np.float32]
) -> None:
    """Write rows, scaled as they are served, to the first rows of `scaled`; the others become zero."""
    for i in range(len(scaled)):
        if first + i < last:
            own = rows[first + i]
            for j in range(scaled.shape[1]):
                scaled[i, j] = as_float(own[j])
        else:
            scaled[i] = 0
    if normalize:
        scale_to_unit(scaled, scaling, scaled)


@kernel
def add_alignment(
    new_rows: NDArray[Any], old_rows: NDArray[Any], scalings: ServedScalings, sample: Sample, sums: NDArray[np.float64]
) -> None:
    """Add Σ new oldᵀ over the scaled rows of a sample to `sums`."""
    dim = new_rows.shape[1]
    scaled, new, old = np.zeros((SLICE_ROWS, dim), np.float32), np.zeros((SLICE_ROWS, dim)), np.zeros((SLICE_ROWS, dim))
    for begin in range(sample.first, sample.last, sample.step):
        last = min(begin + SLICE_ROWS, sample.last)
        scale_slice(new_rows, begin, last, scalings.new, scalings.normalize, scaled)
        new[:] = scaled
        scale_slice(old_rows, begin, last, scalings.old, scalings.normalize, scaled)
        old[:] = scaled
        add_products(new, old, (0, dim), False, sums)


@kernel
def find_moved(
    old_rows: NDArray[Any],
    new_rows: NDArray[Any],
    scalings: ServedScalings,
    axes: NDArray[np.float32],
    rows: RowRange,
    threshold: float,
    moved: NDArray[np.bool_],
) -> None:
    """Write which rows differ by more than the threshold, the old ones multiplied by `axes`, all scaled as served."""
    dim = new_rows.shape[1]
    old, new = np.zeros((SLICE_ROWS, dim), np.float32), np.zeros((SLICE_ROWS, dim), np.float32)
    rotated, squares = np.zeros((ROWS_AT_ONCE, dim), np.float32), np.zeros(ROWS_AT_ONCE)
    for begin in range(rows.first, rows.last, SLICE_ROWS):
        last = min(begin + SLICE_ROWS, rows.last)
        scale_slice(old_rows, begin, last, scalings.old, scalings.normalize, old)
        scale_slice(new_rows, begin, last, scalings.new, scalings.normalize, new)
        for first in range(0, last - begin, ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            _compare_distances(old[part], new[part], axes, threshold**2, rotated, squares)
            for i in range(first, min(first + ROWS_AT_ONCE, last - begin)):
                moved[begin + i - rows.first] = squares[i - first] > threshold**2


@allocation_free(inner=True)
def _compare_distances(
    old: NDArray[np.float32],
    new: NDArray[np.float32],
    axes: NDArray[np.float32],
    enough: float,
    rotated: NDArray[np.float32],
    squares: NDArray[np.float64],
) -> None:
    """Write squared distances of rows; stop at the columns after which all of them are larger than `enough`."""
    dim = new.shape[1]
    squares[:] = 0
    for column in range(0, dim, COMPARED_COLUMNS):
        end, undecided = min(column + COMPARED_COLUMNS, dim), False
        multiply_rows(old, axes, (0, dim), (column, end), rotated)
        for q in range(len(squares)):
            for j in range(column, end):
                difference = rotated[q, j] - new[q, j]
                squares[q] += difference * difference
            undecided |= squares[q] <= enough
        if not undecided:
            return
