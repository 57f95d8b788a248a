"""Warm-started node2vec (after dynnode2vec, Mahdavi et al., 2018): skip-gram continues on walks around arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.base import build_adjacency, check_settings
from ripplevec.lab.baselines.skip_gram import create_skip_gram, known_vertices, train_skip_gram
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_arrival_edges, check_arrival


@dataclass(kw_only=True)
class WarmNode2Vec:
    """node2vec trained on the start, then after every `chunk` arrivals on walks from the vertices they touched.

    A new vertex has the mean vector of its neighbors until its chunk is complete; training continues from there.
    """

    dim: int = 128
    walks: int = 10
    length: int = 40
    window: int = 7
    epochs: int = 1
    p: float = 1.0
    q: float = 1.0
    chunk: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Train on walks from every vertex of the initial graph."""
        self._graph = build_adjacency(graph)
        self._vectors = GrowingVectors(np.zeros((graph.shape[0], self.dim)))
        self._model = create_skip_gram(self.dim, self.window, self.seed, downsampling=0)
        self._trainings = 0
        self._pending, self._touched = 0, set(range(graph.shape[0]))
        self._train()

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean vector of the placed neighbors."""
        return self._vectors.mean_row(neighbors)

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Place a new vertex; train if it completes a chunk. Return its vector."""
        check_arrival(v, neighbors, len(self._vectors))
        if not self._vectors.is_placed(v):
            self._vectors.set_row(v, self.preview(neighbors))
        add_arrival_edges(self._graph, v, neighbors)
        self._touched.update([v, *neighbors])
        self._pending += 1
        if self._pending == self.chunk:
            self._train()
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the last training and of the vertices placed since, read-only."""
        return self._vectors.read_only()

    def _train(self) -> None:
        """Train on walks from the touched vertices, starting from the current vectors."""
        walks = self._generate_walks()
        self._trainings += 1
        self._pending, self._touched = 0, set()
        if not len(walks):
            return
        train_skip_gram(self._model, walks, self.epochs, initial_rows=self._vectors.rows)
        self._vectors.rows[known_vertices(self._model)] = self._model.wv.vectors

    def _generate_walks(self) -> NDArray[np.int64]:
        """Return walks from the touched vertices with edges: in each round one from each, in random order."""
        matrix = self._graph.to_csr()
        matrix.sort_indices()
        graph, touched = kernels.build_walk_graph(matrix), np.array(sorted(self._touched), np.int64)
        starts = touched[graph.first[touched + 1] > graph.first[touched]]
        walks = np.empty((self.walks, len(starts), self.length), np.int64)
        for round_number, rows in enumerate(walks):
            order = np.random.default_rng([self.seed, self._trainings, round_number]).permutation(starts)
            key = draw_key(self.seed, self._trainings, round_number)
            kernels.walk_with_bias(graph, (1 / self.p, 1.0, 1 / self.q), order, key, rows)
        return walks.reshape(-1, self.length)
