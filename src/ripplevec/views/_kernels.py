"""Numba kernels of the view operator W = (D+τ)⁻¹(A − (1/n) 1 dᵀ), and of the scaling of served vectors.

The operator is never stored as a matrix: the kernels read the neighbor lists in the adjacency arena.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES, allocation_free, kernel, prefetch

PREFETCH_DISTANCE = 8  # neighbors whose rows are prefetched; with more, prefetched rows would evict each other
FLOATS_PER_LINE = CACHE_LINE_BYTES // 4
SLOTS_PER_LINE = CACHE_LINE_BYTES // 8


class ViewScaling(NamedTuple):
    """Scaling of served vectors: a view's part becomes weight · part / |part|^flatten, then the row is normalized."""

    bounds: NDArray[np.int64]  # view g has columns bounds[g] … bounds[g+1]−1
    weights: NDArray[np.float64]
    flatten: NDArray[np.float64]


class StridedColumns(NamedTuple):
    """Adjacent columns of a row-major matrix, as a flat array from their first entry to their last."""

    flat: NDArray[np.floating]
    stride: int  # entries from one row to the next
    width: int  # number of columns


class RefreshCoefficients(NamedTuple):
    """Coefficients of the local step, constant between anchors.

    Packed into three arrays because every array argument costs time in each kernel call.
    """

    bounds: NDArray[np.int64]  # view g has columns bounds[g] … bounds[g+1]−1
    per_view: NDArray[np.float64]  # a row per view: τ, largest eigenvalue μ₁, ridge ρ, length bound B, B / √columns
    per_column: NDArray[np.float32]  # two rows: μ/μ₁ (bounded below), and the center c


@kernel(inline="always")
def get_row(columns: StridedColumns, row: int) -> NDArray[np.floating]:
    """Return one row as a slice of the flat array."""
    first = row * columns.stride
    return columns.flat[first : first + columns.width]


@kernel(inline="always")
def prefetch_neighbor_rows(links: Links, source: StridedColumns, first: int, last: int) -> None:
    """Prefetch the source rows of the neighbors in slots first … last−1."""
    for slot in range(first, last):
        row = np.int64(links.neighbor[slot]) * source.stride
        for column in range(0, source.width, FLOATS_PER_LINE):
            prefetch(source.flat, row + column, 0)


@kernel(inline="always")
def prefetch_slots(links: Links, row: int) -> None:
    """Prefetch the first slots of a neighbor list."""
    for slot in range(links.begin[row], links.begin[row] + min(links.degree[row], 3 * SLOTS_PER_LINE), SLOTS_PER_LINE):
        prefetch(links.neighbor, slot, 0)


@kernel
def combine(
    links: Links,
    source: StridedColumns,
    center: NDArray[np.float64],
    tau: float,
    factors: tuple[float, float, float],
    target: StridedColumns,
    first: int,
    last: int,
) -> None:
    """Compute target ← f₀ · W source + f₁ · source + f₂ · target for rows first … last−1.

    Rows without edges become zero. A row of the target depends only on its own old value, so the three-term
    recurrence of a Chebyshev filter needs no third matrix. Prefetching has three stages: the slots of the row after
    the next, the first neighbor rows of the next row, and neighbor rows further along in the current list.
    """
    total = np.empty(source.width, source.flat.dtype)
    kind = source.flat.dtype.type
    source_factor, target_factor = kind(factors[1]), kind(factors[2])
    shift = center.astype(source.flat.dtype)
    for row in range(first, last):
        if row + 2 < last:
            prefetch_slots(links, row + 2)
            following = links.begin[row + 1]
            prefetch_neighbor_rows(links, source, following, following + min(links.degree[row + 1], PREFETCH_DISTANCE))
        count, written = links.degree[row], get_row(target, row)
        if count == 0:
            written[:] = 0
            continue
        total[:] = 0
        slot, end = links.begin[row], links.begin[row] + count
        while slot + 4 <= end:  # unrolled by four: the sums are loaded and stored a quarter as often
            prefetch_neighbor_rows(links, source, slot + PREFETCH_DISTANCE, min(slot + PREFETCH_DISTANCE + 4, end))
            a, p = links.weight[slot], get_row(source, links.neighbor[slot])
            b, q = links.weight[slot + 1], get_row(source, links.neighbor[slot + 1])
            c, r = links.weight[slot + 2], get_row(source, links.neighbor[slot + 2])
            d, s = links.weight[slot + 3], get_row(source, links.neighbor[slot + 3])
            for j in range(total.size):
                total[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j])
            slot += 4
        for rest in range(slot, end):
            a, p = links.weight[rest], get_row(source, links.neighbor[rest])
            for j in range(total.size):
                total[j] += a * p[j]
        step_factor, own = kind(factors[0] / (links.strength[row] + tau)), get_row(source, row)
        for j in range(total.size):
            step = (total[j] - shift[j]) * step_factor
            written[j] = step + source_factor * own[j] + target_factor * written[j]


