"""Shared code of the anchor benchmarks: a grown graph with rows to correct, and the anchor of all views."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from memory import DIM, EDGES_PER_VERTEX, random_arrivals
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views import _kernels as kernels
from ripplevec.views.aligned_matrix import aligned_zeros, as_strided_columns, copy_aligned
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.recipes import RECIPES, recipe_by_density
from ripplevec.views.spectral import SpectralView

CHUNK_VERTICES = 200_000  # vertices that are added or copied at a time


class GrownGraph(NamedTuple):
    """A graph, and its rows as a stream leaves them: 16 bits, new vertices at the mean of their neighbors."""

    adjacency: Adjacency
    coordinates: Coordinates
    rows: NDArray[np.float16]

    def with_bases(self, bases: list[Basis]) -> GrownGraph:
        """Return the same graph with these bases; the rows are overwritten."""
        coordinates = self.coordinates.new_like()
        coordinates.adopt_bases(bases)
        for part, basis in zip(coordinates.parts, bases, strict=True):
            for first in range(0, len(self.rows), CHUNK_VERTICES):
                self.rows[first : first + CHUNK_VERTICES, part] = basis.rows[first : first + CHUNK_VERTICES]
        return self._replace(coordinates=coordinates)


def grow_graph(vertices: int, threads: int) -> GrownGraph:
    """Compute a start on 1 % of the graph and place all other vertices in order of arrival."""
    rng, adjacency, start_size = np.random.default_rng(0), Adjacency(), vertices // 100
    adjacency.ensure_rows(vertices)
    _add_vertices(adjacency, 0, start_size, rng)
    coordinates = Coordinates(RECIPES[recipe_by_density(2 * EDGES_PER_VERTEX)], DIM)
    grown = GrownGraph(adjacency, coordinates, np.zeros((vertices, DIM), np.float16))
    with limit_blas_to_one_thread():
        bases = [
            view.start(adjacency, start_size, part.stop - part.start, threads=threads, progress=None)
            for view, part in zip(coordinates.views, coordinates.parts, strict=True)
        ]
    for first in range(start_size, vertices, CHUNK_VERTICES):
        _add_vertices(adjacency, first, min(first + CHUNK_VERTICES, vertices), rng)
    return grown.with_bases([replace(basis, rows=_place_vertices(adjacency, basis.rows, vertices)) for basis in bases])


def _add_vertices(adjacency: Adjacency, first: int, stop: int, rng: np.random.Generator) -> None:
    pairs = random_arrivals(first, stop, rng)
    adjacency.apply(np.zeros(len(pairs), np.int8), pairs, np.ones(len(pairs), np.float32))


def _place_vertices(adjacency: Adjacency, start_rows: NDArray[Any], vertices: int) -> NDArray[Any]:
    """Return rows in which each vertex after the start is at the mean of its neighbors."""
    rows = aligned_zeros(vertices, start_rows.shape[1], np.float32)
    rows[: len(start_rows)] = start_rows
    columns, zeros = as_strided_columns(rows), np.zeros(start_rows.shape[1])
    kernels.combine(adjacency.links, columns, zeros, 0.0, (1.0, 0.0, 0.0), columns, len(start_rows), vertices)
    return rows


def compute_anchor(
    grown: GrownGraph, threads: int, device: Literal["cpu", "cuda"] = "cpu"
) -> tuple[list[Basis], float]:
    """Compute the anchor of every view; return the bases and the seconds it took."""
    began = perf_counter()
    with limit_blas_to_one_thread():
        bases = [
            replace(cast(SpectralView, view), device=device).anchor(
                grown.adjacency,
                copy_aligned(grown.rows[:, part], threads),
                grown.coordinates.mu[part],
                seed=0,
                threads=threads,
            )
            for view, part in zip(grown.coordinates.views, grown.coordinates.parts, strict=True)
        ]
    return bases, perf_counter() - began
