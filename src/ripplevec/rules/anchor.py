"""The anchor: a global correction of all vectors that keeps served coordinates aligned with the previous ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import RipplevecError
from ripplevec.graph.adjacency import RowArray
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import for_each_block, limit_blas_to_one_thread
from ripplevec.views.aligned_matrix import copy_aligned
from ripplevec.views.base import MIN_EIGENVALUE, Basis, Progress, View
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.operators import (
    SUB_BLOCK_ROWS,
    AdjacencyLike,
    sum_over_blocks,
    weighted_cross_products,
)

MIN_SPECTRUM_RATIO = 0.9  # share of the previously captured spectrum that a correction must capture to be accepted

BlockCopier = Callable[[NDArray[Any], int], NDArray[Any]]
"""Copies rows, on a number of threads, for a view to overwrite; for local rows, `views.aligned_matrix.copy_aligned`."""

BasisSolver = Callable[[Coordinates, AdjacencyLike, int, int], list[Basis]]
"""Embeds the first rows of a graph with every view from scratch, on a number of threads: `bases_from_scratch`."""


_log = logging.getLogger("ripplevec.rules")


class CorrectionError(RipplevecError):
    """An anchor found no usable vectors; the current ones are unchanged."""


def solve_bases(
    old: Coordinates,
    new: Coordinates,
    adjacency: AdjacencyLike,
    vectors: NDArray[Any],
    *,
    seed: int,
    sequence: int,
    threads: int,
    copy: BlockCopier = copy_aligned,
    solve: BasisSolver | None = None,
) -> list[Basis]:
    """Return a basis for every view of the new coordinates, starting from current rows in the old coordinates.

    A result that is not finite, or that has lost much of the spectrum, is replaced by a solution from scratch. If that
    is not usable either, raises `CorrectionError`.
    """
    if new.views != old.views:
        bases = bases_from_other_views(new, adjacency, vectors, seed, threads, copy)
        usable = all(map(basis_is_finite, bases))
    else:
        bases = correct_bases(old, adjacency, vectors, seed, threads, copy)
        usable = preserves_spectrum(old, bases)
    if not usable:
        _log.info("anchor result unusable, solving from scratch: sequence=%d", sequence)
        del bases  # frees memory for the next ones
        bases = (solve or bases_from_scratch)(new, adjacency, len(vectors), threads)
    if not all(map(basis_is_finite, bases)) or (
        sum_eigenvalues(old.mu) > 0 and not any(sum_eigenvalues(basis.mu) > 0 for basis in bases)
    ):
        raise CorrectionError(f"anchor after batch {sequence}: no usable vectors found; the current vectors are kept")
    return bases


def correct_bases(
    coordinates: Coordinates,
    adjacency: AdjacencyLike,
    vectors: NDArray[Any],
    seed: int,
    threads: int,
    copy: BlockCopier = copy_aligned,
) -> list[Basis]:
    """Correct the basis of every view, starting from the current rows."""

    def correct(view: View, part: slice) -> Basis:
        block = copy(vectors[:, part], threads)
        return view.anchor(adjacency, block, coordinates.mu[part], seed=seed, threads=threads)

    return _solve_each_view(coordinates, correct)


def bases_from_other_views(
    coordinates: Coordinates,
    adjacency: AdjacencyLike,
    vectors: NDArray[Any],
    seed: int,
    threads: int,
    copy: BlockCopier = copy_aligned,
) -> list[Basis]:
    """Compute the basis of every view from the rows of other views, using all of their columns."""

    def solve(view: View, part: slice) -> Basis:
        block, columns = copy(vectors, threads), part.stop - part.start
        basis = view.anchor(adjacency, block, None, columns=columns, seed=seed, threads=threads)
        return replace(basis, rows=copy(basis.rows, threads))  # releases the surplus columns

    return _solve_each_view(coordinates, solve)


def bases_from_scratch(
    coordinates: Coordinates, adjacency: AdjacencyLike, rows: int, threads: int, progress: Progress | None = None
) -> list[Basis]:
    """Compute the basis of every view from scratch."""

    def solve(view: View, part: slice) -> Basis:
        return view.start(adjacency, rows, part.stop - part.start, threads=threads, progress=progress)

    return _solve_each_view(coordinates, solve)


def _solve_each_view(coordinates: Coordinates, solve: Callable[[View, slice], Basis]) -> list[Basis]:
    """Return `solve(view, columns of the view)` for every view, with BLAS limited to one thread."""
    with limit_blas_to_one_thread():
        return [solve(view, part) for view, part in zip(coordinates.views, coordinates.parts, strict=True)]


def basis_is_finite(basis: Basis) -> bool:
    """Return whether all numbers of a basis are finite."""
    values = np.array([basis.longest, basis.tau, *basis.mu, *basis.center])
    return bool(np.isfinite(values).all())


def sum_eigenvalues(mu: NDArray[np.float64]) -> float:
    """Return the sum of the non-negligible eigenvalues of some columns."""
    return float(mu[mu > MIN_EIGENVALUE].sum())


def preserves_spectrum(old: Coordinates, bases: list[Basis]) -> bool:
    """Return whether corrected bases are finite and each view captures about as much of the spectrum as before.

    The spectrum of a growing graph changes slowly between anchors; columns that have become dependent, zero or not
    finite lose much of it.
    """
    before = [sum_eigenvalues(old.mu[part]) for part in old.parts]
    return all(
        basis_is_finite(basis) and sum_eigenvalues(basis.mu) >= MIN_SPECTRUM_RATIO * previous
        for basis, previous in zip(bases, before, strict=True)
    )


def to_weight_unit(adjacency: AdjacencyLike, bases: list[Basis]) -> list[Basis]:
    """Convert τ and center of bases from stored weights to the unit of new edges, as `Coordinates` keeps them."""
    unit = adjacency.weight_scale.unit
    return [replace(basis, tau=basis.tau / unit, center=basis.center / unit) for basis in bases]


def align_coordinates(
    old: Coordinates, new: Coordinates, bases: list[Basis], before: NDArray[Any], threads: int
) -> None:
    """Set new coordinates from bases, rotated so that served vectors agree best with those of the old coordinates.

    The rotation is the orthogonal Procrustes solution: it maximizes the sum of cosines between the vectors before and
    after. The views may differ.
    """
    align_to_products(new, bases, alignment_products(old, new, bases, before, threads))


def alignment_products(
    old: Coordinates, new: Coordinates, bases: list[Basis], before: NDArray[Any], threads: int
) -> NDArray[np.float64]:
    """Return Σ newᵀ old over rows (k×k) of new vectors, scaled but not rotated, and served old vectors."""

    def block_products(first: int, last: int) -> NDArray[np.float64]:
        scaled = new.scale_rows(concatenate_views(bases, first, last)).astype(np.float64)
        return scaled.T @ old.to_served(before[first:last]).astype(np.float64)

    with limit_blas_to_one_thread():
        return sum_over_blocks(block_products, len(before), threads)


def align_to_products(new: Coordinates, bases: list[Basis], products: NDArray[np.float64]) -> None:
    """Set new coordinates from bases, with the Procrustes rotation given by `alignment_products`."""
    with limit_blas_to_one_thread():
        left, _, right = np.linalg.svd(products)  # SciPy's `polar` rounds differently, which would change digests
        new.set_rotation(left @ right)
    new.adopt_bases(bases)


def find_moved_rows(
    old: Coordinates,
    before: NDArray[Any],
    new: Coordinates,
    after: Callable[[int, int], NDArray[Any]],
    threshold: float,
    threads: int,
) -> RowArray:
    """Return the rows whose served vector moves by more than the threshold."""
    far = np.zeros(len(before), bool)

    def compare_rows(first: int, last: int) -> None:
        distance = new.to_served(after(first, last)) - old.to_served(before[first:last])
        far[first:last] = np.linalg.norm(distance, axis=1) > threshold

    with limit_blas_to_one_thread():
        for_each_block(compare_rows, len(before), size=SUB_BLOCK_ROWS, threads=threads)
    return np.flatnonzero(far)


def orthogonality_error(coordinates: Coordinates, store: VectorStore, threads: int) -> float:
    """Return the largest cosine between two columns of one view, in the inner product Σ (d+τ) x x'."""
    return max_column_cosine(view_grams(coordinates, store, threads))


