"""Kernels of a gradual correction: each processes a few rows of the graph as it is at this moment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.influence._kernels import random_word, sample_slot
from ripplevec.util.numba_intrinsics import allocation_free, as_float, kernel, prefetch
from ripplevec.views._kernels import StridedColumns, get_row, prefetch_neighbor_rows

SLICE_ROWS = 64  # rows that are processed at a time: about a tenth of a millisecond
PREFETCHED_NEIGHBORS = 16  # rows of a vertex's neighbors that are prefetched before it is processed
PREFETCH_AHEAD = 2  # vertices from the one whose neighbors are prefetched to the one that is processed
MAX_NEIGHBORS = 16_384  # of more neighbors, a sample is read: a slice must not take long
MAX_ENTRY = np.float32(2.0**16)  # entries of usable rows are smaller: row lengths are bounded


class FilterStep(NamedTuple):
    """Coefficients of one filter step on adjacent columns: y ← f₀ · W x + f₁ · x + f₂ · y.

    Before, x and y are deflated: a shift is subtracted from their rows.
    """

    first: int  # number of the first column
    bounds: NDArray[np.int64]  # view g has columns bounds[g] … bounds[g+1]−1, counted from the first one
    per_view: NDArray[np.float64]  # a row per view: τ, f₀, f₁, f₂
    per_column: NDArray[np.float32]  # rows: shift of x, center of the deflated x, f₁ · shift of x + f₂ · shift of y


class RowRange(NamedTuple):
    """Rows first … last−1, and the factor that converts stored weights to the weight unit of new edges."""

    first: int
    last: int
    per_unit: float


@allocation_free(forceinline=True)
def prefetch_neighbors(links: Links, block: StridedColumns, row: int, last: int) -> None:
    """Prefetch the neighbors' rows of a row that follows soon, and the slots of the one after it."""
    soon = row + PREFETCH_AHEAD
    if soon + 1 < last:
        prefetch(links.neighbor, links.begin[soon + 1], 0)
        begin = links.begin[soon]
        prefetch_neighbor_rows(links, block, begin, begin + min(links.degree[soon], PREFETCHED_NEIGHBORS))


@allocation_free
def _sum_sample(
    links: Links, arrival: NDArray[np.int64], block: StridedColumns, row: int, total: NDArray[np.float32]
) -> None:
    """Add Σ a·x over a sample of the neighbors to `total`, and scale it up to the strength of the row."""
    sum_a = 0.0
    for i in range(MAX_NEIGHBORS):
        slot = links.begin[row] + sample_slot(uint64(0), arrival[row], i, links.degree[row])
        a, p = links.weight[slot], get_row(block, links.neighbor[slot])
        sum_a += a
        for j in range(total.size):
            total[j] += a * p[j]
    if sum_a > 0:
        scale = np.float32(links.strength[row] / sum_a)
        for j in range(total.size):
            total[j] *= scale


@allocation_free(forceinline=True)
def sum_neighbors(
    links: Links, arrival: NDArray[np.int64], block: StridedColumns, row: int, total: NDArray[np.float32]
) -> None:
    """Write Σ a·x over the neighbors of a row to `total`; over a sample, scaled up, if there are very many."""
    total[:] = 0
    if links.degree[row] > MAX_NEIGHBORS:
        _sum_sample(links, arrival, block, row, total)
        return
    slot, end = links.begin[row], links.begin[row] + links.degree[row]
    while slot + 4 <= end:  # unrolled by four: the total is loaded and stored a quarter as often
        ahead = slot + PREFETCHED_NEIGHBORS
        prefetch_neighbor_rows(links, block, ahead, min(ahead + 4, end))
        a, p = links.weight[slot], get_row(block, links.neighbor[slot])
        b, q = links.weight[slot + 1], get_row(block, links.neighbor[slot + 1])
        c, r = links.weight[slot + 2], get_row(block, links.neighbor[slot + 2])
        d, s = links.weight[slot + 3], get_row(block, links.neighbor[slot + 3])
        for j in range(total.size):
            total[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j])
        slot += 4
    for rest in range(slot, end):
        a, p = links.weight[rest], get_row(block, links.neighbor[rest])
        for j in range(total.size):
            total[j] += a * p[j]


@allocation_free(forceinline=True)
def add_row(
    links: Links,
    row: int,
    per_unit: float,
    values: NDArray[np.float32],
    sums: NDArray[np.float32],
    totals: NDArray[np.float64],
) -> None:
    """Add d·y, y, d·y² and y² to `sums`, and strength, degree, one and strength² to `totals`."""
    strength = np.float32(links.strength[row] * per_unit)
    weighted, plain, weighted_squares, squares = sums[0], sums[1], sums[2], sums[3]
    for j in range(values.size):
        weighted[j] += strength * values[j]
        plain[j] += values[j]
        square = values[j] * values[j]
        weighted_squares[j] += strength * square
        squares[j] += square
    totals[0] += links.strength[row] * per_unit
    totals[1] += links.degree[row]
    totals[2] += 1.0
    totals[3] += (links.strength[row] * per_unit) ** 2


