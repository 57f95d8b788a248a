"""The methods of `Embedder` on a session: changes are written to disk first, and reads go to the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ripplevec.batch import NO_NEIGHBORS, Batch, EdgeListLike, Id, IdsLike, Op, resolve_neighbors
from ripplevec.changes import Changes
from ripplevec.durability.session_model import SessionModel
from ripplevec.times import TimeLike
from ripplevec.vector_reads import VectorReads


class SessionVerbs(VectorReads):
    """Methods with the names, arguments and errors of `Embedder`; every change may have an idempotency key."""

    model: SessionModel

    def apply(self, batch: EdgeListLike, *, key: str | None = None) -> Changes:
        """Write a batch to disk, then apply it."""
        raise NotImplementedError

    # ------------------------------------------------------------------ changing the model

    def partial_fit(self, edges: EdgeListLike, *, key: str | None = None, **columns: Any) -> Changes:
        """Apply a batch; see `Embedder.partial_fit` and `apply`."""
        return self.apply(Batch.from_any(edges, directed=self.model.directed, **columns), key=key)

    def add_edges(self, edges: EdgeListLike, *, key: str | None = None) -> Changes:
        """Add edges; see `Embedder.add_edges`."""
        return self.partial_fit(edges, key=key)

    def add_vertex(
        self,
        vertex: Id,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: ArrayLike | None = None,
        time: TimeLike | None = None,
        *,
        key: str | None = None,
        neighbours: IdsLike | None = None,
    ) -> NDArray[np.float32]:
        """Add a vertex with its edges and return its vector; see `Embedder.add_vertex`."""
        self.apply(Batch.arrival(vertex, resolve_neighbors(neighbors, neighbours), weights, time), key=key)
        return self.model[vertex]

    def remove_edges(self, edges: EdgeListLike, *, key: str | None = None) -> Changes:
        """Remove edges; see `Embedder.remove_edges`."""
        return self.apply(Batch.from_any(edges, op=Op.REMOVE, directed=self.model.directed), key=key)

    def remove_vertex(self, vertex: Id, *, key: str | None = None) -> Changes:
        """Remove a vertex with all its edges; see `Embedder.remove_vertex`."""
        return self.apply(Batch.vertices([vertex], Op.REMOVE_VERTEX), key=key)

    # ------------------------------------------------------------------ reading the model

    def __len__(self) -> int:
        return len(self.model)

    def __contains__(self, vertex: object) -> bool:
        return vertex in self.model

    def __iter__(self) -> Iterator[Id]:
        return iter(self.model)

    @property
    def ids(self) -> list[Id]:
        """Ids of all vertices, in order of arrival."""
        return self.model.ids

    @property
    def sequence(self) -> int:
        """Number of batches applied since the start."""
        return self.model.sequence

    def vectors(self, ids: IdsLike) -> NDArray[np.float32]:
        """Return the vectors of vertices; see `Embedder.vectors`."""
        return self.model.vectors(ids)

    def nearest(self, vertex: Any, k: int = 10, *, among: Any = None) -> list[tuple[Id, float]]:
        """Return the vertices most similar to a vertex or a vector; see `Embedder.nearest`."""
        return self.model.nearest(vertex, k, among=among)

    def nearest_many(self, vertices: Any, k: int = 10, *, among: Any = None) -> list[list[tuple[Id, float]]]:
        """Return the vertices most similar to each of several; see `Embedder.nearest_many`."""
        return self.model.nearest_many(vertices, k, among=among)

    def preview(self, neighbors: IdsLike = NO_NEIGHBORS, weights: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the vector that a new vertex would get; see `Embedder.preview`."""
        return self.model.preview(neighbors, weights)

    def degree(self, ids: Id | IdsLike) -> NDArray[np.int64] | int:
        """Return the number of edges of one vertex or several; see `Embedder.degree`."""
        return self.model.degree(ids)

    def neighbors(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex with the weights of the edges; see `Embedder.neighbors`."""
        return self.model.neighbors(vertex, limit)
