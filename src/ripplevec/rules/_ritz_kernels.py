"""Kernels of the Rayleigh–Ritz step of a gradual correction: products of a block's columns with W times the block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.rules._correction_kernels import SLICE_ROWS, FilterStep, RowRange, prefetch_neighbors, sum_neighbors
from ripplevec.rules._dense_kernels import add_products
from ripplevec.util.numba_intrinsics import allocation_free, kernel
from ripplevec.views._kernels import StridedColumns, get_row


class Sample(NamedTuple):
    """Slices of `SLICE_ROWS` rows that begin at first, first + step, … before `last`; `per_unit` as in `RowRange`."""

    first: int
    last: int
    step: int
    per_unit: float


@allocation_free(inner=True)
def apply_operator(
    links: Links,
    arrival: NDArray[np.int64],
    step: FilterStep,
    rows: RowRange,
    current: StridedColumns,
    total: NDArray[np.float32],
    products: NDArray[np.float64],
) -> None:
    """Write x, √(d+τ) · x and (d+τ) · W x of deflated rows x to `products`; zero for rows without edges."""
    shift, center = step.per_column[0], step.per_column[1]
    for row in range(rows.first, rows.last):
        prefetch_neighbors(links, current, row, rows.last)
        own, i = get_row(current, row), row - rows.first
        shifted, weighted, applied = products[0, i], products[1, i], products[2, i]
        if links.degree[row] == 0:
            shifted[:], weighted[:], applied[:] = 0, 0, 0
            continue
        sum_neighbors(links, arrival, current, row, total)
        strength, per_unit = np.float32(links.strength[row]), np.float32(rows.per_unit)
        for g in range(len(step.per_view)):
            root = np.float32(np.sqrt((links.strength[row] + step.per_view[g, 0]) * rows.per_unit))
            for j in range(np.uint64(step.bounds[g]), np.uint64(step.bounds[g + 1])):
                x = own[j] - shift[j]
                shifted[j], weighted[j] = x, root * x
                applied[j] = (total[j] - strength * shift[j] - center[j]) * per_unit


@kernel
def add_quotients(
    links: Links,
    arrival: NDArray[np.int64],
    step: FilterStep,
    sample: Sample,
    current: StridedColumns,
    sums: NDArray[np.float64],
) -> None:
    """Add (d+τ) · x · W x and (d+τ) · x² of a sample to `sums`: their ratio is the Rayleigh quotient of a column."""
    dim = current.width
    total, products = np.zeros(dim, np.float32), np.zeros((3, SLICE_ROWS, dim))
    for begin in range(sample.first, sample.last, sample.step):
        rows = RowRange(begin, min(begin + SLICE_ROWS, sample.last), sample.per_unit)
        apply_operator(links, arrival, step, rows, current, total, products)
        for i in range(rows.last - begin):
            for j in range(dim):
                sums[0, j] += products[0, i, j] * products[2, i, j]
                sums[1, j] += products[1, i, j] * products[1, i, j]


@kernel
def add_projections(
    links: Links,
    arrival: NDArray[np.int64],
    step: FilterStep,
    sample: Sample,
    current: StridedColumns,
    plain_step: int,
    grams: NDArray[np.float64],
) -> float:
    """Add Σ (d+τ) x xᵀ, Σ (d+τ) x (W x)ᵀ and Σ x xᵀ of a sample to `grams`, view by view.

    The first and the third matrix are symmetric, and only their upper triangles are complete. The third one uses only
    slices whose first row is a multiple of `plain_step`; the number of rows with edges in these is returned.

    Sums are in double precision, because filtered columns differ only in a small part of their length.
    """
    dim, active = current.width, 0.0
    total, products = np.zeros(dim, np.float32), np.zeros((3, SLICE_ROWS, dim))
    for begin in range(sample.first, sample.last, sample.step):
        rows = RowRange(begin, min(begin + SLICE_ROWS, sample.last), sample.per_unit)
        apply_operator(links, arrival, step, rows, current, total, products)
        is_plain, size = begin % plain_step == 0, rows.last - begin
        shifted, weighted, applied = products[0, :size], products[1, :size], products[2, :size]
        for g in range(len(step.per_view)):
            columns = (step.bounds[g], step.bounds[g + 1])
            add_products(weighted, weighted, columns, True, grams[0])
            add_products(shifted, applied, columns, False, grams[1])
            if is_plain:
                add_products(shifted, shifted, columns, True, grams[2])
        if is_plain:
            for row in range(begin, rows.last):
                active += links.degree[row] > 0
    return active
