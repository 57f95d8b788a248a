"""The anchor: one global correction of all vectors, after which they are served in the coordinates of before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import RipplevecError
from ripplevec.rules.vector_store import Field
from ripplevec.util.growable_array import Growing
from ripplevec.util.parallel import for_blocks, one_blas_thread
from ripplevec.views.aligned_matrix import copied
from ripplevec.views.base import NOTHING, Basis, Progress
from ripplevec.views.coordinates import Space
from ripplevec.views.graph_stats import Traits
from ripplevec.views.operator_factory import Ground, unit_of
from ripplevec.views.operators import AT_ONCE, cross, total

Rows = NDArray[np.int64]
LEAST_HELD = 0.9  # of the spectrum held before, by a correction that is taken over
Copier = Callable[[NDArray[Any], int], NDArray[Any]]
"""What gives a view a matrix of its own to use up: `views.blocks.copied`, where the rows are here."""


class Correction(NamedTuple):
    """What an anchor says of the graph as it was: new coordinates, and the rows in them."""

    space: Space
    traits: Traits  # by which its views were chosen
    rows: Growing
    arrival: Rows  # who had these rows
    edged: NDArray[np.bool_]  # whether they had edges; those without have no place
    next_arrival: int

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays; the views are chosen again by the traits."""
        beside = {"rows": self.rows.array, "arrival": self.arrival, "edged": self.edged}
        return self.space.state() | self.traits.state() | beside | {"next_arrival": np.array(self.next_arrival)}


class CorrectionError(RipplevecError):
    """A correction came to nothing that could be served; the vectors are as they were."""


Solver = Callable[[Space, Ground, int, int], list[Basis]]
"""What gives every view a basis of the graph as it is: `from_nothing`, where the graph is here."""


class TakeOver(NamedTuple):
    """A correction carried over to the graph as it is: what all vectors are to be, beside those there are."""

    space: Space
    traits: Traits
    rows: Growing
    placed: NDArray[np.uint8]
    moved: Rows  # by more than the threshold


class Touched(NamedTuple):
    """The rows that a batch moved, and whose they were."""

    rows: Rows
    arrival: Rows


def corrected(
    space: Space, adjacency: Ground, vectors: NDArray[Any], seed: int, threads: int, copy: Copier = copied
) -> list[Basis]:
    """Every view's correction from the rows as they are."""
    with one_blas_thread():
        blocks = (copy(vectors[:, part], threads) for part in space.parts)
        return [
            view.anchor(adjacency, block, space.mu[part], seed=seed, threads=threads)
            for view, part, block in zip(space.views, space.parts, blocks, strict=True)
        ]


def from_others(
    space: Space, adjacency: Ground, vectors: NDArray[Any], seed: int, threads: int, copy: Copier = copied
) -> list[Basis]:
    """Every view's embedding from the rows of other views, each from all of their columns."""
    bases = []
    with one_blas_thread():
        for view, part in zip(space.views, space.parts, strict=True):
            block, columns = copy(vectors, threads), part.stop - part.start
            basis = view.anchor(adjacency, block, None, columns=columns, seed=seed, threads=threads)
            bases.append(replace(basis, rows=copy(basis.rows, threads)))  # lets go of the other columns
    return bases


def from_nothing(
    space: Space, adjacency: Ground, rows: int, threads: int, progress: Progress | None = None
) -> list[Basis]:
    """Every view's start on the graph as it is."""
    with one_blas_thread():
        return [
            view.start(adjacency, rows, part.stop - part.start, threads=threads, progress=progress)
            for view, part in zip(space.views, space.parts, strict=True)
        ]


def is_finite(basis: Basis) -> bool:
    """Whether all numbers of a basis are."""
    learned = np.array([basis.longest, basis.tau, *basis.mu, *basis.center])
    return bool(np.isfinite(learned).all())


def held(mu: NDArray[np.float64]) -> float:
    """How much of the spectrum columns with these eigenvalues hold: the sum of those that count."""
    return float(mu[mu > NOTHING].sum())


def holds_spectrum(old: Space, bases: list[Basis]) -> bool:
    """Whether corrected bases are finite and each view holds about as much of the spectrum as it did.

    The spectrum of a growing graph changes slowly from one correction to the next; columns that have become dependent,
    zero or not finite lose much of it.
    """
    before = [held(old.mu[part]) for part in old.parts]
    return all(
        is_finite(basis) and held(basis.mu) >= LEAST_HELD * share for basis, share in zip(bases, before, strict=True)
    )


def per_unit(adjacency: Ground, bases: list[Basis]) -> list[Basis]:
    """The bases with τ and center as `Space` keeps them: measured by a weight of one that comes now."""
    unit = unit_of(adjacency)
    return [replace(basis, tau=basis.tau / unit, center=basis.center / unit) for basis in bases]


