"""Rule `paper`: the unmodified Algorithms 1 and 2 of *Streaming Network Embedding through Local Actions*."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta, strip_prefix
from ripplevec.influence.cascade import CachedCascade, Cascade
from ripplevec.rules.laplacian_rule import LaplacianRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import Progress

ON_EMPTY = ("neighbors", "zero", "resample")  # replacements for an empty influenced set; see `Embedder`
_NO_ROWS: RowArray = np.empty(0, np.int64)
MAX_RESAMPLES = 100  # attempts to draw a non-empty influenced set, before all neighbors are used


class PaperRule(LaplacianRule):
    """Each arrival samples an influenced set (Algorithm 1) and moves it by one local action (Algorithm 2).

    The inner products FᵀF of the columns do not change (Lemma 1).
    """

    def __init__(
        self, dim: int, *, depth: int | None, seed: int, on_empty: str, normalization: str, reuse_influence: bool
    ) -> None:
        super().__init__(dim, normalization=normalization)
        self.ready = True  # no start needed: the first arrivals in an empty graph get unit vectors
        self.cascade = (CachedCascade if reuse_influence else Cascade)(depth, seed)
        self.on_empty = on_empty
        self.unit_vectors = 0  # number of unit vectors e_1 … given to the first arrivals of a model that began empty
        self.began_empty = True
        self.initial_gram = np.zeros((dim, dim))

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Embed the graph by Laplacian eigenvectors; a graph without edges counts as an empty model."""
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
            if self.began_empty and self.unit_vectors < self.dim:
                store.update_rows(partial(_set_unit_vector, self.unit_vectors), row, _NO_ROWS)
                self.unit_vectors += 1
            elif (influenced := self._draw_influenced(store, row)) is None:
                continue
            else:
                store.update_rows(apply_local_action, row, influenced)
                moved += [influenced, np.array([row])]
            store.placed[row] = 1
            neighbors = np.unique(store.graph.adjacency.neighbors(row))
            queue.extend(neighbors[store.placed[neighbors] == 0].tolist())
        return np.unique(np.concatenate(moved))

    def _draw_influenced(self, store: VectorStore, row: int) -> RowArray | None:
        """Return the influenced set of an arrival; None if it has no placed neighbor yet."""
        neighbors = store.graph.adjacency.neighbors(row)
        neighbors = neighbors[store.placed[neighbors] == 1]
        if not neighbors.size:
            return None
        for attempt in range(MAX_RESAMPLES if self.on_empty == "resample" else 1):
            influenced = self.cascade.sample_influenced(store.graph, row, attempt)
            influenced = influenced[store.placed[influenced] == 1]
            if influenced.size:
                return influenced
        return influenced if self.on_empty == "zero" else neighbors

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
        initial = self.initial_gram
        if self.began_empty:
            initial = np.diag((np.arange(self.dim) < self.unit_vectors).astype(np.float64))
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


@njit(cache=True, nogil=True)
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
