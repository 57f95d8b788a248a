"""struc2vec (Ribeiro et al., 2017): walks between vertices whose surroundings look alike, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _structure_kernels as kernels
from ripplevec.lab.baselines.base import checked
from ripplevec.lab.baselines.deepwalk import BLOCK, DeepWalk
from ripplevec.util.parallel import block_ranges, for_each_block

STAY = 0.3
"""The chance of a walk to step within its layer rather than to change it, as the authors set it."""

RINGS = 256
"""How many vertices are looked at together: a block of work for a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struc2Vec(DeepWalk):
    """DeepWalk on a graph of likeness, with the authors' three optimizations; weights of edges do not count.

    Layer k joins vertices whose rings up to distance k have similar degrees, up to `layers` of them (their OPT3).
    Rings are compared by their counts of each degree (OPT1), each vertex with the log₂ n before and behind it in the
    order of degrees (OPT2).
    """

    layers: int = 6

    def corpus(self, graph: csr_array) -> NDArray[np.int64]:
        """The walks, a row each; round after round, each round from all vertices that have edges, in random order."""
        matrix = checked(graph)
        order = _order(matrix, self.seed)
        if len(order) < 2:
            return np.empty((0, self.length), np.int64)
        walks = np.empty((self.walks, len(order), self.length), np.int64)
        cumulative, up = transitions(self.distances(matrix, order))
        for turn, rows in enumerate(walks):
            starts = np.random.default_rng([self.seed, turn]).permutation(len(order))
            key = draw_key(self.seed, 0, turn)
            step = partial(_walk, cumulative, up, starts, key, rows)
            for_each_block(step, len(order), size=BLOCK, threads=self.threads)
        return order[walks].reshape(-1, self.length)

    def distances(self, matrix: csr_array, order: NDArray[np.int64]) -> NDArray[np.float64]:
        """How vertices differ from those near them in `order`: by layer, position and partner.

        The partners are the nearest positions before and behind; infinite where there is none.
        """
        begins, runs = self._rings(matrix, order)
        reach = min(len(order) - 1, int(np.ceil(np.log2(len(order)))))
        behind = np.empty((self.layers, len(order), reach))
        for_each_block(partial(kernels.compare, begins, runs, behind), len(order), size=RINGS, threads=self.threads)
        before = np.full_like(behind, np.inf)
        for j in range(reach):
            before[:, j + 1 :, reach - 1 - j] = behind[:, : len(order) - 1 - j, j]
        return np.concatenate([before, behind], axis=2)

    def _rings(self, matrix: csr_array, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        first, neighbor = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        parts: dict[int, tuple[NDArray[np.int64], NDArray[np.int32]]] = {}

        def look(begin: int, end: int) -> None:
            parts[begin] = kernels.rings(first, neighbor, order[begin:end], self.layers)

        for_each_block(look, len(order), size=RINGS, threads=self.threads)
        found = [parts[begin] for begin, _ in block_ranges(len(order), RINGS)]
        counts = np.concatenate([np.diff(begins) for begins, _ in found])
        return np.concatenate([[0], np.cumsum(counts)]), np.concatenate([runs for _, runs in found])


def transitions(distances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The running sums of each vertex's weights in each layer, and its chance to go up where it changes the layer."""
    distances = distances[np.isfinite(distances).any(axis=(1, 2))]
    nearest = distances.min(axis=2)
    here = np.isfinite(nearest)
    # only ratios of weights count: taken relative to the greatest, they do not all underflow
    weights = np.exp(np.where(here, nearest, 0.0)[:, :, None] - distances)
    above = np.zeros_like(nearest)
    for layer, of in zip(above, distances, strict=True):
        weight = np.exp(of.min() - of)
        layer[:] = (weight > weight[np.isfinite(of)].mean()).sum(axis=1)
    rise = np.log(above + np.e)
    up = rise / (rise + 1)
    up[0] = 1
    up[:-1] *= here[1:]
    up[-1] = 0
    return np.cumsum(weights, axis=2), up


def _order(matrix: csr_array, seed: int) -> NDArray[np.int64]:
    """The vertices that have edges by degree, then by how many walks of two and three edges they begin.

    The rest is left to chance: numbers of vertices may follow what an embedding is tested on.
    """
    joined = csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    degree = np.diff(matrix.indptr).astype(np.float64)
    two = joined @ degree
    chance = np.random.default_rng(seed).random(len(degree))
    order = np.lexsort((chance, joined @ two, two, degree))
    return order[degree[order] > 0]


def _walk(
    cumulative: NDArray[np.float64],
    up: NDArray[np.float64],
    starts: NDArray[np.int64],
    key: np.uint64,
    rows: NDArray[np.int64],
    begin: int,
    end: int,
) -> None:
    kernels.walk(cumulative, up, STAY, starts[begin:end], key, rows[begin:end])
