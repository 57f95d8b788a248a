"""Base class of rules without views and anchors: Laplacian eigenvectors at the start, rows served unchanged."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.graph.adjacency import RowArray
from ripplevec.influence.cascade import RowReads
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.base import Progress
from ripplevec.views.coordinates import identity_scaling
from ripplevec.views.laplacian import laplacian_vectors


class LaplacianRule:
    """Base class that implements everything of a `Rule` except `apply`.

    The start computes Laplacian eigenvectors; rows are served unchanged, and there are no anchors.
    """

    one_by_one: ClassVar[bool] = True
    precision: ClassVar[type[np.floating[Any]]] = np.float64
    ready = False
    rows_shortened = 0  # rows are not bounded

    def __init__(self, dim: int, *, normalization: str = "symmetric", components: str = "together") -> None:
        self.dim, self.normalization, self.components = dim, normalization, components

    @property
    def scaling(self) -> ViewScaling:
        """Scaling of rows before they are compared: none."""
        return identity_scaling(self.dim)

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Embed the graph by Laplacian eigenvectors; vertices without edges stay unplaced."""
        rows = store.graph.row_count
        with limit_blas_to_one_thread():  # the same bits for any number of threads
            store.vectors[:rows] = laplacian_vectors(
                store.graph.adjacency, rows, self.dim, self.normalization, progress, components=self.components
            )
        store.placed[:rows] = store.graph.adjacency.links.degree[:rows] > 0
        self.ready = True

    def apply_arrival(
        self, store: VectorStore, ids: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, RowArray]:
        """Return −1: there is no fast path for single arrivals."""
        return -1, 0, np.empty(0, np.int64)

    def anchor(self, store: VectorStore, sequence: int, threshold: float) -> RowArray:
        """Do nothing and return no rows: there is no global correction."""
        return np.empty(0, np.int64)

    def reset(self, store: VectorStore) -> None:
        """Wait for a new start, unless placed vertices are left."""
        self.ready = bool(store.placed.any())

    def preview(self, reads: RowReads, neighbors: RowArray, weights: NDArray[np.float32]) -> NDArray[Any]:
        """Return the mean of the placed neighbors; zero if there is none."""
        placed = neighbors[reads.read_rows(neighbors, "placed") == 1]
        mean: NDArray[Any] = reads.read_rows(placed, "vectors").mean(axis=0) if placed.size else np.zeros(self.dim)
        return mean

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return rows unchanged, in single precision."""
        return rows.astype(np.float32)

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """Return `to_served`, which never changes."""
        return self.to_served

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Return vectors unchanged, in double precision."""
        return np.asarray(vectors, np.float64)

    def orthogonality_error(self, store: VectorStore) -> float:
        """Return the largest deviation of FᵀF from the identity."""
        vectors = store.vectors[: store.graph.row_count]
        return float(np.abs(vectors.T @ vectors - np.eye(self.dim)).max(initial=0.0))

    def copy(self) -> Self:
        """Return an independent copy of the rule."""
        return deepcopy(self)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the only state, whether there has been a start, as an array for saving."""
        return {"ready": np.array([self.ready])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        self.ready = bool(state["ready"][0])
