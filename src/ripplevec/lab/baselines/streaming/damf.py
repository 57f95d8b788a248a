"""DAMF (Deng et al., 2023): an incremental factorization of the adjacency matrix, smoothed by personalized PageRank.

The vectors are Z = Σ_r α (1 − α)^r (D⁻¹A)^r X, where X are the vectors of an incremental SVD. Z solves
z_v = α x_v + (1 − α) · mean of z_u over the neighbors u of v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix, build_adjacency, check_settings
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_arrival_edges, check_arrival
from ripplevec.lab.baselines.streaming.incremental_svd import IncrementalSVD


@dataclass(kw_only=True)
class DAMF:
    """DAMF of an undirected graph: factors and smoothing are brought up to date after every `chunk` arrivals.

    In between, a new vertex is folded into the factors, and gets the vector that solves its own smoothing equation. The
    authors push residuals through the graph instead; the solution is the same, up to `rounds` terms of the sum.
    """

    dim: int = 128
    chunk: int = 8
    renew: int = 16
    restart: float = 0.3  # α
    rounds: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        if self.restart > 1:
            raise InvalidValueError.of("DAMF.restart", "a number above 0, at most 1", self.restart)

    def start(self, graph: csr_array) -> None:
        """Factorize the initial graph, and smooth the vectors."""
        self._graph = build_adjacency(as_weight_matrix(graph))
        self._factors = IncrementalSVD(dim=self.dim, chunk=self.chunk, renew=self.renew, seed=self.seed)
        self._factors.start(graph)
        self._arrivals = 0
        self._smooth()

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the solution of the smoothing equation of a new vertex."""
        return self._smooth_row(self._factors.preview(neighbors), neighbors)

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Add a new vertex; bring all vectors up to date if it completes a chunk. Return its vector."""
        check_arrival(v, neighbors, len(self._vectors))
        factor = self._factors.add_vertex(v, neighbors)
        add_arrival_edges(self._graph, v, neighbors)
        if not self._vectors.is_placed(v):
            self._vectors.set_row(v, self._smooth_row(factor, neighbors))
        self._arrivals += 1
        if self._arrivals % self.chunk == 0:
            self._smooth()
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the last update and those placed since, read-only."""
        return self._vectors.read_only()

    def _smooth_row(self, factor: NDArray[np.float32], neighbors: Sequence[int]) -> NDArray[np.float32]:
        return np.float32(self.restart) * factor + np.float32(1 - self.restart) * self._vectors.mean_row(neighbors)

    def _smooth(self) -> None:
        """Sum `rounds` terms of the smoothing, for all vertices."""
        factors = self._factors.vectors()
        matrix = self._graph.to_csr()[: len(factors), : len(factors)]
        strength = np.asarray(matrix.sum(axis=1)).ravel()
        transition = csr_array(diags_array(1 / np.where(strength > 0, strength, 1.0)) @ matrix, dtype=np.float32)
        smoothed = np.float32(self.restart) * factors
        for _ in range(self.rounds):
            smoothed = np.float32(self.restart) * factors + np.float32(1 - self.restart) * (transition @ smoothed)
        self._vectors = GrowingVectors(smoothed)
