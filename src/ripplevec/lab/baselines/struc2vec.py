"""struc2vec (Ribeiro et al., 2017): walks between vertices with similar surroundings, anywhere in the graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _struc2vec_kernels as kernels
from ripplevec.lab.baselines.base import as_weight_matrix
from ripplevec.lab.baselines.random_walks import WALKS_PER_BLOCK, DeepWalk
from ripplevec.util.parallel import block_ranges, for_each_block

STAY_PROBABILITY = 0.3
"""Probability that a walk steps within its layer instead of changing it, as the authors set it."""

VERTICES_PER_BLOCK = 256
"""Vertices whose rings one thread computes at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struc2Vec(DeepWalk):
    """struc2vec with the authors' three optimizations: DeepWalk on a similarity graph; edge weights are ignored.

    Layer k joins vertices whose rings up to distance k have similar degrees, for up to `layers` layers (OPT3 of the
    paper). Rings are compared by their counts of each degree (OPT1), each vertex with the log₂ n vertices before and
    after it in the degree order (OPT2).
    """

    layers: int = 6

    def generate_walks(self, graph: csr_array) -> NDArray[np.int64]:
        """Return the walks, one per row: in each round one from every vertex with edges, in random order."""
        matrix = as_weight_matrix(graph)
        order = _degree_order(matrix, self.seed)
        if len(order) < 2:
            return np.empty((0, self.length), np.int64)
        walks = np.empty((self.walks, len(order), self.length), np.int64)
        cumulative, up = compute_transitions(self.compute_distances(matrix, order))
        for round_number, rows in enumerate(walks):
            starts = np.random.default_rng([self.seed, round_number]).permutation(len(order))
            key = draw_key(self.seed, 0, round_number)
            walk_block = partial(_walk_block, cumulative, up, starts, key, rows)
            for_each_block(walk_block, len(order), size=WALKS_PER_BLOCK, threads=self.threads)
        return order[walks].reshape(-1, self.length)

    def compute_distances(self, matrix: csr_array, order: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the structural distances of vertices to their partners in `order`, by layer, position and partner.

        The partners are the nearest positions before and after a vertex; the distance is infinite where there is none.
        """
        begins, runs = self._collect_rings(matrix, order)
        reach = min(len(order) - 1, int(np.ceil(np.log2(len(order)))))
        after = np.empty((self.layers, len(order), reach))
        compare_block = partial(kernels.compare_rings, begins, runs, after)
        for_each_block(compare_block, len(order), size=VERTICES_PER_BLOCK, threads=self.threads)
        before = np.full_like(after, np.inf)
        for j in range(reach):
            before[:, j + 1 :, reach - 1 - j] = after[:, : len(order) - 1 - j, j]
        return np.concatenate([before, after], axis=2)

    def _collect_rings(
        self, matrix: csr_array, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        first, neighbor = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        parts: dict[int, tuple[NDArray[np.int64], NDArray[np.int32]]] = {}

        def collect_block(begin: int, end: int) -> None:
            parts[begin] = kernels.collect_rings(first, neighbor, order[begin:end], self.layers)

        for_each_block(collect_block, len(order), size=VERTICES_PER_BLOCK, threads=self.threads)
        blocks = [parts[begin] for begin, _ in block_ranges(len(order), VERTICES_PER_BLOCK)]
        counts = np.concatenate([np.diff(begins) for begins, _ in blocks])
        return np.concatenate([[0], np.cumsum(counts)]), np.concatenate([runs for _, runs in blocks])


def compute_transitions(distances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each vertex's cumulative partner weights per layer, and its probability of going up a layer."""
    distances = distances[np.isfinite(distances).any(axis=(1, 2))]
    nearest = distances.min(axis=2)
    in_layer = np.isfinite(nearest)
    # Only ratios of weights matter: relative to the largest weight they do not all underflow.
    weights = np.exp(np.where(in_layer, nearest, 0.0)[:, :, None] - distances)
    above_mean = np.zeros_like(nearest)
    for counts, layer_distances in zip(above_mean, distances, strict=True):
        weight = np.exp(layer_distances.min() - layer_distances)
        counts[:] = (weight > weight[np.isfinite(layer_distances)].mean()).sum(axis=1)
    rise = np.log(above_mean + np.e)
    up = rise / (rise + 1)
    up[0] = 1
    up[:-1] *= in_layer[1:]
    up[-1] = 0
    return np.cumsum(weights, axis=2), up


def _degree_order(matrix: csr_array, seed: int) -> NDArray[np.int64]:
    """Sort the vertices with edges by degree, then by the number of walks of two and of three edges they begin.

    Ties are broken at random, because vertex numbers may correlate with the labels an embedding is tested on.
    """
    unweighted = csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    degree = np.diff(matrix.indptr).astype(np.float64)
    two_edge_walks = unweighted @ degree
    tie_breaker = np.random.default_rng(seed).random(len(degree))
    order = np.lexsort((tie_breaker, unweighted @ two_edge_walks, two_edge_walks, degree))
    return order[degree[order] > 0]


def _walk_block(
    cumulative: NDArray[np.float64],
    up: NDArray[np.float64],
    starts: NDArray[np.int64],
    key: np.uint64,
    walks: NDArray[np.int64],
    begin: int,
    end: int,
) -> None:
    kernels.walk_layers(cumulative, up, STAY_PROBABILITY, starts[begin:end], key, walks[begin:end])
