"""Rule `paper`: the unmodified Algorithms 1 and 2 of *Streaming Network Embedding through Local Actions*."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta, strip_prefix
from ripplevec.influence.cascade import NO_ROWS, CachedCascade, Cascade, RowReads
from ripplevec.rules.laplacian_rule import LaplacianRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.numba_intrinsics import kernel
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import Progress

ON_EMPTY = ("neighbors", "zero", "resample")  # replacements for an empty influenced set; see `Embedder`
MAX_RESAMPLES = 100  # attempts to draw a non-empty influenced set, before all neighbors are used


class PaperRule(LaplacianRule):
    """Each arrival samples an influenced set (Algorithm 1) and moves it by one local action (Algorithm 2).

    The inner products FᵀF of the columns do not change (Lemma 1).
    """

    def __init__(
        self,
        dim: int,
        *,
        depth: int | None,
        seed: int,
        on_empty: str,
        late_placement: bool,
        normalization: str,
        components: str,
        reuse_influence: bool,
        directed: bool,
    ) -> None:
        super().__init__(dim, normalization=normalization, components=components)
        self.ready = True  # no start needed: the first arrivals in an empty graph get unit vectors
        self.cascade = CachedCascade(depth, seed, directed=directed) if reuse_influence else Cascade(depth, seed)
        self.on_empty, self.late_placement = on_empty, late_placement
        self.unit_vectors = 0  # number of unit vectors given to arrivals, for columns that the start has left zero
        self.began_empty = True
        self.initial_gram = np.zeros((dim, dim))

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Embed the graph by Laplacian eigenvectors; a graph without edges counts as an empty model.

        A graph with fewer eigenvectors than columns leaves columns zero. As every local action preserves FᵀF, they
        would stay zero: the next arrivals get unit vectors in them, like the first arrivals of an empty model.
        """
        super().start(store, progress)
        self.began_empty = store.graph.adjacency.edge_count == 0
        self.unit_vectors = 0
        rows = store.vectors[: store.graph.row_count]
        with limit_blas_to_one_thread():
            self.initial_gram = rows.T @ rows

    def apply(self, store: VectorStore, delta: GraphDelta, sequence: int) -> RowArray:
        """Apply the local action of the arrival in this change (at most one); return the rows that moved, each once."""
        moved: list[RowArray] = [delta.arrived]
        queue = deque(delta.arrived.tolist())
        while queue:
            row = queue.popleft()
            if store.placed[row]:  # an unplaced neighbor may have been queued twice
                continue
            if self._columns_in_use() < self.dim:
                store.update_rows(partial(_set_unit_vector, self._columns_in_use()), row, NO_ROWS)
                self.unit_vectors += 1
            else:
                neighbors = store.graph.adjacency.neighbors(row)
                sample = partial(self.cascade.sample_influenced, store.graph, row)
                influenced = self._draw_influenced(neighbors, sample, lambda rows: store.placed[rows])
                if influenced is None:
                    continue
                store.update_rows(apply_local_action, row, influenced)
                moved += [influenced, np.array([row])]
            store.placed[row] = 1
            if self.late_placement:
                neighbors = np.unique(store.graph.adjacency.neighbors(row))
                queue.extend(neighbors[store.placed[neighbors] == 0].tolist())
        return np.unique(np.concatenate(moved))

    def preview(self, reads: RowReads, neighbors: RowArray, weights: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the row of the next arrival if it has these edges, with the draws that the arrival would make."""
        row = np.zeros(self.dim)
        if self._columns_in_use() < self.dim:
            row[self._columns_in_use()] = 1.0
            return row
        sample = partial(self.cascade.sample_for_newcomer, reads, neighbors, weights)
        influenced = self._draw_influenced(neighbors, sample, partial(reads.read_rows, attribute="placed"))
        if influenced is not None and influenced.size:
            row[:] = reads.read_rows(influenced, "vectors").mean(axis=0)
        return row

    def _draw_influenced(
        self,
        neighbors: RowArray,
        sample: Callable[[int], RowArray],
        read_placed: Callable[[RowArray], NDArray[np.uint8]],
    ) -> RowArray | None:
        """Return the influenced set of an arrival; None if it has no placed neighbor yet.

        `sample` returns the rows that a cascade reaches; each attempt is an independent sample.
        """
        neighbors = neighbors[read_placed(neighbors) == 1]
        if not neighbors.size:
            return None
        for attempt in range(MAX_RESAMPLES if self.on_empty == "resample" else 1):
            influenced = sample(attempt)
            influenced = influenced[read_placed(influenced) == 1]
            if influenced.size:
                return influenced
        return influenced if self.on_empty == "zero" else neighbors

    def _columns_in_use(self) -> int:
        """Return the number of columns that are not zero: those of the start, then those of unit vectors."""
        start_columns = 0 if self.began_empty else int(np.count_nonzero(self.initial_gram.diagonal()))
        return start_columns + self.unit_vectors

    def reset(self, store: VectorStore) -> None:
        """Start again with unit vectors, unless placed vertices are left."""
        if not store.placed.any():
            self.began_empty, self.unit_vectors = True, 0

    def orthogonality_error(self, store: VectorStore) -> float:
        """Return the largest deviation of FᵀF from its initial value: rounding, unless vertices were removed."""
        vectors = store.vectors[: store.graph.row_count]
        return self.gram_deviation(vectors.T @ vectors)

    def gram_deviation(self, gram: NDArray[np.float64]) -> float:
        """Return the largest deviation of FᵀF from its initial value."""
        used = self._columns_in_use()
        units = (np.arange(self.dim) >= used - self.unit_vectors) & (np.arange(self.dim) < used)
        initial = np.diag(units.astype(np.float64)) + (0.0 if self.began_empty else self.initial_gram)
        return float(np.abs(gram - initial).max(initial=0.0))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of the rule as arrays, for saving."""
        counters = np.array([self.unit_vectors, self.began_empty])
        state: dict[str, NDArray[Any]] = {"units": counters, "initial_gram": self.initial_gram}
        if isinstance(self.cascade, CachedCascade):
            state |= {f"cascade_{name}": array for name, array in self.cascade.state().items()}
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        self.unit_vectors, self.began_empty = int(state["units"][0]), bool(state["units"][1])
        self.initial_gram = state["initial_gram"]
        if isinstance(self.cascade, CachedCascade):
            self.cascade.restore(strip_prefix("cascade_", state))


def _set_unit_vector(column: int, vectors: NDArray[np.float64], row: int, others: RowArray) -> None:
    vectors[row, column] = 1.0


@kernel
def apply_local_action(vectors: NDArray[np.float64], row: int, influenced: NDArray[np.int64]) -> None:
    """Set x_v of an arrival v to the mean of x_u over its influenced set I; then x_u ← x_u − α x_v for u in I.

    α = 1 − √(1 − 1/|I|). If I is empty, x_v becomes zero.
    """
    count = influenced.size
    vectors[row] = 0
    if count == 0:
        return
    for u in influenced:
        for j in range(vectors.shape[1]):
            vectors[row, j] += vectors[u, j]
    for j in range(vectors.shape[1]):
        vectors[row, j] /= count
    alpha = 1 - np.sqrt(1 - 1 / count)
    for u in influenced:
        for j in range(vectors.shape[1]):
            vectors[u, j] -= alpha * vectors[row, j]