def view_grams(coordinates: Coordinates, store: VectorStore, threads: int) -> list[NDArray[np.float64]]:
    """Return the Gram matrix Σ (d+τ) x x' of each view's columns; matrices of disjoint sets of rows add up."""
    rows, links = store.graph.row_count, store.graph.adjacency.links
    grams = []
    for part, tau in zip(coordinates.parts, coordinates.tau * store.graph.adjacency.weight_scale.unit, strict=True):
        columns = store.vectors[:rows, part]
        row_weights = np.where(links.degree[:rows] > 0, links.strength[:rows] + tau, 0.0)
        grams.append(weighted_cross_products(columns, columns, threads, row_weights))
    return grams


def max_column_cosine(grams: Sequence[NDArray[np.float64]]) -> float:
    """Return the largest cosine between two columns of one view, given the Gram matrices."""
    largest = 0.0
    for gram in grams:
        length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        cosines = gram / np.outer(length, length)
        np.fill_diagonal(cosines, 0.0)
        largest = max(largest, float(np.abs(cosines).max(initial=0.0)))
    return largest


def concatenate_views(bases: list[Basis], first: int, last: int) -> NDArray[Any]:
    """Return rows first … last−1 with the columns of all views."""
    return np.concatenate([basis.rows[first:last] for basis in bases], axis=1)


def write_bases(
    store: VectorStore, coordinates: Coordinates, bases: list[Basis], order: RowArray | None = None
) -> None:
    """Write bases to the store and mark vertices with edges as placed; basis row i goes to row `order[i]`."""
    rows = store.graph.row_count
    fill_rows(store.vectors[:rows], coordinates, bases, slice(None) if order is None else order)
    store.placed[:rows] = store.graph.adjacency.links.degree[:rows] > 0


def fill_rows(
    rows: NDArray[Any], coordinates: Coordinates, bases: list[Basis], order: RowArray | slice = slice(None)
) -> None:
    """Write the columns of all bases into rows, converted to their precision."""
    for part, basis in zip(coordinates.parts, bases, strict=True):
        rows[order, part] = basis.rows
