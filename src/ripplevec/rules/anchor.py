"""The anchor: one global correction of all vectors, after which they are served in the coordinates of before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import RipplevecError
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.growable_array import GrowableArray
from ripplevec.util.parallel import for_each_block, limit_blas_to_one_thread
from ripplevec.views.aligned_matrix import copy_aligned
from ripplevec.views.base import MIN_EIGENVALUE, Basis, Progress
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.graph_stats import GraphStats
from ripplevec.views.operator_factory import AdjacencyLike, weight_unit
from ripplevec.views.operators import SUB_BLOCK_ROWS, cross, total

Rows = NDArray[np.int64]
LEAST_HELD = 0.9  # of the spectrum held before, by a correction that is taken over
BlockCopier = Callable[[NDArray[Any], int], NDArray[Any]]
"""What gives a view a matrix of its own to use up: `views.aligned_matrix.copy_aligned`, where the rows are here."""


class Correction(NamedTuple):
    """What an anchor says of the graph as it was: new coordinates, and the rows in them."""

    coordinates: Coordinates
    stats: GraphStats  # by which its views were chosen
    rows: GrowableArray
    arrival: Rows  # who had these rows
    edged: NDArray[np.bool_]  # whether they had edges; those without have no place
    next_arrival: int

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays; the views are chosen again by the stats."""
        beside = {"rows": self.rows.array, "arrival": self.arrival, "edged": self.edged}
        return self.coordinates.state() | self.stats.state() | beside | {"next_arrival": np.array(self.next_arrival)}


class CorrectionError(RipplevecError):
    """A correction came to nothing that could be served; the vectors are as they were."""


BasisSolver = Callable[[Coordinates, AdjacencyLike, int, int], list[Basis]]
"""What gives every view a basis of the graph as it is: `bases_from_scratch`, where the graph is here."""


class PreparedCorrection(NamedTuple):
    """A correction carried over to the graph as it is: what all vectors are to be, beside those there are."""

    coordinates: Coordinates
    stats: GraphStats
    rows: GrowableArray
    placed: NDArray[np.uint8]
    moved: Rows  # by more than the threshold


class TouchedRows(NamedTuple):
    """The rows that a batch moved, and whose they were."""

    rows: Rows
    arrival: Rows


def correct_bases(
    coordinates: Coordinates,
    adjacency: AdjacencyLike,
    vectors: NDArray[Any],
    seed: int,
    threads: int,
    copy: BlockCopier = copy_aligned,
) -> list[Basis]:
    """Every view's correction from the rows as they are."""
    with limit_blas_to_one_thread():
        blocks = (copy(vectors[:, part], threads) for part in coordinates.parts)
        return [
            view.anchor(adjacency, block, coordinates.mu[part], seed=seed, threads=threads)
            for view, part, block in zip(coordinates.views, coordinates.parts, blocks, strict=True)
        ]


def bases_from_other_views(
    coordinates: Coordinates,
    adjacency: AdjacencyLike,
    vectors: NDArray[Any],
    seed: int,
    threads: int,
    copy: BlockCopier = copy_aligned,
) -> list[Basis]:
    """Every view's embedding from the rows of other views, each from all of their columns."""
    bases = []
    with limit_blas_to_one_thread():
        for view, part in zip(coordinates.views, coordinates.parts, strict=True):
            block, columns = copy(vectors, threads), part.stop - part.start
            basis = view.anchor(adjacency, block, None, columns=columns, seed=seed, threads=threads)
            bases.append(replace(basis, rows=copy(basis.rows, threads)))  # lets go of the other columns
    return bases


def bases_from_scratch(
    coordinates: Coordinates, adjacency: AdjacencyLike, rows: int, threads: int, progress: Progress | None = None
) -> list[Basis]:
    """Every view's start on the graph as it is."""
    with limit_blas_to_one_thread():
        return [
            view.start(adjacency, rows, part.stop - part.start, threads=threads, progress=progress)
            for view, part in zip(coordinates.views, coordinates.parts, strict=True)
        ]


def basis_is_finite(basis: Basis) -> bool:
    """Whether all numbers of a basis are."""
    learned = np.array([basis.longest, basis.tau, *basis.mu, *basis.center])
    return bool(np.isfinite(learned).all())


def captured_spectrum(mu: NDArray[np.float64]) -> float:
    """How much of the spectrum columns with these eigenvalues hold: the sum of those that count."""
    return float(mu[mu > MIN_EIGENVALUE].sum())


def preserves_spectrum(old: Coordinates, bases: list[Basis]) -> bool:
    """Whether corrected bases are finite and each view holds about as much of the spectrum as it did.

    The spectrum of a growing graph changes slowly from one correction to the next; columns that have become dependent,
    zero or not finite lose much of it.
    """
    before = [captured_spectrum(old.mu[part]) for part in old.parts]
    return all(
        basis_is_finite(basis) and captured_spectrum(basis.mu) >= LEAST_HELD * share
        for basis, share in zip(bases, before, strict=True)
    )


def to_weight_unit(adjacency: AdjacencyLike, bases: list[Basis]) -> list[Basis]:
    """The bases with τ and center as `Coordinates` keeps them: measured by a weight of one that comes now."""
    unit = weight_unit(adjacency)
    return [replace(basis, tau=basis.tau / unit, center=basis.center / unit) for basis in bases]


