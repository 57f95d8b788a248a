"""What rules have in common whose rows are served as they are and that have no anchors: all but how vectors move."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.rules.base import Rows
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.base import Progress
from ripplevec.views.coordinates import identity_scaling
from ripplevec.views.laplacian import laplacian_vectors


class LaplacianRule:
    """Laplacian eigenvectors at the start, then whatever `apply` of a rule that builds on this does to them."""

    one_by_one: ClassVar[bool] = True
    precision: ClassVar[type[np.floating[Any]]] = np.float64
    ready = False
    rows_shortened = 0  # rows are not bounded

    def __init__(self, dim: int, *, normalization: str = "symmetric") -> None:
        self.dim, self.normalization = dim, normalization

    @property
    def scaling(self) -> ViewScaling:
        """Rows are compared as they are."""
        return identity_scaling(self.dim)

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Eigenvectors of the graph as it is; vertices without edges have none."""
        rows = store.graph.row_count
        with limit_blas_to_one_thread():  # the same bits however many threads there are
            store.vectors[:rows] = laplacian_vectors(
                store.graph.adjacency, rows, self.dim, self.normalization, progress
            )
        store.placed[:rows] = store.graph.adjacency.links.degree[:rows] > 0
        self.ready = True

    def apply_arrival(
        self, store: VectorStore, names: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, int]:
        """No quick way."""
        return -1, 0, 0

    def anchor(self, store: VectorStore, sequence: int, threshold: float) -> Rows:
        """Nothing: there is no global correction."""
        return np.empty(0, np.int64)

    def reset(self, store: VectorStore) -> None:
        """Wait for a new start, unless vertices are left that keep their vectors."""
        self.ready = bool(store.placed.any())

    def preview(self, store: VectorStore, neighbors: Rows, weights: NDArray[np.float32]) -> NDArray[Any]:
        """The mean of the neighbors."""
        placed = neighbors[store.placed[neighbors] == 1]
        mean: NDArray[Any] = store.vectors[placed].mean(axis=0) if placed.size else np.zeros(self.dim)
        return mean

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Rows as they are, in single precision."""
        return rows.astype(np.float32)

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """`serve`, which never changes."""
        return self.to_served

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Vectors as they are."""
        return np.asarray(vectors, np.float64)

    def orthogonality_error(self, store: VectorStore) -> float:
        """How far FᵀF is from one on the diagonal and nothing beside it."""
        vectors = store.vectors[: store.graph.row_count]
        return float(np.abs(vectors.T @ vectors - np.eye(self.dim)).max(initial=0.0))

    def copy(self) -> Self:
        """A rule that has learned the same."""
        return deepcopy(self)

    def state(self) -> dict[str, NDArray[Any]]:
        """Whether there has been a start: there is nothing else to remember."""
        return {"ready": np.array([self.ready])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.ready = bool(state["ready"][0])
