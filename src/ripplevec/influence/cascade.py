"""Whom a vertex influences: the weighted independent cascade of the paper's Algorithm 1, on counter-based draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import grow_array
from ripplevec.graph.graph import Graph
from ripplevec.influence import _kernels as kernels
from ripplevec.influence._kernels import draw_key

Rows = NDArray[np.int64]
UNLIMITED_DEPTH = -1


class Cascade:
    """Influenced sets, each drawn anew: v gives each neighbor u not yet influenced one chance, a_uv / d_u."""

    def __init__(self, depth: int | None, seed: int) -> None:
        self.depth = UNLIMITED_DEPTH if depth is None else depth
        self.seed = seed
        self._seen: Rows = np.zeros(0, np.int64)
        self._stamp = 0

    def sample_influenced(self, graph: Graph, source: int, attempt: int = 0) -> Rows:
        """The rows that `source` influences, nearest round first; another `attempt` is another draw."""
        return self.sample_rounds(graph, source, self.depth, attempt)[0]

    def sample_rounds(self, graph: Graph, source: int, depth: int, attempt: int = 0) -> tuple[Rows, Rows]:
        """The rows influenced within `depth` rounds, and where among them each round begins (with the end behind)."""
        key = draw_key(self.seed, int(graph.arrival[source]), attempt)
        if self._seen.size < graph.adjacency.capacity:
            self._seen = grow_array(self._seen, graph.adjacency.capacity)
        self._stamp += 1
        found: tuple[Rows, Rows] = kernels.run_cascade(
            graph.adjacency.links, graph.arrival, source, depth, self._seen, self._stamp, key
        )
        return found
