"""DNE (Du et al., 2018): second-order LINE, trained further on the edges of new and of strongly affected vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.line import build_sampler
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_unit_edges, check_arrival

Rows = NDArray[np.float32]


@dataclass(kw_only=True)
class DNE:
    """DNE: skip-gram on edges with a vector and a context per vertex; after `chunk` arrivals, a part is trained again.

    The objective decomposes over edges, and its optimum is x_u · y_v = log(w_uv W / (d_u d_v)) − log(negatives), where
    W is the sum of all weights. The `modified` known vertices that are farthest from it, per edge, are trained together
    with the new ones; all other rows stay fixed. Until its chunk is complete, a new vertex has the mean vector of its
    neighbors.
    """

    dim: int = 128
    samples: int = 1_000  # sampled edges per trained vertex
    negatives: int = 5
    rate: float = 0.025
    modified: int = 16
    smoothness: float = 0.1
    chunk: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Train all vertices on the edges of the initial graph."""
        self._graph = as_weight_matrix(graph)
        self._trainings, self._pending = 0, list[tuple[int, int]]()
        self._arrived = list[int]()
        self._vectors, self._contexts = (GrowingVectors(np.zeros((graph.shape[0], self.dim))) for _ in range(2))
        self._train(np.diff(self._graph.indptr) > 0)

    def preview(self, neighbors: Sequence[int]) -> Rows:
        """Return the mean vector of the placed neighbors."""
        return self._vectors.mean_row(neighbors)

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> Rows:
        """Place a new vertex; train if it completes a chunk. Return its vector."""
        check_arrival(v, neighbors, len(self._vectors))
        if not self._vectors.is_placed(v):
            self._vectors.set_row(v, self.preview(neighbors))
            self._contexts.set_row(v, self._contexts.mean_row(neighbors))
        self._pending += [(v, other) for other in neighbors]
        self._arrived.append(v)
        if len(self._arrived) == self.chunk:
            self._update()
        return self._vectors.rows[v].copy()

    def vectors(self) -> Rows:
        """Return the vectors of the last training and of the vertices placed since, read-only."""
        return self._vectors.read_only()

    def _update(self) -> None:
        """Add the pending edges, and train the new and the most affected vertices."""
        size = len(self._vectors)
        self._graph.resize((size, size))
        self._graph = add_unit_edges(self._graph, self._pending)
        trainable = np.zeros(size, np.bool_)
        trainable[self._arrived] = True
        affected = np.where(trainable, 0.0, self._distance_from_optimum())
        trainable[np.argsort(-affected, kind="stable")[: self.modified]] = True
        self._pending, self._arrived = [], []
        self._train(trainable & (np.diff(self._graph.indptr) > 0))

    def _distance_from_optimum(self) -> NDArray[np.float64]:
        """Return, per vertex, the mean distance of x_u · y_v from its optimum over its edges."""
        edges = self._graph.tocoo()
        degree = np.asarray(self._graph.sum(axis=1)).ravel()
        actual = np.einsum("ij,ij->i", self._vectors.rows[edges.row], self._contexts.rows[edges.col])
        optimum = np.log(edges.data * edges.data.sum() / (degree[edges.row] * degree[edges.col]) / self.negatives)
        distance = np.bincount(edges.row, edges.data * np.abs(actual - optimum), minlength=degree.size)
        return distance / np.maximum(degree, 1e-12)

    def _train(self, trainable: NDArray[np.bool_]) -> None:
        """Train the vectors and contexts of some vertices on their edges, in both directions."""
        edges = self._graph.tocoo()
        touched = trainable[edges.row] | trainable[edges.col]
        self._trainings += 1
        if not touched.any():
            return
        vectors, contexts = self._vectors.rows, self._contexts.rows
        unset = trainable & ~vectors.any(axis=1)
        noise = np.random.default_rng([self.seed, self._trainings]).random((int(unset.sum()), self.dim), np.float32)
        vectors[unset] = (noise - np.float32(0.5)) / np.float32(self.dim)
        part = csr_array((edges.data[touched], (edges.row[touched], edges.col[touched])), shape=self._graph.shape)
        schedule = kernels.TrainingSchedule(self.samples * int(trainable.sum()), self.negatives, float(self.rate))
        key = draw_key(self.seed, self._trainings, 0)
        sampler = build_sampler(part, noise_by=self._graph)
        kernels.train_selected_on_edges(
            sampler, vectors, contexts, schedule, key, trainable, 0.0 if self._trainings == 1 else self.smoothness
        )
