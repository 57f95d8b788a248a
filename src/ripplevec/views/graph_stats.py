"""Graph statistics used to select the default views."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.views.operators import AdjacencyLike

DENSE_MEAN_DEGREE = 10  # mean degree from which a graph counts as dense: hubs then justify a view of their own


class GraphStats(NamedTuple):
    """Mean degree when the views were chosen, and whether the graph was bipartite when it became dense."""

    mean_degree: float = 0.0
    bipartite: bool = False

    def updated(self, adjacency: AdjacencyLike, rows: int) -> GraphStats:
        """Return the statistics of the current graph.

        The mean degree never decreases. Bipartiteness is tested once, when the graph first becomes dense, because
        sparse graphs are often bipartite by chance (every tree is).
        """
        degree = max(self.mean_degree, adjacency.totals(rows).mean_degree)
        tested = self.bipartite or self.mean_degree >= DENSE_MEAN_DEGREE
        if tested or degree < DENSE_MEAN_DEGREE:
            return GraphStats(degree, self.bipartite)
        return GraphStats(degree, adjacency.is_bipartite(rows))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the statistics as arrays, for saving."""
        return {"mean_degree": np.array(self.mean_degree)} | ({"bipartite": np.array(True)} if self.bipartite else {})

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> GraphStats:
        """Restore the statistics from the arrays of `state`."""
        return cls(float(state["mean_degree"]), bool(state.get("bipartite", False)))
