"""Rule `paper`: Algorithms 1 and 2 of the paper, exactly; FᵀF stays what it was (Lemma 1)."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.graph import Delta, under
from ripplevec.influence.cached_cascade import ReusedCascade
from ripplevec.influence.cascade import Cascade, Rows
from ripplevec.rules import _paper_kernels as kernels
from ripplevec.rules.static_rule import PlainRule
from ripplevec.rules.vector_store import Field
from ripplevec.util.parallel import one_blas_thread
from ripplevec.views.base import Progress

ON_EMPTY = ("neighbors", "zero", "resample")
ATTEMPTS = 100  # at drawing a set that is not empty, before all neighbors are taken


class PaperRule(PlainRule):
    """The new vector is the mean over the influenced; each of them gives up α of it, α = 1 − √(1 − 1/|I|)."""

    def __init__(
        self, dim: int, *, depth: int | None, seed: int, on_empty: str, normalization: str, reuse_influence: bool
    ) -> None:
        super().__init__(dim, normalization=normalization)
        self.ready = True  # the first arrivals at an empty graph have vectors of their own
        self.cascade = (ReusedCascade if reuse_influence else Cascade)(depth, seed)
        self.on_empty = on_empty
        self.units = 0  # unit vectors e_1 … given to the first arrivals of a model that began empty
        self.began_empty = True
        self.initial_gram = np.zeros((dim, dim))

    def start(self, field: Field, progress: Progress | None = None) -> None:
        """Plain Laplacian eigenvectors; without an edge there is nothing to say and the first arrivals begin."""
        super().start(field, progress)
        self.began_empty = field.graph.adjacency.edges == 0
        self.units = 0
        rows = field.vectors[: field.graph.rows]
        with one_blas_thread():
            self.initial_gram = rows.T @ rows

    def apply(self, field: Field, delta: Delta, sequence: int) -> Rows:
        """Let the arrival of a step (there is one at the most) act; the rows that moved, each once."""
        moved: list[Rows] = [delta.arrived]
        waiting = deque(delta.arrived.tolist())
        while waiting:
            row = waiting.popleft()
            if field.placed[row]:  # two newcomers may have asked for the same unplaced neighbor
                continue
            if self.began_empty and self.units < self.dim:
                field.vectors[row, self.units] = 1.0
                self.units += 1
            elif (influenced := self._influenced(field, row)) is None:
                continue
            else:
                kernels.act(field.vectors, row, influenced)
                moved += [influenced, np.array([row])]
            field.placed[row] = 1
            around = np.unique(field.graph.adjacency.neighbors(row))
            waiting.extend(around[field.placed[around] == 0].tolist())
        return np.unique(np.concatenate(moved))

    def _influenced(self, field: Field, row: int) -> Rows | None:
        """The influenced set of an arrival, None where it cannot be placed yet."""
        neighbors = field.graph.adjacency.neighbors(row)
        neighbors = neighbors[field.placed[neighbors] == 1]
        if not neighbors.size:
            return None
        for attempt in range(ATTEMPTS if self.on_empty == "resample" else 1):
            influenced = self.cascade.influenced(field.graph, row, attempt)
            influenced = influenced[field.placed[influenced] == 1]
            if influenced.size:
                return influenced
        return influenced if self.on_empty == "zero" else neighbors

    def reset(self, field: Field) -> None:
        """Begin with unit vectors again, unless vertices are left that keep theirs."""
        if not field.placed.any():
            self.began_empty, self.units = True, 0

    def error(self, field: Field) -> float:
        """How far FᵀF is from what it was at the start: rounding, unless vertices were removed."""
        vectors = field.vectors[: field.graph.rows]
        initial = self.initial_gram
        if self.began_empty:
            initial = np.diag((np.arange(self.dim) < self.units).astype(np.float64))
        return float(np.abs(vectors.T @ vectors - initial).max(initial=0.0))

    def state(self) -> dict[str, NDArray[Any]]:
        """What the rule itself remembers, as arrays."""
        units = np.array([self.units, self.began_empty])
        state: dict[str, NDArray[Any]] = {"units": units, "initial_gram": self.initial_gram}
        if isinstance(self.cascade, ReusedCascade):
            state |= {f"cascade_{name}": array for name, array in self.cascade.state().items()}
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.units, self.began_empty = int(state["units"][0]), bool(state["units"][1])
        self.initial_gram = state["initial_gram"]
        if isinstance(self.cascade, ReusedCascade):
            self.cascade.restore(under("cascade_", state))
