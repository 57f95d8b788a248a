"""Rule `paper`: Algorithms 1 and 2 of the paper, exactly; FᵀF stays what it was (Lemma 1)."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.graph import GraphDelta, strip_prefix
from ripplevec.influence.cached_cascade import CachedCascade
from ripplevec.influence.cascade import Cascade, Rows
from ripplevec.rules import _paper_kernels as kernels
from ripplevec.rules.laplacian_rule import LaplacianRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import Progress

ON_EMPTY = ("neighbors", "zero", "resample")
ATTEMPTS = 100  # at drawing a set that is not empty, before all neighbors are taken


class PaperRule(LaplacianRule):
    """The new vector is the mean over the influenced; each of them gives up α of it, α = 1 − √(1 − 1/|I|)."""

    def __init__(
        self, dim: int, *, depth: int | None, seed: int, on_empty: str, normalization: str, reuse_influence: bool
    ) -> None:
        super().__init__(dim, normalization=normalization)
        self.ready = True  # the first arrivals at an empty graph have vectors of their own
        self.cascade = (CachedCascade if reuse_influence else Cascade)(depth, seed)
        self.on_empty = on_empty
        self.units = 0  # unit vectors e_1 … given to the first arrivals of a model that began empty
        self.began_empty = True
        self.initial_gram = np.zeros((dim, dim))

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Plain Laplacian eigenvectors; without an edge there is nothing to say and the first arrivals begin."""
        super().start(store, progress)
        self.began_empty = store.graph.adjacency.edge_count == 0
        self.units = 0
        rows = store.vectors[: store.graph.row_count]
        with limit_blas_to_one_thread():
            self.initial_gram = rows.T @ rows

    def apply(self, store: VectorStore, delta: GraphDelta, sequence: int) -> Rows:
        """Let the arrival of a step (there is one at the most) act; the rows that moved, each once."""
        moved: list[Rows] = [delta.arrived]
        waiting = deque(delta.arrived.tolist())
        while waiting:
            row = waiting.popleft()
            if store.placed[row]:  # two newcomers may have asked for the same unplaced neighbor
                continue
            if self.began_empty and self.units < self.dim:
                store.vectors[row, self.units] = 1.0
                self.units += 1
            elif (influenced := self._influenced(store, row)) is None:
                continue
            else:
                kernels.apply_local_action(store.vectors, row, influenced)
                moved += [influenced, np.array([row])]
            store.placed[row] = 1
            around = np.unique(store.graph.adjacency.neighbors(row))
            waiting.extend(around[store.placed[around] == 0].tolist())
        return np.unique(np.concatenate(moved))

    def _influenced(self, store: VectorStore, row: int) -> Rows | None:
        """The influenced set of an arrival, None where it cannot be placed yet."""
        neighbors = store.graph.adjacency.neighbors(row)
        neighbors = neighbors[store.placed[neighbors] == 1]
        if not neighbors.size:
            return None
        for attempt in range(ATTEMPTS if self.on_empty == "resample" else 1):
            influenced = self.cascade.sample_influenced(store.graph, row, attempt)
            influenced = influenced[store.placed[influenced] == 1]
            if influenced.size:
                return influenced
        return influenced if self.on_empty == "zero" else neighbors

    def reset(self, store: VectorStore) -> None:
        """Begin with unit vectors again, unless vertices are left that keep theirs."""
        if not store.placed.any():
            self.began_empty, self.units = True, 0

    def orthogonality_error(self, store: VectorStore) -> float:
        """How far FᵀF is from what it was at the start: rounding, unless vertices were removed."""
        vectors = store.vectors[: store.graph.row_count]
        initial = self.initial_gram
        if self.began_empty:
            initial = np.diag((np.arange(self.dim) < self.units).astype(np.float64))
        return float(np.abs(vectors.T @ vectors - initial).max(initial=0.0))

    def state(self) -> dict[str, NDArray[Any]]:
        """What the rule itself remembers, as arrays."""
        units = np.array([self.units, self.began_empty])
        state: dict[str, NDArray[Any]] = {"units": units, "initial_gram": self.initial_gram}
        if isinstance(self.cascade, CachedCascade):
            state |= {f"cascade_{name}": array for name, array in self.cascade.state().items()}
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.units, self.began_empty = int(state["units"][0]), bool(state["units"][1])
        self.initial_gram = state["initial_gram"]
        if isinstance(self.cascade, CachedCascade):
            self.cascade.restore(strip_prefix("cascade_", state))