@allocation_free(forceinline=True)
def close_slice(
    row: int, last: int, slice_sums: NDArray[np.float32], sums: NDArray[np.float64], first_column: int = 0
) -> None:
    """After the last row of a slice, add its sums to the others: single precision is enough within a slice."""
    if (row + 1) % SLICE_ROWS == 0 or row + 1 == last:
        for i in range(len(slice_sums)):
            for j in range(slice_sums.shape[1]):
                sums[i, first_column + j] += slice_sums[i, j]
        slice_sums[:] = 0


@kernel
def copy_rows(
    links: Links,
    arrival: NDArray[np.int64],
    vectors: NDArray[np.float32],
    columns: NDArray[np.int64],
    key: int,
    rows: RowRange,
    current: NDArray[np.float32],
    sums: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Copy columns of the vectors to rows of a block; a column −1 is filled with noise.

    A row that has no edges becomes zero, and so does one with an entry that is not finite or too large: no computation
    of this package produces such entries, and a single one would contaminate all other rows.
    """
    _copy_rows(links, arrival, vectors, columns, key, rows, current, np.zeros(sums.shape, np.float32), sums, totals)


@allocation_free
def _copy_rows(
    links: Links,
    arrival: NDArray[np.int64],
    vectors: NDArray[np.float32],
    columns: NDArray[np.int64],
    key: int,
    rows: RowRange,
    current: NDArray[np.float32],
    slice_sums: NDArray[np.float32],
    sums: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    for row in range(rows.first, rows.last):
        written = current[row]
        usable = links.degree[row] > 0
        for j in range(columns.size):
            if columns[j] >= 0:
                written[j] = as_float(vectors[row, columns[j]])
                usable &= abs(written[j]) <= MAX_ENTRY  # false for NaN too
            else:
                word = random_word(uint64(key), uint64(arrival[row]), uint64(j))
                written[j] = (word >> uint64(11)) * (2.0 / 9007199254740992.0) - 1.0
        if not usable:
            written[:] = 0
        if links.degree[row] > 0:
            add_row(links, row, rows.per_unit, written, slice_sums, totals)
        close_slice(row, rows.last, slice_sums, sums)


@kernel
def filter_rows(
    links: Links,
    arrival: NDArray[np.int64],
    step: FilterStep,
    rows: RowRange,
    source: StridedColumns,
    target: StridedColumns,
    sums: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Compute rows of one filter step; a row of the target depends only on its own old value."""
    scratch = np.zeros((1 + len(sums), source.width), np.float32)
    _filter_rows(links, arrival, step, rows, source, target, scratch[0], scratch[1:], sums, totals)


@allocation_free
def _filter_rows(
    links: Links,
    arrival: NDArray[np.int64],
    step: FilterStep,
    rows: RowRange,
    source: StridedColumns,
    target: StridedColumns,
    total: NDArray[np.float32],
    slice_sums: NDArray[np.float32],
    sums: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    shift, center, constant = step.per_column[0], step.per_column[1], step.per_column[2]
    for row in range(rows.first, rows.last):
        prefetch_neighbors(links, source, row, rows.last)
        own, written = get_row(source, row), get_row(target, row)
        if links.degree[row] == 0:
            written[:] = 0
        else:
            sum_neighbors(links, arrival, source, row, total)
            strength = np.float32(links.strength[row])
            for g in range(len(step.per_view)):
                tau, f0, f1, f2 = step.per_view[g]
                scale, of_source, of_target = (
                    np.float32(f0 / (links.strength[row] + tau)),
                    np.float32(f1),
                    np.float32(f2),
                )
                if f2 == 0:  # the first step: the target contains rows of an earlier correction, perhaps not finite
                    written[step.bounds[g] : step.bounds[g + 1]] = 0
                for j in range(np.uint64(step.bounds[g]), np.uint64(step.bounds[g + 1])):
                    applied = total[j] - strength * shift[j] - center[j]
                    written[j] = scale * applied + of_source * own[j] + of_target * written[j] - constant[j]
            add_row(links, row, rows.per_unit, written, slice_sums, totals)
        close_slice(row, rows.last, slice_sums, sums, step.first)


@allocation_free
def queue_moved(
    rows: NDArray[np.int64],
    arrival: NDArray[np.int64],
    first_new: int,
    with_known: bool,
    current: NDArray[np.float32],
    spare: NDArray[np.float32],
    replacing: NDArray[Any],
    marked: NDArray[np.uint8],
    queue: NDArray[np.int64],
    length: int,
) -> int:
    """Zero the new ones of these rows in all blocks; append them, or all rows, to a queue unless they are in it.

    New are the vertices that arrived from `first_new` on. Rows in the queue are marked. Returns its new length.
    """
    for row in rows:
        if arrival[row] >= first_new:
            current[row] = 0
            spare[row] = 0
            replacing[row] = 0
            marked[row] = 0  # of an earlier vertex in this row
    for row in rows:
        if not marked[row] and (with_known or arrival[row] >= first_new):
            marked[row] = 1
            queue[length] = row
            length += 1
    return length
