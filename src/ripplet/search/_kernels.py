"""The inner loops of exact search: a row as it is served, its cosines, the best of a block.

The two smallest are inlined: called once per row and query, a call costs as much as the product itself.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True, inline="always")
def sum_by_halving(work: NDArray[np.floating], width: int) -> float:
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


@njit(cache=True, nogil=True, inline="always")
def dot(first: NDArray[np.floating], second: NDArray[np.floating], work: NDArray[np.floating]) -> float:
    """The product of two vectors of one type."""
    for column in range(len(first)):
        work[column] = first[column] * second[column]
    return sum_by_halving(work, len(first))


@njit(cache=True, nogil=True)
def weigh_parts(
    row: NDArray[np.floating],
    groups: NDArray[np.int64],
    weights: NDArray[np.float64],
    out: NDArray[np.floating],
    squares: NDArray[np.float64],
) -> float:
    """Write every part of a row as unit(part) · weight and return the length of the whole, 0 without a direction."""
    for column in range(len(row)):
        value = np.float64(row[column])
        squares[column] = value * value
    total = 0.0
    for group in range(len(weights)):
        first, last = groups[group], groups[group + 1]
        part, target = row[first:last], out[first:last]
        squared = sum_by_halving(squares[first:last], last - first)
        # Outside this range (never float32, unless infinite or NaN) the square is no longer exact: no direction.
        if 1e-300 < squared < 1e300:
            scale = weights[group] / math.sqrt(squared)
            total += weights[group] * weights[group]
            for column in range(len(part)):
                target[column] = part[column] * scale
        else:
            target[:] = 0.0
    return math.sqrt(total)


@njit(cache=True, nogil=True)
def serve(
    rows: NDArray[np.floating],
    groups: NDArray[np.int64],
    weights: NDArray[np.float64],
    out: NDArray[np.floating],
) -> None:
    """Write every row as it is served: unit parts, weighted, unit again; zero without a direction."""
    squares = np.empty(rows.shape[1], np.float64)
    for row in range(len(rows)):
        length = weigh_parts(rows[row], groups, weights, out[row], squares)
        if length > 0.0:
            for column in range(rows.shape[1]):
                out[row, column] /= length


@njit(cache=True, nogil=True)
def replace_worst(cosines: NDArray[np.float32], found: NDArray[np.int64], cosine: np.float32, row: int) -> None:
    """Put a row in the place of the worst of a heap: lowest cosine at the top, of equals the highest row."""
    place, child = 0, 1
    while child < len(cosines):
        other = child + 1
        if other < len(cosines) and (
            cosines[other] < cosines[child] or (cosines[other] == cosines[child] and found[other] > found[child])
        ):
            child = other
        # Rows come in ascending order, so of equals the one already there is the better.
        if cosines[child] >= cosine:
            break
        cosines[place], found[place] = cosines[child], found[child]
        place, child = child, 2 * child + 1
    cosines[place], found[place] = cosine, row


@njit(cache=True, nogil=True)
def best_of_block(
    rows: NDArray[np.floating],
    alive: NDArray[np.bool_],
    served: NDArray[np.floating],
    exclude: NDArray[np.int64],
    groups: NDArray[np.int64],
    weights: NDArray[np.float64],
    cosines: NDArray[np.float32],
    found: NDArray[np.int64],
) -> None:
    """Fill, per served query, a heap of the best rows of one block; rows are counted from the block's first."""
    parts = np.empty(rows.shape[1], served.dtype)
    work, squares = np.empty(rows.shape[1], served.dtype), np.empty(rows.shape[1], np.float64)
    cosines[:], found[:] = -np.inf, -1
    for row in range(len(rows)):
        if not alive[row]:
            continue
        length = weigh_parts(rows[row], groups, weights, parts, squares)
        if length == 0.0:
            continue
        for query in range(len(served)):
            cosine = np.float32(min(1.0, max(-1.0, dot(parts, served[query], work) / length)))
            if cosine > cosines[query, 0] and row != exclude[query]:
                replace_worst(cosines[query], found[query], cosine, row)
