# Generated from async_client.py by `make client`. Edit that file instead.
"""The blocking client of the service."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import httpx
import numpy as np
from httpx_sse import connect_sse
from numpy.typing import NDArray
from tenacity import Retrying

from ripplevec.attributes.input import AttributesLike
from ripplevec.batch import NO_NEIGHBORS, EdgeListLike, Id, IdsLike, resolve_neighbors
from ripplevec.client import protocol
from ripplevec.client.protocol import BatchChanges, Call, Newcomers, T, Vector, Weights
from ripplevec.errors import UnknownVertexError
from ripplevec.times import TimeLike
from ripplevec.vector_reads import cosine


class Client:
    """A client of a running service, with the methods of `Embedder` that make sense over HTTP.

    They have the same parameters and raise the same errors: `UnknownVertexError` and `UnknownEdgeError` name what does
    not exist, and `InvalidValueError` says which value cannot be used. Any method may also raise `ServiceError` for
    another error response, `UnreachableServiceError` without a connection, `UnexpectedResponseError` for the response
    of another server, and `StateError` after the client is closed.

    A request that cannot be delivered is sent again with the same idempotency key, so it is applied once.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:8080"
        Address of the service.
    token : str, optional
        Bearer token, if the service requires one.
    timeout : float, default 90.0
        Seconds to wait for a response.
    retries : int, default 5
        How often a request is repeated after a lost connection or a response 429, 502, 503 or 504.

    Examples
    --------
    Against a service started with `ripplevec serve --state DIR`::

        with ripplevec.Client() as client:
            client.add_vertex("carol", ["ann", "bob"])
            client.nearest("carol", 3)
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        timeout: float = 90.0,
        retries: int = 5,
    ) -> None:
        self._http = httpx.Client(**protocol.client_options(url, token, timeout))
        self._retry_policy = protocol.retry_policy(retries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._http.base_url).rstrip('/')!r})"

    def add_vertex(
        self,
        vertex: Id,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: Weights = None,
        time: TimeLike | None = None,
        *,
        attributes: Any = None,
        neighbours: IdsLike | None = None,
        key: str | None = None,
    ) -> Vector:
        """Add a vertex with its edges and return its vector.

        Parameters
        ----------
        vertex : int or str
            Id of the vertex. A known vertex gets the edges in addition to those it has.
        neighbors : sequence of int or str, default ()
            Vertices that it is connected to.
        weights : array_like of float, optional
            One positive weight per neighbor; 1 by default.
        time : float, datetime, datetime64, pandas.Timestamp or str, optional
            Time of the arrival; by default the latest time of any event.
        attributes : {name: value} or vector of numbers, optional
            Attributes of the vertex, which replace earlier ones. Names are sent as texts.
        neighbours : sequence of int or str, optional
            British spelling of `neighbors`; giving both is an error.
        key : str, optional
            Idempotency key: a batch with a key that was applied before is not applied again. Unique by default.

        Returns
        -------
        ndarray of shape (dim,)
            The vector of the vertex.

        Raises
        ------
        InvalidValueError
            If a value cannot be used. Nothing changes.
        """
        neighbors = resolve_neighbors(neighbors, neighbours)
        self._send(protocol.add_vertex(vertex, neighbors, weights, key, time, attributes))
        return self.vector(vertex)

    def add_edges(self, edges: EdgeListLike, *, key: str | None = None) -> dict[str, Any]:
        """Add edges as one batch.

        Parameters
        ----------
        edges : edge list
            Edges in any form that `Embedder.fit` accepts.
        key : str, optional
            Idempotency key; unique by default.

        Returns
        -------
        dict
            Sequence number of the batch and its counts.
        """
        return self._send(protocol.add_edges(edges, key))

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
    ) -> dict[str, Any]:
        """Apply a batch: add edges and set attributes of vertices.

        Parameters
        ----------
        edges : edge list
            Edges in any form that `Embedder.partial_fit` accepts, or a `Batch`, which can also remove edges and
            vertices.
        src, dst, weight, time : label of a column, optional
            Names of the columns of a table, as for `Embedder.fit`.
        attributes : mapping, pair or table, optional
            Attributes of vertices, in any form that `Embedder.fit` accepts. Unknown vertices are added. Names are sent
            as texts.
        key : str, optional
            Idempotency key; unique by default.

        Returns
        -------
        dict
            Sequence number of the batch and its counts.

        Raises
        ------
        InvalidValueError
            If a value cannot be used. Nothing changes.
        UnknownVertexError, UnknownEdgeError
            If a vertex or an edge to be removed does not exist; then nothing changes.
        """
        columns = {"src": src, "dst": dst, "weight": weight, "time": time}
        return self._send(protocol.add_edges(edges, key, attributes, **columns))

    def set_attributes(self, ids: IdsLike, attributes: Any, *, key: str | None = None) -> dict[str, Any]:
        """Set the attributes of vertices, and replace those that they had.

        Parameters
        ----------
        ids : sequence of int or str
            Known vertices.
        attributes : array, sparse matrix or list of {name: value}
            One row per vertex. An empty row removes the attributes of a vertex. Names are sent as texts.
        key : str, optional
            Idempotency key; unique by default.

        Returns
        -------
        dict
            Sequence number of the batch and its counts.

        Raises
        ------
        UnknownVertexError
            If a vertex does not exist; then nothing is changed.
        """
        return self._send(protocol.set_attributes(ids, attributes, key))

    def remove_edges(self, edges: EdgeListLike, *, key: str | None = None) -> dict[str, Any]:
        """Remove edges as one batch.

        Parameters
        ----------
        edges : edge list
            Edges in any form that `Embedder.remove_edges` accepts; weights are ignored.
        key : str, optional
            Idempotency key; unique by default.

        Returns
        -------
        dict
            Sequence number of the batch and its counts.

        Raises
        ------
        UnknownEdgeError
            If an edge does not exist; then nothing is removed.
        """
        return self._send(protocol.remove_edges(edges, key))

    def remove_vertex(self, vertex: Id, *, key: str | None = None) -> dict[str, Any]:
        """Remove a vertex with all its edges.

        Parameters
        ----------
        vertex : int or str
            Id of the vertex.
        key : str, optional
            Idempotency key; unique by default.

        Returns
        -------
        dict
            Sequence number of the batch and its counts.

        Raises
        ------
        UnknownVertexError
            If the vertex does not exist.
        """
        return self._send(protocol.remove_vertices([vertex], key))

    def vectors(self, ids: IdsLike) -> Vector:
        """Return the vectors of vertices.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices.

        Returns
        -------
        ndarray of shape (len(ids), dim)
            One row per vertex.

        Raises
        ------
        UnknownVertexError
            If some vertices are unknown; the error names them.
        """
        return self._send(protocol.vectors(ids))

    def transform(self, ids: IdsLike) -> Vector:
        """Return the vectors of vertices. The same as `vectors`, under the name of scikit-learn.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices.

        Returns
        -------
        ndarray of shape (len(ids), dim)
            One row per id.

        Raises
        ------
        UnknownVertexError
            If vertices are unknown; the error names them.
        """
        return self.vectors(ids)

    def vector(self, vertex: Id) -> Vector:
        """Return the vector of one vertex.

        Parameters
        ----------
        vertex : int or str
            Id of the vertex.

        Returns
        -------
        ndarray of shape (dim,)
            The vector.

        Raises
        ------
        UnknownVertexError
            If the vertex is unknown.
        """
        vectors = self.vectors([vertex])
        return vectors[0]

    def get(self, vertex: Id, default: Any = None) -> Any:
        """Return the vector of a vertex, or a default if the vertex is unknown.

        Parameters
        ----------
        vertex : int or str
            The vertex.
        default : object, default None
            The value for an unknown vertex.

        Returns
        -------
        ndarray of shape (dim,) or the default
            The vector.
        """
        try:
            return (self.vectors([vertex]))[0]
        except UnknownVertexError:
            return default

    def similarity(self, first: Id, second: Id) -> float:
        """Return the cosine between the vectors of two vertices; 0 if one of them is zero.

        Parameters
        ----------
        first, second : int or str
            The vertices.

        Returns
        -------
        float
            The cosine.

        Raises
        ------
        UnknownVertexError
            If a vertex is unknown.
        """
        return cosine(*(self.vectors([first, second])))

    def degree(self, ids: Id | IdsLike) -> Any:
        """Return the number of edges of vertices, in any direction.

        Parameters
        ----------
        ids : id, or list, array, series or Arrow array of int or str
            One vertex, or several.

        Returns
        -------
        int, or int64 array
            The number of edges; for several vertices one number per id.

        Raises
        ------
        UnknownVertexError
            If vertices are unknown; the error names them.
        """
        return self._send(protocol.degree(ids))

    def age(self, ids: IdsLike) -> NDArray[np.int64]:
        """Return the number of vertices that arrived after each of these vertices.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices.

        Returns
        -------
        int64 array
            One number per id.

        Raises
        ------
        UnknownVertexError
            If vertices are unknown; the error names them.
        """
        return self._send(protocol.age(ids))

    def neighbors(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex with the weights of the edges, latest edge first.

        Parameters
        ----------
        vertex : int or str
            The vertex.
        limit : int, optional
            Maximum number of neighbors. By default all; the service refuses that for more than 10,000.

        Returns
        -------
        list of (id, weight)
            The neighbors.

        Raises
        ------
        UnknownVertexError
            If the vertex is unknown.
        """
        return self._send(protocol.neighbors(vertex, limit))

    def neighbours(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex. British spelling of `neighbors`."""
        return self.neighbors(vertex, limit)

    def vertex(self, vertex: Id) -> dict[str, Any]:
        """Return the vector, degree, age and label of a vertex.

        Parameters
        ----------
        vertex : int or str
            Id of the vertex.

        Returns
        -------
        dict
            The response of `GET /v1/vertices/{id}`.

        Raises
        ------
        UnknownVertexError
            If the vertex is unknown.
        """
        return self._send(protocol.vertex(vertex))

    def nearest(
        self, vertex: Id | Sequence[float] | Vector, k: int = 10, *, among: IdsLike | None = None
    ) -> list[tuple[Id, float]]:
        """Return the vertices with the highest cosine similarity, best first.

        Parameters
        ----------
        vertex : int, str or sequence of float
            A vertex (which is left out of the result), or a vector.
        k : int, default 10
            Number of vertices.
        among : ids, optional
            The vertices to choose from; all by default.

        Returns
        -------
        list of (id, cosine)
            At most `k` pairs.

        Raises
        ------
        UnknownVertexError
            If the vertex is unknown.
        """
        return self._send(protocol.nearest(vertex, k, among))

    def nearest_many(
        self, vertices: IdsLike | Vector, k: int = 10, *, among: IdsLike | None = None
    ) -> list[list[tuple[Id, float]]]:
        """Return the vertices most similar to each of several vertices or vectors, all of one state.

        Parameters
        ----------
        vertices : ids, or array of shape (m, dim)
            The vertices or vectors.
        k : int, default 10
            Number of vertices per query.
        among : ids, optional
            The vertices to choose from; all by default.

        Returns
        -------
        list of lists of (id, cosine)
            One result of `nearest` per vertex or vector.

        Raises
        ------
        UnknownVertexError
            If vertices are unknown; the error names them.
        """
        return self._send(protocol.nearest_many(vertices, k, among))

    def nearest_by_attributes(
        self, attributes: Any, k: int = 10, *, among: IdsLike | None = None
    ) -> list[tuple[Id, float]]:
        """Return the vertices with the most similar attributes, whatever their edges, best first.

        Parameters
        ----------
        attributes : {name: value}, vector of numbers, int or str
            Attributes, or a vertex, which is left out of the result.
        k : int, default 10
            Number of vertices.
        among : ids, optional
            The vertices to choose from; all by default.

        Returns
        -------
        list of (id, cosine)
            At most `k` pairs.

        Raises
        ------
        UnknownVertexError
            If the vertex is unknown.
        """
        return self._send(protocol.nearest_by_attributes(attributes, k, among))

    def preview(
        self,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: Weights = None,
        *,
        attributes: Any = None,
        neighbours: IdsLike | None = None,
    ) -> Vector:
        """Return the vector that a new vertex with these neighbors and attributes would receive. Nothing changes.

        Parameters
        ----------
        neighbors : sequence of int or str
            Known vertices.
        weights : array_like of float, optional
            One positive weight per neighbor; 1 by default.
        attributes : {name: value} or vector of numbers, optional
            Attributes of the vertex.
        neighbours : sequence of int or str, optional
            British spelling of `neighbors`.

        Returns
        -------
        ndarray of shape (dim,)
            The vector.

        Raises
        ------
        UnknownVertexError
            If a neighbor is unknown.
        InvalidValueError
            If a value cannot be used.
        """
        neighbors = resolve_neighbors(neighbors, neighbours)
        return self._send(protocol.preview(neighbors, weights, attributes))

    def score(self, pairs: EdgeListLike, *, newcomers: Newcomers | None = None) -> Vector:
        """Return how expected each candidate edge is: the cosine of its two vectors.

        Parameters
        ----------
        pairs : edge list
            Pairs of vertices, in any form that `Embedder.fit` accepts.
        newcomers : mapping of id to neighbors, optional
            Vertices that are not in the model, each with its neighbors.

        Returns
        -------
        ndarray
            One score per pair, from −1 to 1.

        Raises
        ------
        UnknownVertexError
            If a vertex is unknown.
        """
        return self._send(protocol.score(pairs, newcomers))

    def recommend(
        self,
        vertex: Id | Sequence[Id],
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: str | None = "neighbors",
        newcomers: Newcomers | None = None,
    ) -> list[Any]:
        """Return the most expected new edges of a vertex, or of each of several vertices.

        Parameters
        ----------
        vertex : int, str or list of int or str
            A vertex, or a list of vertices.
        k : int, default 10
            Number of recommended vertices.
        among : sequence of int or str, optional
            Candidates; by default all vertices.
        exclude : "neighbors" or None, default "neighbors"
            Whether vertices that already have an edge with the vertex are left out.
        newcomers : mapping of id to neighbors, optional
            Vertices that are not in the model, each with its neighbors.

        Returns
        -------
        list of (id, score)
            At most `k` pairs, best first; for a list of vertices, one such list per vertex.

        Raises
        ------
        UnknownVertexError
            If a vertex is unknown.
        """
        return self._send(protocol.recommend(vertex, k, among, exclude, newcomers))

    def put_labels(self, labels: Mapping[Id, str | None]) -> int:
        """Set the labels of vertices, for the live map.

        Parameters
        ----------
        labels : mapping of id to str or None
            New labels; None removes a label.

        Returns
        -------
        int
            Number of labels the service now holds.
        """
        return self._send(protocol.put_labels(labels))

    def stats(self, *, digest: bool = False, full: bool = False) -> dict[str, Any]:
        """Return statistics of the service.

        Parameters
        ----------
        digest : bool, default False
            Include the digest of the whole state, which takes time on a large model.
        full : bool, default False
            Include the diagnostics of the model.

        Returns
        -------
        dict
            The response of `GET /v1/stats`.
        """
        return self._send(protocol.stats(digest, full))

    def changes(self, since: int | None = None) -> Iterator[BatchChanges]:
        """Follow the changes of the model, batch by batch, without end. Reconnects after a lost connection.

        Parameters
        ----------
        since : int, optional
            Sequence number after which to begin; by default the current one.

        Yields
        ------
        BatchChanges
            The changes of a batch, or a part of them.

        Raises
        ------
        TooOldError
            If changes after `since` are no longer kept. Read the vectors again and follow from there.
        """
        if since is None:
            stats = self.stats()
            since = int(stats["sequence"])
        position = protocol.whole_number(since, "since")
        stream = self._follow(position)

        def read_next() -> BatchChanges:
            """Return the next changes; reconnect if the stream has ended, which it does after every error."""
            nonlocal stream
            while True:
                for changes in stream:
                    return changes
                stream = self._follow(position)

        try:
            while True:
                with protocol.translate_errors(self._http):
                    changes: BatchChanges = self._retrying()(read_next)
                position = changes.sequence if changes.last else position
                yield changes
        finally:
            stream.close()

    def _follow(self, since: int) -> Generator[BatchChanges]:
        headers = {"Last-Event-ID": str(since)}
        with connect_sse(self._http, "GET", "/v1/changes", headers=headers, timeout=protocol.STREAM_TIMEOUT) as source:
            if not source.response.is_success:
                source.response.read()
                raise protocol.error_of(source.response)
            for event in source.iter_sse():
                if (changes := protocol.parse_event(event, source.response.url)) is not None:
                    yield changes

    def _send(self, call: Call[T]) -> T:
        def request() -> T:
            return call.parse_response(self._http.request(**call.arguments()))

        with protocol.translate_errors(self._http):
            return self._retrying()(request)

    def _retrying(self) -> Retrying:
        return Retrying(**self._retry_policy.arguments())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
