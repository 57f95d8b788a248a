"""Influenced vertices of a vertex: the weighted independent cascade of the paper's Algorithm 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph
from ripplevec.influence import _kernels as kernels
from ripplevec.influence._kernels import draw_key
from ripplevec.util.growable_array import grow_array

UNLIMITED_DEPTH = -1  # as many rounds as reach new vertices


class Cascade:
    """Samples influenced sets: v influences each neighbor u that is not yet influenced with probability a_uv / d_u."""

    def __init__(self, depth: int | None, seed: int) -> None:
        self.depth = UNLIMITED_DEPTH if depth is None else depth
        self.seed = seed
        self._seen: NDArray[np.int64] = np.zeros(0, np.int64)  # per row: number of the last sample that reached it
        self._stamp = 0  # number of the current sample

    def sample_influenced(self, graph: Graph, source: int, attempt: int = 0) -> RowArray:
        """Return the rows that `source` influences, in order of rounds; each `attempt` is an independent sample."""
        return self.sample_rounds(graph, source, self.depth, attempt)[0]

    def sample_rounds(
        self, graph: Graph, source: int, depth: int, attempt: int = 0
    ) -> tuple[RowArray, NDArray[np.int64]]:
        """Return the rows influenced within `depth` rounds, and the bounds of the rounds: 0, end of round 1, …"""
        key = draw_key(self.seed, int(graph.arrival[source]), attempt)
        if self._seen.size < graph.adjacency.capacity:
            self._seen = grow_array(self._seen, graph.adjacency.capacity)
        self._stamp += 1
        rows_and_bounds: tuple[RowArray, NDArray[np.int64]] = kernels.run_cascade(
            graph.adjacency.links, graph.arrival, source, depth, self._seen, self._stamp, key
        )
        return rows_and_bounds
