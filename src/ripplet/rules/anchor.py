"""The anchor: one global correction of all vectors, after which they are served in the coordinates of before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.parallel import for_blocks, one_blas_thread
from ripplet.rules.field import Field
from ripplet.views.base import Basis, Progress
from ripplet.views.operators import AT_ONCE, cross, total
from ripplet.views.space import Space

Rows = NDArray[np.int64]


def start(space: Space, field: Field, threads: int, progress: Progress | None = None) -> None:
    """Embed the graph from nothing: exact leading eigenvectors of every view."""
    _write(field, space, from_nothing(space, field, threads, progress))


def corrected(space: Space, field: Field, seed: int, threads: int) -> list[Basis]:
    """Every view's correction from its current rows."""
    adjacency, old = field.graph.adjacency, field.vectors[: field.graph.rows]
    with one_blas_thread():
        return [
            view.anchor(adjacency, old[:, part], space.mu[part], seed=seed, threads=threads)
            for view, part in zip(space.views, space.parts, strict=True)
        ]


def from_nothing(space: Space, field: Field, threads: int, progress: Progress | None = None) -> list[Basis]:
    """Every view's start on the graph as it is."""
    adjacency, rows = field.graph.adjacency, field.graph.rows
    with one_blas_thread():
        return [
            view.start(adjacency, rows, part.stop - part.start, threads=threads, progress=progress)
            for view, part in zip(space.views, space.parts, strict=True)
        ]


def exchange(old: Space, new: Space, bases: list[Basis], field: Field, threshold: float, threads: int) -> Rows:
    """Put new rows in the place of the old ones, turned so that on the whole vectors are served as they were.

    The turn is the orthogonal Procrustes solution: of all turns, the one with the largest sum of cosines between the
    vectors before and after. It does not ask whether the views are still the same. Returns the rows that moved more
    than the threshold.
    """
    before, size = field.vectors[: field.graph.rows], field.graph.rows

    def compare(first: int, last: int) -> NDArray[np.float64]:
        fresh = new.scale(_side_by_side(bases, first, last)).astype(np.float64)
        return fresh.T @ old.serve(before[first:last]).astype(np.float64)

    with one_blas_thread():
        left, _, right = np.linalg.svd(total(compare, size, threads))
        new.turn_by(left @ right)
        far = np.zeros(size, bool)

        def measure(first: int, last: int) -> None:
            apart = new.serve(_side_by_side(bases, first, last)) - old.serve(before[first:last])
            far[first:last] = np.linalg.norm(apart, axis=1) > threshold

        for_blocks(measure, size, size=AT_ONCE, threads=threads)
    _write(field, new, bases)
    return np.flatnonzero(far)


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


def _side_by_side(bases: list[Basis], first: int, last: int) -> NDArray[Any]:
    return np.concatenate([basis.rows[first:last] for basis in bases], axis=1)


def _write(field: Field, space: Space, bases: list[Basis]) -> None:
    rows = field.graph.rows
    for part, basis in zip(space.parts, bases, strict=True):
        field.vectors[:rows, part] = basis.rows
    field.placed[:rows] = field.graph.adjacency.links.count[:rows] > 0
    space.settle(bases)
