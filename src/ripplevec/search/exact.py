"""Exact nearest-neighbor search by cosine: one pass over blocks of rows, the same bits for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.search._kernels import collect_best
from ripplevec.util.numba_intrinsics import widen_half
from ripplevec.util.parallel import block_ranges, for_each_block, resolve_threads
from ripplevec.views._kernels import ViewScaling

ROWS_PER_BLOCK = 4096
MAX_PENDING_CANDIDATES = 2**22
"""Maximum number of (cosine, row) pairs waiting to be merged; bounds the memory of a search."""


def nearest(
    rows: NDArray[np.floating[Any]],
    alive: NDArray[np.uint8 | np.bool_],
    queries: NDArray[np.floating[Any]],
    scaling: ViewScaling,
    count: int,
    exclude: NDArray[np.int64] | None = None,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the `count` rows with the highest cosine per query, as (rows, cosines); ties in ascending row order.

    Only rows flagged in `alive` are considered. Rows are in internal coordinates and are scaled by `scaling` before the
    comparison; queries must already be scaled (see `Query.internal`). Rows and queries without a direction (zero or
    not finite) have no neighbors. `exclude` is one row per query to leave out, −1 for none. If fewer than `count` rows
    are found, the result is padded with row −1 and cosine 0.
    """
    _check(rows, alive, queries, scaling, count)
    is_alive, excluded = np.asarray(alive, np.bool_), _check_exclusions(exclude, len(queries))
    unit_queries = normalize_queries(queries).astype(widen_half(rows[:0]).dtype)
    found = np.full((len(queries), count), -1, np.int64)
    cosines = np.zeros((len(queries), count), np.float32)
    nonzero = np.flatnonzero(unit_queries.any(axis=1))
    per_query = min(count, ROWS_PER_BLOCK) * -(-len(rows) // ROWS_PER_BLOCK)
    for first, last in block_ranges(len(nonzero), max(1, MAX_PENDING_CANDIDATES // max(1, per_query))):
        part = nonzero[first:last]
        best = _search_blocks(
            rows, is_alive, unit_queries[part], excluded[part], scaling, count, resolve_threads(threads)
        )
        width = best[0].shape[1]
        found[part, :width], cosines[part, :width] = best
    return found, cosines


def _search_blocks(
    rows: NDArray[np.floating[Any]],
    alive: NDArray[np.bool_],
    unit_queries: NDArray[np.floating[Any]],
    exclude: NDArray[np.int64],
    scaling: ViewScaling,
    count: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the best rows of normalized queries: a heap per block, then all heaps merged in one order."""
    shape = (len(unit_queries), -(-len(rows) // ROWS_PER_BLOCK), min(count, ROWS_PER_BLOCK, len(rows)))
    cosines, found = np.empty(shape, np.float32), np.empty(shape, np.int64)

    def work(first: int, last: int) -> None:
        block = first // ROWS_PER_BLOCK
        best = found[:, block]
        part = widen_half(rows[first:last])
        collect_best(part, alive[first:last], unit_queries, exclude - first, scaling, cosines[:, block], best)
        best[best >= 0] += first

    for_each_block(work, len(rows), size=ROWS_PER_BLOCK, threads=threads)
    return merge_best(found.reshape(len(unit_queries), -1), cosines.reshape(len(unit_queries), -1), count)


def merge_best(
    found: NDArray[np.int64], cosines: NDArray[np.float32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the best `count` candidates of each query (line), by descending cosine, then ascending row."""
    order = np.lexsort((found, -cosines), axis=-1)[:, :count]
    rows = np.take_along_axis(found, order, axis=1)
    return rows, np.where(rows < 0, np.float32(0), np.take_along_axis(cosines, order, axis=1))


def normalize_queries(queries: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Normalize queries to length one; zero or non-finite queries become zero."""
    finite = np.where(np.isfinite(queries).all(axis=1, keepdims=True), queries, 0.0).astype(np.float64)
    largest = np.abs(finite).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(finite, largest, out=np.zeros_like(finite), where=largest > 0)  # squares cannot overflow
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, length, out=np.zeros_like(scaled), where=length > 0)


def _check_exclusions(exclude: NDArray[np.int64] | None, length: int) -> NDArray[np.int64]:
    excluded = np.full(length, -1, np.int64) if exclude is None else np.asarray(exclude, np.int64)
    if excluded.shape != (length,):
        raise InvalidValueError.of("exclude", f"{length:,} rows, one per query", f"shape {excluded.shape}")
    return excluded


def _check(
    rows: NDArray[np.floating[Any]],
    alive: NDArray[np.uint8 | np.bool_],
    queries: NDArray[np.floating[Any]],
    scaling: ViewScaling,
    count: int,
) -> None:
    """Check shapes: the kernels do not check bounds."""
    if count < 1:
        raise InvalidValueError.of("count", "at least 1", count)
    if alive.shape != (len(rows),):
        raise InvalidValueError.of("alive", f"{len(rows):,} flags, one per row", f"shape {alive.shape}")
    if queries.ndim != 2 or queries.shape[1] != rows.shape[1]:
        raise InvalidValueError.of("queries", f"a matrix of {rows.shape[1]} columns", f"shape {queries.shape}")
    bounds = scaling.bounds
    if bounds[0] != 0 or bounds[-1] != rows.shape[1] or (np.diff(bounds) < 1).any():
        raise InvalidValueError.of("bounds", f"rising boundaries from 0 to {rows.shape[1]}", bounds.tolist())
    if not len(scaling.weights) == len(scaling.flatten) == len(bounds) - 1:
        raise InvalidValueError.of("weights", f"{len(bounds) - 1} weights, one per view", scaling.weights.tolist())