@kernel
def multiply_vector(
    links: Links, source: NDArray[np.float64], target: NDArray[np.float64], first: int, last: int
) -> None:
    """Compute target ← A source for one column, with two independent partial sums to shorten the dependency chain."""
    for row in range(first, last):
        if row + 2 * PREFETCH_DISTANCE < last:
            prefetch_slots(links, row + 2 * PREFETCH_DISTANCE)
            for slot in range(
                links.begin[row + PREFETCH_DISTANCE],
                links.begin[row + PREFETCH_DISTANCE] + min(links.degree[row + PREFETCH_DISTANCE], FLOATS_PER_LINE),
            ):
                prefetch(source, links.neighbor[slot], 0)
        slot, end = links.begin[row], links.begin[row] + links.degree[row]
        even = odd = 0.0
        while slot + 2 <= end:
            even += links.weight[slot] * source[links.neighbor[slot]]
            odd += links.weight[slot + 1] * source[links.neighbor[slot + 1]]
            slot += 2
        if slot < end:
            even += links.weight[slot] * source[links.neighbor[slot]]
        target[row] = even + odd


@kernel
def sum_weighted_rows(
    links: Links, source: StridedColumns, tau: float, first: int, last: int, out: NDArray[np.float64]
) -> None:
    """Compute out ← Σ (d+τ) x over rows first … last−1 that have edges, in float64."""
    out[:] = 0
    for row in range(first, last):
        if links.degree[row]:
            share, own = links.strength[row] + tau, get_row(source, row)
            for j in range(out.size):
                out[j] += share * own[j]


@kernel
def subtract_from_rows(links: Links, target: StridedColumns, value: NDArray[np.float64], first: int, last: int) -> None:
    """Subtract one value per column from each row first … last−1 that has edges."""
    for row in range(first, last):
        if links.degree[row]:
            own = get_row(target, row)
            for j in range(value.size):
                own[j] -= value[j]


@kernel
def fill_noise(links: Links, words: NDArray[np.uint64], target: NDArray[np.float32], first: int, last: int) -> None:
    """Fill rows that have edges with hashes in [−1, 1) of the row's random word and the column; zero other rows."""
    for row in range(first, last):
        for j in range(target.shape[1]):
            x = (words[row] ^ (np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
            target[row, j] = (x >> np.uint64(11)) * (2.0 / 9007199254740992.0) - 1.0 if links.degree[row] else 0.0


@kernel(inline="always")
def pairwise_sum(work: NDArray[np.floating], width: int) -> float:
    """Return the sum of the first `width` entries by pairwise summation; overwrites them.

    The long loops carry no running sum, so the compiler can vectorize them without reordering additions.
    """
    while width > 8:
        half = (width + 1) // 2
        for column in range(width - half):
            work[column] += work[half + column]
        width = half
    total = work[0]
    for column in range(1, width):
        total += work[column]
    return float(total)


@allocation_free
def inverse_length_power(squared: float, flatten: float) -> float:
    """Return length^-flatten for a squared length; uses square roots for the common exponents."""
    if flatten == 1.0:
        return 1.0 / math.sqrt(squared)
    if flatten == 0.5:
        return 1.0 / math.sqrt(math.sqrt(squared))
    return squared ** (-0.5 * flatten)


@allocation_free
def scale_view_parts(
    row: NDArray[np.floating], scaling: ViewScaling, out: NDArray[np.floating], squares: NDArray[np.float64]
) -> float:
    """Write each view's part as weight · part / |part|^flatten; return the length of the result, 0 if it is zero."""
    for column in range(len(row)):
        value = np.float64(row[column])
        squares[column] = value * value
    total = 0.0
    for view in range(len(scaling.weights)):
        first, last = scaling.bounds[view], scaling.bounds[view + 1]
        part, target = row[first:last], out[first:last]
        squared = pairwise_sum(squares[first:last], last - first)
        # Outside this range (never reached by finite float32) the square under- or overflows: treat the part as zero.
        if 1e-300 < squared < 1e300:
            scale = scaling.weights[view] * inverse_length_power(squared, scaling.flatten[view])
            total += scale * scale * squared
            for column in range(len(part)):
                target[column] = part[column] * scale
        else:
            target[:] = 0.0
    return math.sqrt(total)


@kernel
def scale_to_unit(rows: NDArray[np.floating], scaling: ViewScaling, out: NDArray[np.floating]) -> None:
    """Scale each view's part of every row, then normalize the row to length one; a zero row stays zero."""
    _scale_to_unit(rows, scaling, out, np.empty(rows.shape[1], np.float64))


@allocation_free
def _scale_to_unit(
    rows: NDArray[np.floating], scaling: ViewScaling, out: NDArray[np.floating], squares: NDArray[np.float64]
) -> None:
    for row in range(len(rows)):
        length = scale_view_parts(rows[row], scaling, out[row], squares)
        if length > 0.0:
            for column in range(rows.shape[1]):
                out[row, column] /= length
