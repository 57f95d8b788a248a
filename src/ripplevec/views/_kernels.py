"""Kernels of a view's operator W = (D+τ)⁻¹(A − (1/n) 1 dᵀ), over rows of the adjacency arena."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES, prefetch

AHEAD = 8  # neighbors whose rows are asked for before they are needed: more would drive each other out again
FLOATS = CACHE_LINE_BYTES // 4  # of single precision in a line of memory
SLOTS = CACHE_LINE_BYTES // 8  # in a line


class ViewScaling(NamedTuple):
    """How rows are scaled for readers, by view: weight · part / |part|^flatten, side by side, then to length one."""

    bounds: NDArray[np.int64]  # view g has the columns bounds[g] … bounds[g+1]−1
    weights: NDArray[np.float64]
    flatten: NDArray[np.float64]


class StridedColumns(NamedTuple):
    """Neighboring columns of a matrix: what lies between their first entry and their last, row after row."""

    flat: NDArray[np.floating]
    stride: int  # entries from one row to the next
    width: int  # entries of a row


class RefreshCoefficients(NamedTuple):
    """What a refresh needs to know between anchors. Few arrays, because each costs time in every call of a kernel."""

    bounds: NDArray[np.int64]  # view g has the columns bounds[g] … bounds[g+1]−1
    views: NDArray[
        np.float64
    ]  # per view: τ, the largest eigenvalue μ₁, the ridge ρ, the length bound, and that / √columns
    columns: NDArray[np.float32]  # two rows: μ/μ₁ (not below a floor), and the center c


@njit(cache=True, nogil=True, inline="always")
def get_row(columns: StridedColumns, row: int) -> NDArray[np.floating]:
    """One row."""
    first = row * columns.stride
    return columns.flat[first : first + columns.width]


@njit(cache=True, nogil=True, inline="always")
def prefetch_neighbor_rows(links: Links, source: StridedColumns, first: int, last: int) -> None:
    """Have the rows of the neighbors in these slots on their way."""
    for slot in range(first, last):
        row = np.int64(links.neighbor[slot]) * source.stride
        for column in range(0, source.width, FLOATS):
            prefetch(source.flat, row + column, 0)


@njit(cache=True, nogil=True, inline="always")
def prefetch_slots(links: Links, row: int) -> None:
    """Have the first slots of a row on their way."""
    for slot in range(links.begin[row], links.begin[row] + min(links.degree[row], 3 * SLOTS), SLOTS):
        prefetch(links.neighbor, slot, 0)


@njit(cache=True, nogil=True)
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
    """target ← f₀ · W source + f₁ · source + f₂ · target, for the rows first … last−1; rows without edges become 0.

    A row of the target depends on its own old value alone, so the recurrence of a filter needs no third matrix.
    Memory is asked for in stages: the slots of the row after the next, the first neighbors of the next row, those a
    little further on in this row.
    """
    total = np.empty(source.width, source.flat.dtype)
    kind = source.flat.dtype.type
    on_source, on_target = kind(factors[1]), kind(factors[2])
    middle = center.astype(source.flat.dtype)
    for row in range(first, last):
        if row + 2 < last:
            prefetch_slots(links, row + 2)
            following = links.begin[row + 1]
            prefetch_neighbor_rows(links, source, following, following + min(links.degree[row + 1], AHEAD))
        count, written = links.degree[row], get_row(target, row)
        if count == 0:
            written[:] = 0
            continue
        total[:] = 0
        slot, end = links.begin[row], links.begin[row] + count
        while slot + 4 <= end:  # four at a time: the sums are loaded and stored a quarter as often
            prefetch_neighbor_rows(links, source, slot + AHEAD, min(slot + AHEAD + 4, end))
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
        on_step, own = kind(factors[0] / (links.strength[row] + tau)), get_row(source, row)
        for j in range(total.size):
            step = (total[j] - middle[j]) * on_step
            written[j] = step + on_source * own[j] + on_target * written[j]


@njit(cache=True, nogil=True)
def multiply(links: Links, source: NDArray[np.float64], target: NDArray[np.float64], first: int, last: int) -> None:
    """target ← A source for a single column, in two sums that do not wait for each other."""
    for row in range(first, last):
        if row + 2 * AHEAD < last:
            prefetch_slots(links, row + 2 * AHEAD)
            for slot in range(
                links.begin[row + AHEAD], links.begin[row + AHEAD] + min(links.degree[row + AHEAD], FLOATS)
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


@njit(cache=True, nogil=True)
def sum_weighted_rows(
    links: Links, source: StridedColumns, tau: float, first: int, last: int, out: NDArray[np.float64]
) -> None:
    """out ← Σ (d+τ) x over the rows first … last−1 that have edges, in float64."""
    out[:] = 0
    for row in range(first, last):
        if links.degree[row]:
            share, own = links.strength[row] + tau, get_row(source, row)
            for j in range(out.size):
                out[j] += share * own[j]


@njit(cache=True, nogil=True)
def subtract(links: Links, target: StridedColumns, value: NDArray[np.float64], first: int, last: int) -> None:
    """Take one value off every row first … last−1 that has edges."""
    for row in range(first, last):
        if links.degree[row]:
            own = get_row(target, row)
            for j in range(value.size):
                own[j] -= value[j]


@njit(cache=True, nogil=True)
def noise(links: Links, words: NDArray[np.uint64], target: NDArray[np.float32], first: int, last: int) -> None:
    """Fill rows that have edges with hashed numbers in [−1, 1), one word per row and column."""
    for row in range(first, last):
        for j in range(target.shape[1]):
            x = (words[row] ^ (np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
            target[row, j] = (x >> np.uint64(11)) * (2.0 / 9007199254740992.0) - 1.0 if links.degree[row] else 0.0


@njit(cache=True, nogil=True, inline="always")
def pairwise_sum(work: NDArray[np.floating], width: int) -> float:
    """The sum of the first `width` entries, which are used up.

    Its long loops carry no sum, so the compiler may use vector instructions without changing the order of additions.
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


