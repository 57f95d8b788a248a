"""What the baselines with a frozen start share: an exact spectral start, and vectors that never move once placed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import check_settings, growing
from ripplevec.lab.baselines.streaming.base import Rows, check_arrival
from ripplevec.views.graph_stats import GraphStats
from ripplevec.views.spectral import auto_views


@dataclass(kw_only=True)
class Frozen(ABC):
    """Starts from the community view that Ripplevec would choose: only what is done with arrivals differs.

    Nothing is drawn at random; the seed is there because every method has one.
    """

    dim: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Solve for the leading eigenvectors."""
        adjacency, count = growing(graph), graph.shape[0]
        view = auto_views(GraphStats().updated(adjacency, count))[0]
        self._basis = view.start(adjacency, count, self.dim, threads=1)
        self._rows = Rows(self._basis.rows)

    @abstractmethod
    def place(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """The vector that follows from neighbors."""

    def arrive(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Place a vertex. A placed one stays; one that had no placed neighbor so far is placed now."""
        check_arrival(v, neighbors, len(self._rows))
        if v == len(self._rows) or not self._rows.view[v].any():
            self._rows.put(v, self.place(neighbors))
        return self._rows.view[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """The start's vectors and those given on arrival."""
        return self._rows.reading()
