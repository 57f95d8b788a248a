"""The methods of `Embedder` on a session: changes are written to disk first, and reads go to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ripplevec.attributes.input import AttributesLike, attach_attributes, read_attributes, read_one, read_values
from ripplevec.batch import NO_NEIGHBORS, Batch, EdgeListLike, Id, IdsLike, Op, read_removals, resolve_neighbors
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

    def partial_fit(
        self,
        edges: EdgeListLike,
        *,
        src: Any = None,
        dst: Any = None,
        weight: Any = None,
        time: Any = None,
        attributes: AttributesLike | None = None,
        key: str | None = None,
    ) -> Changes:
        """Apply a batch; see `Embedder.partial_fit` and `apply`."""
        directed = self.model.directed
        batch = Batch.from_any(edges, directed=directed, src=src, dst=dst, weight=weight, time=time)
        return self.apply(
            batch if attributes is None else attach_attributes(batch, read_attributes(attributes)), key=key
        )

    def set_attributes(self, ids: IdsLike, attributes: Any, *, key: str | None = None) -> Changes:
        """Set the attributes of vertices; see `Embedder.set_attributes`."""
        rows = read_values(ids, attributes)
        self.model.degree(rows.ids)  # raises `UnknownVertexError`
        return self.apply(attach_attributes(Batch.of([], []), rows), key=key)

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
        attributes: Any = None,
        neighbours: IdsLike | None = None,
        key: str | None = None,
    ) -> NDArray[np.float32]:
        """Add a vertex with its edges and return its vector; see `Embedder.add_vertex`."""
        batch = Batch.arrival(vertex, resolve_neighbors(neighbors, neighbours), weights, time)
        self.apply(batch if attributes is None else attach_attributes(batch, read_one(vertex, attributes)), key=key)
        return self.model[vertex]

    def remove_edges(self, edges: EdgeListLike, *, key: str | None = None) -> Changes:
        """Remove edges; see `Embedder.remove_edges`."""
        return self.apply(read_removals(edges, directed=self.model.directed), key=key)

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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vectors for `numpy.asarray(session)`, as for a model."""
        return self.model.__array__(dtype, copy)

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

    def nearest_by_attributes(self, attributes: Any, k: int = 10, *, among: Any = None) -> list[tuple[Id, float]]:
        """Return the vertices with the most similar attributes; see `Embedder.nearest_by_attributes`."""
        return self.model.nearest_by_attributes(attributes, k, among=among)

    def score(self, pairs: EdgeListLike, *, newcomers: Any = None) -> NDArray[np.float32]:
        """Return how expected each candidate edge is; see `Embedder.score`."""
        return self.model.score(pairs, newcomers=newcomers)

    def recommend(
        self,
        vertex: Any,
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: Literal["neighbors"] | None = "neighbors",
        newcomers: Mapping[Id, IdsLike] | None = None,
    ) -> Any:
        """Return the most expected new edges of one vertex or several; see `Embedder.recommend`."""
        return self.model.recommend(vertex, k, among=among, exclude=exclude, newcomers=newcomers)

    def preview(
        self,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: ArrayLike | None = None,
        *,
        attributes: Any = None,
        neighbours: IdsLike | None = None,
    ) -> NDArray[np.float32]:
        """Return the vector that a new vertex would get; see `Embedder.preview`."""
        return self.model.preview(neighbors, weights, attributes=attributes, neighbours=neighbours)

    def degree(self, ids: Id | IdsLike) -> NDArray[np.int64] | int:
        """Return the number of edges of one vertex or several; see `Embedder.degree`."""
        return self.model.degree(ids)

    def age(self, ids: IdsLike) -> NDArray[np.int64]:
        """Return the number of vertices that arrived after each of these vertices; see `Embedder.age`."""
        return self.model.age(ids)

    def neighbors(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex with the weights of the edges; see `Embedder.neighbors`."""
        return self.model.neighbors(vertex, limit)

    def neighbours(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex. British spelling of `neighbors`."""
        return self.neighbors(vertex, limit)

    def transform(self, ids: IdsLike) -> NDArray[np.float32]:
        """Return the vectors of vertices; see `Embedder.transform`."""
        return self.model.transform(ids)