def align_coordinates(
    old: Coordinates, new: Coordinates, bases: list[Basis], before: NDArray[Any], threads: int
) -> None:
    """Have new coordinates take over what the bases say, turned to where the old ones were.

    The turn is the orthogonal Procrustes solution: of all turns, the one with the largest sum of cosines between the
    vectors before and after. It does not ask whether the views are still the same.
    """
    align_to_products(new, bases, alignment_products(old, new, bases, before, threads))


def alignment_products(
    old: Coordinates, new: Coordinates, bases: list[Basis], before: NDArray[Any], threads: int
) -> NDArray[np.float64]:
    """The products of what is served after, before any turn, and what was served before: k×k, summed over rows."""

    def compare(first: int, last: int) -> NDArray[np.float64]:
        fresh = new.scale_rows(concatenate_views(bases, first, last)).astype(np.float64)
        return fresh.T @ old.to_served(before[first:last]).astype(np.float64)

    with limit_blas_to_one_thread():
        return total(compare, len(before), threads)


def align_to_products(new: Coordinates, bases: list[Basis], products: NDArray[np.float64]) -> None:
    """Have new coordinates take over what the bases say, turned to where these products with the old ones lead."""
    with limit_blas_to_one_thread():
        left, _, right = np.linalg.svd(products)
        new.set_rotation(left @ right)
    new.adopt_bases(bases)


def find_moved_rows(
    old: Coordinates,
    before: NDArray[Any],
    new: Coordinates,
    after: Callable[[int, int], NDArray[Any]],
    threshold: float,
    threads: int,
) -> Rows:
    """The rows that are served further than the threshold from where they were."""
    far = np.zeros(len(before), bool)

    def measure(first: int, last: int) -> None:
        distance = new.to_served(after(first, last)) - old.to_served(before[first:last])
        far[first:last] = np.linalg.norm(distance, axis=1) > threshold

    with limit_blas_to_one_thread():
        for_each_block(measure, len(before), size=SUB_BLOCK_ROWS, threads=threads)
    return np.flatnonzero(far)


def drop_stale_rows(store: VectorStore, correction: Correction) -> tuple[NDArray[np.uint8], Rows]:
    """Who has a place by a correction that was made for an earlier graph, and the rows that have to find one again.

    A row is that of the same vertex as then, or it is empty: newcomers, and those who had no edge then.
    """
    size, then = store.graph.row_count, len(correction.arrival)
    count, arrival = store.graph.adjacency.links.degree[:size], store.graph.arrival[:size]
    kept = np.zeros(size, bool)
    kept[:then] = correction.edged & (correction.arrival == arrival[:then])
    kept &= count > 0
    correction.rows.grow(store.graph.adjacency.capacity)[:size][~kept] = 0
    placed = np.zeros((store.placed.size, 2), np.uint8)[:, 0]  # a column, as the kernels know it
    placed[:size] = kept
    return placed, np.flatnonzero(~kept & (count > 0))


def orthogonality_error(coordinates: Coordinates, store: VectorStore, threads: int) -> float:
    """The largest cosine between two columns of one view, in the inner product Σ (d+τ) x x'."""
    return max_column_cosine(view_grams(coordinates, store, threads))


def view_grams(coordinates: Coordinates, store: VectorStore, threads: int) -> list[NDArray[np.float64]]:
    """Per view, the inner products Σ (d+τ) x x' of its columns; those of all rows are the sums of those of some."""
    rows, links = store.graph.row_count, store.graph.adjacency.links
    found = []
    for part, tau in zip(coordinates.parts, coordinates.tau * store.graph.adjacency.weight_scale.unit, strict=True):
        columns = store.vectors[:rows, part]
        measure = np.where(links.degree[:rows] > 0, links.strength[:rows] + tau, 0.0)
        found.append(cross(columns, columns, threads, measure))
    return found


def max_column_cosine(grams: Sequence[NDArray[np.float64]]) -> float:
    """The largest cosine between two columns of one view."""
    worst = 0.0
    for gram in grams:
        length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        cosines = gram / np.outer(length, length)
        np.fill_diagonal(cosines, 0.0)
        worst = max(worst, float(np.abs(cosines).max(initial=0.0)))
    return worst


def concatenate_views(bases: list[Basis], first: int, last: int) -> NDArray[Any]:
    """Some rows with the columns of all views."""
    return np.concatenate([basis.rows[first:last] for basis in bases], axis=1)


def write_bases(store: VectorStore, coordinates: Coordinates, bases: list[Basis], order: Rows | None = None) -> None:
    """Have the rows of new bases, and a place for whoever has edges; the bases may have some rows only, in an order."""
    rows = store.graph.row_count
    fill_rows(store.vectors[:rows], coordinates, bases, slice(None) if order is None else order)
    store.placed[:rows] = store.graph.adjacency.links.degree[:rows] > 0


def fill_rows(
    rows: NDArray[Any], coordinates: Coordinates, bases: list[Basis], order: Rows | slice = slice(None)
) -> None:
    """Write the columns of all views, in the precision of the rows."""
    for part, basis in zip(coordinates.parts, bases, strict=True):
        rows[order, part] = basis.rows
