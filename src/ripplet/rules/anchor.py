"""The anchor: one global correction of all vectors, after which they are served in the coordinates of before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd
from threadpoolctl import threadpool_limits

from ripplet.parallel import for_blocks
from ripplet.rules.field import Field
from ripplet.views.base import Basis, Progress
from ripplet.views.operators import BLOCK, cross
from ripplet.views.space import Space


def start(space: Space, field: Field, threads: int, progress: Progress | None = None) -> None:
    """Embed the graph from nothing: exact leading eigenvectors of every view."""
    rows = field.graph.rows
    with threadpool_limits(limits=1):  # the small matrices on one thread: the same bits however many there are
        bases = [
            view.start(field.graph.adjacency, rows, _width(space, number), threads=threads, progress=progress)
            for number, view in enumerate(space.views)
        ]
    for number, basis in enumerate(bases):
        field.vectors[:rows, space.columns(number)] = basis.rows
    _place(field, rows)
    space.settle(bases)


def anchor(space: Space, field: Field, *, seed: int, threshold: float, threads: int) -> NDArray[np.int64]:
    """Correct every view from its current rows; the rows whose served vectors moved more than `threshold`."""
    rows = field.graph.rows
    old = field.vectors[:rows]
    with threadpool_limits(limits=1):
        bases, turns = [], []
        for number, view in enumerate(space.views):
            part = space.columns(number)
            basis = view.anchor(field.graph.adjacency, old[:, part], space.mu[part], seed=seed, threads=threads)
            bases.append(basis)
            turns.append(procrustes(basis.rows, old[:, part], space.turns[part, part], threads))
        served = _Served(space, bases, turns)
        moved = served.moved(old, threshold, threads)
    for number, basis in enumerate(bases):
        old[:, space.columns(number)] = basis.rows
    _place(field, rows)
    space.settle(bases, turns)
    return moved


def orthogonality_error(space: Space, field: Field, threads: int) -> float:
    """The largest cosine between two columns of one view, in the inner product Σ (d+τ) x x'."""
    rows, links, worst = field.graph.rows, field.graph.adjacency.links, 0.0
    for number in range(len(space.views)):
        part = field.vectors[:rows, space.columns(number)]
        measure = np.where(links.count[:rows] > 0, links.strength[:rows] + space.tau[number], 0.0)
        gram = cross(part, part, threads, measure)
        length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        cosines = gram / np.outer(length, length)
        np.fill_diagonal(cosines, 0.0)
        worst = max(worst, float(np.abs(cosines).max(initial=0.0)))
    return worst


def procrustes(
    new: NDArray[Any], old: NDArray[Any], turn: NDArray[np.float64], threads: int
) -> NDArray[np.float64]:
    """The orthogonal matrix that brings new rows closest to the old ones as they were served."""
    left, _, right = svd(cross(new, old, threads) @ turn)
    closest: NDArray[np.float64] = left @ right
    return closest


def _width(space: Space, view: int) -> int:
    part = space.columns(view)
    return part.stop - part.start


def _place(field: Field, rows: int) -> None:
    field.placed[:rows] = field.graph.adjacency.links.count[:rows] > 0


class _Served:
    """New rows as they will be served, beside the old ones as they are."""

    def __init__(self, space: Space, bases: list[Basis], turns: list[NDArray[np.float64]]) -> None:
        self.before, self.bases = space, bases
        self.after = Space(space.views, space.dim, space.normalize)
        self.after.settle(bases, turns)

    def moved(self, old: NDArray[Any], threshold: float, threads: int) -> NDArray[np.int64]:
        far = np.zeros(len(old), bool)

        def work(first: int, last: int) -> None:
            new = np.concatenate([basis.rows[first:last] for basis in self.bases], axis=1)
            apart = self.after.serve(new) - self.before.serve(old[first:last])
            far[first:last] = np.linalg.norm(apart, axis=1) > threshold

        for_blocks(work, len(old), size=BLOCK, threads=threads)
        return np.flatnonzero(far)
