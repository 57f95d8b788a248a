"""The anchor: one global correction of all vectors, after which they are served in the coordinates of before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplet.graph.adjacency import Adjacency
from ripplet.parallel import for_blocks, one_blas_thread
from ripplet.rules.field import Field
from ripplet.storage import Growing
from ripplet.views.base import Basis, Progress
from ripplet.views.blocks import copied
from ripplet.views.operators import AT_ONCE, cross, total
from ripplet.views.space import Space

Rows = NDArray[np.int64]
Aside = Callable[[], AbstractContextManager[None]]
"""Around work that takes long and changes nothing yet: readers may go on meanwhile."""


class Correction(NamedTuple):
    """What an anchor says of the graph as it was: new coordinates, and the rows in them."""

    space: Space
    mean_degree: float  # by which its views were chosen
    rows: Growing
    arrival: Rows  # who had these rows
    edged: NDArray[np.bool_]  # whether they had edges; those without have no place
    next_arrival: int

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays; the views are chosen again by the degree."""
        beside = {"rows": self.rows.array, "arrival": self.arrival, "edged": self.edged}
        numbers = {"mean_degree": np.array(self.mean_degree), "next_arrival": np.array(self.next_arrival)}
        return self.space.state() | beside | numbers


class Touched(NamedTuple):
    """The rows that a batch moved, and whose they were."""

    rows: Rows
    arrival: Rows


def corrected(
    space: Space,
    adjacency: Adjacency,
    vectors: NDArray[Any],
    seed: int,
    threads: int,
    directory: str | PathLike[str] | None = None,
) -> list[Basis]:
    """Every view's correction from the rows as they are, worked out in a directory where they lie in one."""
    with one_blas_thread():
        blocks = (copied(vectors[:, part], threads, directory) for part in space.parts)
        return [
            view.anchor(adjacency, block, space.mu[part], seed=seed, threads=threads)
            for view, part, block in zip(space.views, space.parts, blocks, strict=True)
        ]


def from_others(
    space: Space,
    adjacency: Adjacency,
    vectors: NDArray[Any],
    seed: int,
    threads: int,
    directory: str | PathLike[str] | None = None,
) -> list[Basis]:
    """Every view's embedding from the rows of other views, each from all of their columns."""
    bases = []
    with one_blas_thread():
        for view, part in zip(space.views, space.parts, strict=True):
            block, columns = copied(vectors, threads, directory), part.stop - part.start
            basis = view.anchor(adjacency, block, None, columns=columns, seed=seed, threads=threads)
            bases.append(replace(basis, rows=copied(basis.rows, threads, directory)))  # lets go of the other columns
    return bases


def from_nothing(
    space: Space, adjacency: Adjacency, rows: int, threads: int, progress: Progress | None = None
) -> list[Basis]:
    """Every view's start on the graph as it is."""
    with one_blas_thread():
        return [
            view.start(adjacency, rows, part.stop - part.start, threads=threads, progress=progress)
            for view, part in zip(space.views, space.parts, strict=True)
        ]


def turn(old: Space, new: Space, bases: list[Basis], before: NDArray[Any], threads: int) -> None:
    """Have new coordinates take over what the bases say, turned to where the old ones were.

    The turn is the orthogonal Procrustes solution: of all turns, the one with the largest sum of cosines between the
    vectors before and after. It does not ask whether the views are still the same.
    """

    def compare(first: int, last: int) -> NDArray[np.float64]:
        fresh = new.scale(side_by_side(bases, first, last)).astype(np.float64)
        return fresh.T @ old.serve(before[first:last]).astype(np.float64)

    with one_blas_thread():
        left, _, right = np.linalg.svd(total(compare, len(before), threads))
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
    rows, links, worst = field.graph.rows, field.graph.adjacency.links, 0.0
    for part, tau in zip(space.parts, space.tau, strict=True):
        columns = field.vectors[:rows, part]
        measure = np.where(links.count[:rows] > 0, links.strength[:rows] + tau, 0.0)
        gram = cross(columns, columns, threads, measure)
        length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        cosines = gram / np.outer(length, length)
        np.fill_diagonal(cosines, 0.0)
        worst = max(worst, float(np.abs(cosines).max(initial=0.0)))
    return worst


def side_by_side(bases: list[Basis], first: int, last: int) -> NDArray[Any]:
    """Some rows with the columns of all views."""
    return np.concatenate([basis.rows[first:last] for basis in bases], axis=1)


def write(field: Field, space: Space, bases: list[Basis]) -> None:
    """Have the rows of new bases, and a place for whoever has edges."""
    rows = field.graph.rows
    fill(field.vectors[:rows], space, bases)
    field.placed[:rows] = field.graph.adjacency.links.count[:rows] > 0


def fill(rows: NDArray[Any], space: Space, bases: list[Basis]) -> None:
    """Write the columns of all views, in the precision of the rows."""
    for part, basis in zip(space.parts, bases, strict=True):
        rows[:, part] = basis.rows