def turn(old: Space, new: Space, bases: list[Basis], before: NDArray[Any], threads: int) -> None:
    """Have new coordinates take over what the bases say, turned to where the old ones were.

    The turn is the orthogonal Procrustes solution: of all turns, the one with the largest sum of cosines between the
    vectors before and after. It does not ask whether the views are still the same.
    """
    settle(new, bases, agreement(old, new, bases, before, threads))


def agreement(old: Space, new: Space, bases: list[Basis], before: NDArray[Any], threads: int) -> NDArray[np.float64]:
    """The products of what is served after, before any turn, and what was served before: k×k, summed over rows."""

    def compare(first: int, last: int) -> NDArray[np.float64]:
        fresh = new.scale(side_by_side(bases, first, last)).astype(np.float64)
        return fresh.T @ old.serve(before[first:last]).astype(np.float64)

    with one_blas_thread():
        return total(compare, len(before), threads)


def settle(new: Space, bases: list[Basis], products: NDArray[np.float64]) -> None:
    """Have new coordinates take over what the bases say, turned to where these products with the old ones lead."""
    with one_blas_thread():
        left, _, right = np.linalg.svd(products)
        new.turn_by(left @ right)
    new.settle(bases)


def apart(
    old: Space,
    before: NDArray[Any],
    new: Space,
    after: Callable[[int, int], NDArray[Any]],
    threshold: float,
    threads: int,
) -> Rows:
    """The rows that are served further than the threshold from where they were."""
    far = np.zeros(len(before), bool)

    def measure(first: int, last: int) -> None:
        distance = new.serve(after(first, last)) - old.serve(before[first:last])
        far[first:last] = np.linalg.norm(distance, axis=1) > threshold

    with one_blas_thread():
        for_blocks(measure, len(before), size=AT_ONCE, threads=threads)
    return np.flatnonzero(far)


def carried(field: Field, correction: Correction) -> tuple[NDArray[np.uint8], Rows]:
    """Who has a place by a correction that was made for an earlier graph, and the rows that have to find one again.

    A row is that of the same vertex as then, or it is empty: newcomers, and those who had no edge then.
    """
    size, then = field.graph.rows, len(correction.arrival)
    count, arrival = field.graph.adjacency.links.count[:size], field.graph.arrival[:size]
    kept = np.zeros(size, bool)
    kept[:then] = correction.edged & (correction.arrival == arrival[:then])
    kept &= count > 0
    correction.rows.grow(field.graph.adjacency.rows)[:size][~kept] = 0
    placed = np.zeros((field.placed.size, 2), np.uint8)[:, 0]  # a column, as the kernels know it
    placed[:size] = kept
    return placed, np.flatnonzero(~kept & (count > 0))


def orthogonality_error(space: Space, field: Field, threads: int) -> float:
    """The largest cosine between two columns of one view, in the inner product Σ (d+τ) x x'."""
    return largest_cosine(grams(space, field, threads))


def grams(space: Space, field: Field, threads: int) -> list[NDArray[np.float64]]:
    """Per view, the inner products Σ (d+τ) x x' of its columns; those of all rows are the sums of those of some."""
    rows, links = field.graph.rows, field.graph.adjacency.links
    found = []
    for part, tau in zip(space.parts, space.tau * field.graph.adjacency.scale.unit, strict=True):
        columns = field.vectors[:rows, part]
        measure = np.where(links.count[:rows] > 0, links.strength[:rows] + tau, 0.0)
        found.append(cross(columns, columns, threads, measure))
    return found


def largest_cosine(grams: Sequence[NDArray[np.float64]]) -> float:
    """The largest cosine between two columns of one view."""
    worst = 0.0
    for gram in grams:
        length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        cosines = gram / np.outer(length, length)
        np.fill_diagonal(cosines, 0.0)
        worst = max(worst, float(np.abs(cosines).max(initial=0.0)))
    return worst


def side_by_side(bases: list[Basis], first: int, last: int) -> NDArray[Any]:
    """Some rows with the columns of all views."""
    return np.concatenate([basis.rows[first:last] for basis in bases], axis=1)


def write(field: Field, space: Space, bases: list[Basis], order: Rows | None = None) -> None:
    """Have the rows of new bases, and a place for whoever has edges; the bases may have some rows only, in an order."""
    rows = field.graph.rows
    fill(field.vectors[:rows], space, bases, slice(None) if order is None else order)
    field.placed[:rows] = field.graph.adjacency.links.count[:rows] > 0


def fill(rows: NDArray[Any], space: Space, bases: list[Basis], order: Rows | slice = slice(None)) -> None:
    """Write the columns of all views, in the precision of the rows."""
    for part, basis in zip(space.parts, bases, strict=True):
        rows[order, part] = basis.rows
