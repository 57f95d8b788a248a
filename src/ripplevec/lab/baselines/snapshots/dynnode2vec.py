"""dynnode2vec (Mahdavi et al., 2018) and GloDyNE (Hou et al., 2020): skip-gram continues on walks of every snapshot."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.skip_gram import create_skip_gram, read_vectors, train_skip_gram
from ripplevec.lab.baselines.snapshots.base import changed_vertices, extend_matrix

Vertices = NDArray[np.int64]


@dataclass(kw_only=True)
class DynNode2Vec:
    """dynnode2vec: the first snapshot is trained completely, later ones on walks from vertices with changed edges.

    The walks are those of node2vec with the biases `p` and `q`.
    """

    dim: int = 128
    walks: int = 10
    length: int = 80
    window: int = 10
    epochs: int = 1
    p: float = 1.0
    q: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        self._model = create_skip_gram(self.dim, self.window, self.seed, downsampling=0)
        self._before: csr_array | None = None
        self._updates = 0

    def update(self, graph: csr_array) -> NDArray[np.float32]:
        """Train on walks of the next snapshot; return a vector per row, zero for vertices without edges so far."""
        matrix = as_weight_matrix(graph)
        matrix.sort_indices()
        starts = self.select(matrix)
        if starts.size:
            train_skip_gram(self._model, self._generate_walks(matrix, starts), self.epochs)
        self._before = matrix
        self._updates += 1
        return read_vectors(self._model, matrix.shape[0])

    def select(self, matrix: csr_array) -> Vertices:
        """Return the vertices that walks begin at."""
        return changed_vertices(self._before, matrix)

    def _generate_walks(self, matrix: csr_array, starts: Vertices) -> Vertices:
        graph = kernels.build_walk_graph(matrix)
        walks = np.empty((self.walks, len(starts), self.length), np.int64)
        for round_number, rows in enumerate(walks):
            order = np.random.default_rng([self.seed, self._updates, round_number]).permutation(starts)
            key = draw_key(self.seed, self._updates, round_number)
            kernels.walk_with_bias(graph, (1 / self.p, 1.0, 1 / self.q), order, key, rows)
        return walks.reshape(-1, self.length)


@dataclass(kw_only=True)
class GloDyNE(DynNode2Vec):
    """GloDyNE: later walks begin at one vertex of every part of the graph, so that no region is forgotten.

    The parts have about 1 / `share` vertices each. In a part, vertices whose edges have changed much since they were
    last selected, relative to their degree, are more likely to be selected. Vertices that are new are always selected.
    The authors cut the graph with METIS; here parts are grown by breadth-first search.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share > 1:
            raise InvalidValueError.of("GloDyNE.share", "a number above 0, at most 1", self.share)
        self._reservoir = np.zeros(0)

    def select(self, matrix: csr_array) -> Vertices:
        """Return new vertices, and a vertex of every part."""
        before = extend_matrix(self._before, matrix.shape[0])
        known = np.diff(before.indptr) > 0
        fresh = np.flatnonzero((np.diff(matrix.indptr) > 0) & ~known)
        if self._before is None:
            return fresh
        change = np.asarray(abs(matrix - before).sum(axis=1)).ravel()
        self._reservoir = np.pad(self._reservoir, (0, matrix.shape[0] - len(self._reservoir))) + change
        scores = self._reservoir / np.maximum(np.asarray(before.sum(axis=1)).ravel(), 1)
        generator, chosen = np.random.default_rng([self.seed, self._updates]), []
        for part in grow_parts(matrix, max(round(1 / self.share), 1)):
            candidates = np.array([v for v in part if known[v]], np.int64)
            if candidates.size:
                weights = np.exp(np.minimum(scores[candidates], 50.0))
                chosen.append(int(generator.choice(candidates, p=weights / weights.sum())))
        self._reservoir[chosen] = 0
        return np.union1d(fresh, np.array(chosen, np.int64))


def grow_parts(matrix: csr_array, size: int) -> list[list[int]]:
    """Cut the vertices with edges into connected parts of at most `size` vertices, by breadth-first search."""
    first, neighbor = matrix.indptr.tolist(), matrix.indices.tolist()
    free = [first[v] < first[v + 1] for v in range(matrix.shape[0])]
    parts = []
    for seed in range(matrix.shape[0]):
        if not free[seed]:
            continue
        part, queue = list[int](), deque([seed])
        free[seed] = False
        while queue and len(part) < size:
            v = queue.popleft()
            part.append(v)
            for other in neighbor[first[v] : first[v + 1]]:
                if free[other] and len(part) + len(queue) < size:
                    free[other] = False
                    queue.append(other)
        parts.append(part)
    return parts