@njit(cache=True, nogil=True)
def inverse_length_power(squared: float, flatten: float) -> float:
    """length^-flatten from the squared length; by square roots where they do."""
    if flatten == 1.0:
        return 1.0 / math.sqrt(squared)
    if flatten == 0.5:
        return 1.0 / math.sqrt(math.sqrt(squared))
    return squared ** (-0.5 * flatten)


@njit(cache=True, nogil=True)
def scale_view_parts(
    row: NDArray[np.floating], scaling: ViewScaling, out: NDArray[np.floating], squares: NDArray[np.float64]
) -> float:
    """Write every view's part as weight · part / |part|^flatten; the length of the whole, 0 without a direction."""
    for column in range(len(row)):
        value = np.float64(row[column])
        squares[column] = value * value
    total = 0.0
    for view in range(len(scaling.weights)):
        first, last = scaling.bounds[view], scaling.bounds[view + 1]
        part, target = row[first:last], out[first:last]
        squared = pairwise_sum(squares[first:last], last - first)
        # Outside this range (never float32, unless infinite or NaN) the square is no longer exact: no direction.
        if 1e-300 < squared < 1e300:
            scale = scaling.weights[view] * inverse_length_power(squared, scaling.flatten[view])
            total += scale * scale * squared
            for column in range(len(part)):
                target[column] = part[column] * scale
        else:
            target[:] = 0.0
    return math.sqrt(total)


@njit(cache=True, nogil=True)
def scale_to_unit(rows: NDArray[np.floating], scaling: ViewScaling, out: NDArray[np.floating]) -> None:
    """Write every row as it is served: its parts scaled, then the whole to length one; zero without a direction."""
    squares = np.empty(rows.shape[1], np.float64)
    for row in range(len(rows)):
        length = scale_view_parts(rows[row], scaling, out[row], squares)
        if length > 0.0:
            for column in range(rows.shape[1]):
                out[row, column] /= length
