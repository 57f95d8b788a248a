"""What the benchmarks of the anchor share: a grown graph with rows to correct, and the correction of all views."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from memory import DIM, EDGES, arrivals
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views import _kernels as kernels
from ripplevec.views.aligned_matrix import aligned_zeros, as_strided_columns, copy_aligned
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.graph_stats import GraphStats
from ripplevec.views.spectral import auto_views

AT_ONCE = 200_000  # vertices added together


class Grown(NamedTuple):
    """A graph, and rows as a stream leaves them: in 16 bits, newcomers at the mean of their neighbors."""

    adjacency: Adjacency
    space: Coordinates
    rows: NDArray[np.float16]

    def after(self, bases: list[Basis]) -> Grown:
        """The same graph with these bases in place of what was there."""
        space = self.space.new_like()
        space.adopt_bases(bases)
        for part, basis in zip(space.parts, bases, strict=True):
            for first in range(0, len(self.rows), AT_ONCE):
                self.rows[first : first + AT_ONCE, part] = basis.rows[first : first + AT_ONCE]
        return self._replace(space=space)


def grow(vertices: int, threads: int) -> Grown:
    """A start on 1 % of the graph, all other vertices placed in order of arrival."""
    rng, adjacency, few = np.random.default_rng(0), Adjacency(), vertices // 100
    adjacency.ensure_rows(vertices)
    _add(adjacency, 0, few, rng)
    grown = Grown(adjacency, Coordinates(auto_views(GraphStats(2 * EDGES)), DIM), np.zeros((vertices, DIM), np.float16))
    with limit_blas_to_one_thread():
        bases = [
            view.start(adjacency, few, part.stop - part.start, threads=threads, progress=None)
            for view, part in zip(grown.space.views, grown.space.parts, strict=True)
        ]
    for first in range(few, vertices, AT_ONCE):
        _add(adjacency, first, min(first + AT_ONCE, vertices), rng)
    return grown.after([replace(basis, rows=_placed(adjacency, basis.rows, vertices)) for basis in bases])


def _add(adjacency: Adjacency, first: int, last: int, rng: np.random.Generator) -> None:
    pairs = arrivals(first, last, rng)
    adjacency.apply(np.zeros(len(pairs), np.int8), pairs, np.ones(len(pairs), np.float32))


def _placed(adjacency: Adjacency, known: NDArray[Any], vertices: int) -> NDArray[Any]:
    rows = aligned_zeros(vertices, known.shape[1], np.float32)
    rows[: len(known)] = known
    every, nothing = as_strided_columns(rows), np.zeros(known.shape[1])
    kernels.combine(adjacency.links, every, nothing, 0.0, (1.0, 0.0, 0.0), every, len(known), vertices)
    return rows


def anchored(grown: Grown, threads: int, device: str = "cpu") -> tuple[list[Basis], float]:
    """Every view's correction, and the seconds it took."""
    began = perf_counter()
    with limit_blas_to_one_thread():
        bases = [
            replace(view, device=device).anchor(
                grown.adjacency,
                copy_aligned(grown.rows[:, part], threads),
                grown.space.mu[part],
                seed=0,
                threads=threads,
            )
            for view, part in zip(grown.space.views, grown.space.parts, strict=True)
        ]
    return bases, perf_counter() - began
