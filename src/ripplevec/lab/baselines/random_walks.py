"""DeepWalk and node2vec: random walks are read as sentences, and skip-gram learns a vector per vertex.

DeepWalk (Perozzi et al., 2014) walks in proportion to edge weight; node2vec (Grover and Leskovec, 2016) biases each
step by the vertex before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.skip_gram import create_skip_gram, read_vectors, train_skip_gram
from ripplevec.util.parallel import for_each_block

WALKS_PER_BLOCK = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepWalk:
    """DeepWalk: random walks from every vertex, trained by gensim's skip-gram with five negative samples.

    With one thread the same seed gives the same vectors; with more threads skip-gram's updates race.

    Parameters
    ----------
    dim : int
        Length of a vector.
    walks, length : int
        Number of walks per vertex, and of vertices per walk.
    window, epochs : int
        Context window of skip-gram, and its passes over the walks.
    seed, threads : int
        Random seed, and number of threads.
    """

    dim: int = 128
    walks: int = 10
    length: int = 40
    window: int = 7
    epochs: int = 1
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_settings(self)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Generate walks and train on them; return a vector per row, zero for vertices without edges."""
        model = create_skip_gram(self.dim, self.window, self.seed, threads=self.threads)
        walks = self.generate_walks(graph)
        if len(walks):
            train_skip_gram(model, walks, self.epochs)
        return read_vectors(model, graph.shape[0])

    def generate_walks(self, graph: csr_array) -> NDArray[np.int64]:
        """Return the walks, one per row: in each round one from every vertex with edges, in random order."""
        walk_graph = kernels.build_walk_graph(as_weight_matrix(graph))
        starts = np.flatnonzero(np.diff(walk_graph.first))
        walks = np.empty((self.walks, len(starts), self.length), np.int64)
        for round_number in range(self.walks):
            order = np.random.default_rng([self.seed, round_number]).permutation(starts)
            self._walk_round(walk_graph, order, draw_key(self.seed, 0, round_number), walks[round_number])
        return walks.reshape(-1, self.length)

    def _walk_round(
        self, graph: kernels.WalkGraph, order: NDArray[np.int64], key: np.uint64, walks: NDArray[np.int64]
    ) -> None:
        def walk_block(begin: int, end: int) -> None:
            self._walk(graph, order[begin:end], key, walks[begin:end])

        for_each_block(walk_block, len(order), size=WALKS_PER_BLOCK, threads=self.threads)

    def _walk(
        self, graph: kernels.WalkGraph, starts: NDArray[np.int64], key: np.uint64, walks: NDArray[np.int64]
    ) -> None:
        """Fill a row with the walk from each start; subclasses override this."""
        kernels.walk_by_weight(*graph, starts, key, walks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node2Vec(DeepWalk):
    """node2vec: DeepWalk with second-order walks; a small p makes them return, a small q makes them explore.

    A walk that came from t to v continues to x in proportion to the weight of (v, x), divided by p if x is t, and by q
    if x is not a neighbor of t. With p = q = 1 the walks are those of DeepWalk, bit for bit.

    Examples
    --------
    >>> from ripplevec.lab.baselines import Node2Vec
    >>> from ripplevec.lab.datasets.synthetic import planted_partition
    >>> graph = planted_partition(communities=2, size=20).adjacency()
    >>> Node2Vec(dim=8, q=0.5).embed(graph).shape
    (40, 8)
    """

    p: float = 1.0
    q: float = 1.0

    def _walk(
        self, graph: kernels.WalkGraph, starts: NDArray[np.int64], key: np.uint64, walks: NDArray[np.int64]
    ) -> None:
        kernels.walk_with_bias(graph, (1 / self.p, 1.0, 1 / self.q), starts, key, walks)
