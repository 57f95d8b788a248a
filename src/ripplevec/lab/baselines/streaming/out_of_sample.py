"""Out-of-sample extensions of a spectral start: neighbor mean and Nyström.

The start is an exact spectral embedding. A vector never changes once it is placed; new vertices are placed from the
vectors of their neighbors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import build_adjacency, check_settings
from ripplevec.lab.baselines.streaming.base import GrowingVectors, check_arrival
from ripplevec.views.recipes import RECIPES, recipe_by_density

MIN_EIGENVALUE_SHARE = 0.5
"""Nyström divides by at least this share of the largest eigenvalue, so that errors do not grow along arrivals."""


@dataclass(kw_only=True)
class OutOfSampleExtension(ABC):
    """A spectral start with fixed vectors; it uses a community view of Ripplevec, chosen by the mean degree.

    The comparison with Ripplevec therefore differs only in the treatment of arrivals. The methods are deterministic:
    `seed` exists because every baseline has one.
    """

    dim: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Compute the leading eigenvectors of the initial graph."""
        adjacency, count = build_adjacency(graph), graph.shape[0]
        view = RECIPES[recipe_by_density(adjacency.totals(count).mean_degree)][0]
        self._basis = view.start(adjacency, count, self.dim, threads=1)
        self._vectors = GrowingVectors(self._basis.rows)

    @abstractmethod
    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the vector that follows from the neighbors."""

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Place a vertex that is new or has had no placed neighbor so far; return its vector."""
        check_arrival(v, neighbors, len(self._vectors))
        if not self._vectors.is_placed(v):
            self._vectors.set_row(v, self.preview(neighbors))
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the start and of the arrivals, read-only."""
        return self._vectors.read_only()


@dataclass(kw_only=True)
class NeighborMean(OutOfSampleExtension):
    """Neighbor mean: a new vertex gets the mean vector of its placed neighbors, the simplest method that works."""

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean vector of the placed neighbors."""
        return self._vectors.mean_row(neighbors)


@dataclass(kw_only=True)
class Nystrom(OutOfSampleExtension):
    """Nyström extension (Bengio et al., 2004): the eigenvector equation of the start, solved for the new vertex.

    For every vertex of the start, Σ_u x_u − c = (d + τ) μ x holds over its neighbors u. Vertices that arrived later
    count as neighbors too, because many new vertices have no neighbor in the start.
    """

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the projection onto the eigenvectors of the start."""
        basis, rows = self._basis, self._vectors.placed_rows(neighbors)
        if not len(rows):
            return np.zeros(self.dim, np.float32)
        mean = (rows.sum(axis=0, dtype=np.float64) - basis.center) / (len(rows) + basis.tau)
        vector: NDArray[np.float32] = (mean / np.maximum(basis.mu, MIN_EIGENVALUE_SHARE * basis.mu[0])).astype(
            np.float32
        )
        return vector
