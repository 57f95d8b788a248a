"""Numba kernels of search: cosines with scaled rows, the best rows of a block, and rows that may have moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import kernel
from ripplevec.views._kernels import ViewScaling, pairwise_sum, scale_view_parts


@kernel(inline="always")
def dot(first: NDArray[np.floating], second: NDArray[np.floating], work: NDArray[np.floating]) -> float:
    """Return the dot product of two vectors of one type. Inlined: a call costs as much as the product."""
    for column in range(len(first)):
        work[column] = first[column] * second[column]
    return pairwise_sum(work, len(first))


@kernel
def replace_heap_root(cosines: NDArray[np.float32], rows: NDArray[np.int64], cosine: np.float32, row: int) -> None:
    """Replace the root of a heap, its worst element: the lowest cosine, among equals the highest row."""
    place, child = 0, 1
    while child < len(cosines):
        other = child + 1
        if other < len(cosines) and (
            cosines[other] < cosines[child] or (cosines[other] == cosines[child] and rows[other] > rows[child])
        ):
            child = other
        # Rows come in ascending order, so among equals the one already in the heap is better.
        if cosines[child] >= cosine:
            break
        cosines[place], rows[place] = cosines[child], rows[child]
        place, child = child, 2 * child + 1
    cosines[place], rows[place] = cosine, row


@kernel
def collect_best(
    rows: NDArray[np.floating],
    alive: NDArray[np.bool_],
    queries: NDArray[np.floating],
    exclude: NDArray[np.int64],
    scaling: ViewScaling,
    cosines: NDArray[np.float32],
    found: NDArray[np.int64],
) -> None:
    """Fill one heap per query vector with the best rows of a block; row numbers count from the start of the block."""
    parts = np.empty(rows.shape[1], queries.dtype)
    work, squares = np.empty(rows.shape[1], queries.dtype), np.empty(rows.shape[1], np.float64)
    cosines[:], found[:] = -np.inf, -1
    for row in range(len(rows)):
        if not alive[row]:
            continue
        length = scale_view_parts(rows[row], scaling, parts, squares)
        if length == 0.0:
            continue
        for query in range(len(queries)):
            cosine = np.float32(min(1.0, max(-1.0, dot(parts, queries[query], work) / length)))
            if cosine > cosines[query, 0] and row != exclude[query]:
                replace_heap_root(cosines[query], found[query], cosine, row)


@kernel
def find_stale_rows(
    seen: NDArray[np.int64],
    placed: NDArray[np.uint8],
    indexed: NDArray[np.uint8],
    queued: NDArray[np.uint8],
    since: int,
) -> NDArray[np.int64]:
    """Return the rows whose index entry may be wrong: placed and reached after `since`, or no longer placed."""
    found, kept = np.empty(len(seen), np.int64), 0
    for row in range(len(seen)):
        if seen[row] > since if placed[row] else indexed[row] | queued[row]:
            found[kept] = row
            kept += 1
    return found[:kept]
