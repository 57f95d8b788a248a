"""What of a graph its views are chosen by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._query_kernels import is_bipartite
from ripplevec.graph.adjacency import Adjacency
from ripplevec.views.operator_factory import AdjacencyLike

DENSE_GRAPH = 10  # mean degree from which hubs tell enough to have a view of their own


class GraphStats(NamedTuple):
    """The mean degree when views were chosen, and whether the graph, once dense, had edges between two kinds only."""

    mean_degree: float = 0.0
    bipartite: bool = False

    def updated(self, adjacency: AdjacencyLike, rows: int) -> GraphStats:
        """The stats of the graph as it is. It never becomes sparse again, and is looked through once it is dense.

        A sparse graph is bipartite by chance: a tree is. One that lies elsewhere is taken for an ordinary one.
        """
        degree = max(self.mean_degree, adjacency.totals(rows).mean_degree)
        looked = self.bipartite or self.mean_degree >= DENSE_GRAPH
        if looked or degree < DENSE_GRAPH or not isinstance(adjacency, Adjacency):
            return GraphStats(degree, self.bipartite)
        return GraphStats(degree, bool(is_bipartite(adjacency.links, rows)))

    def state(self) -> dict[str, NDArray[Any]]:
        """The stats as arrays."""
        return {"mean_degree": np.array(self.mean_degree)} | ({"bipartite": np.array(True)} if self.bipartite else {})

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> GraphStats:
        """What `state` gave."""
        return cls(float(state["mean_degree"]), bool(state.get("bipartite", False)))
