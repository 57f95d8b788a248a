"""The asyncio client of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import httpx

from ripplevec.batch import NO_NEIGHBORS, EdgeListLike, Id, IdsLike, resolve_neighbors
from ripplevec.client import protocol
from ripplevec.client.protocol import BatchChanges, Call, EventParser, RetryBudget, Vector, Weights


class AsyncClient:
    """An asyncio client of a running service: `Client` with every method awaited.

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

        async with ripplevec.AsyncClient() as client:
            await client.add_vertex("carol", ["ann", "bob"])
            await client.nearest("carol", 3)
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        timeout: float = 90.0,
        retries: int = 5,
    ) -> None:
        self._http = httpx.AsyncClient(**protocol.client_options(url, token, timeout))
        self._retries = retries

    async def add_vertex(
        self,
        vertex: Id,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: Weights = None,
        time: float | None = None,
        *,
        key: str | None = None,
        neighbours: IdsLike | None = None,
    ) -> Vector:
        """Add a vertex with its edges and return its vector; see `Client.add_vertex`."""
        neighbors = resolve_neighbors(neighbors, neighbours)
        await self._send(protocol.add_vertex(vertex, neighbors, weights, key, time))
        return (await self.vectors([vertex]))[0]

    async def add_edges(self, edges: EdgeListLike, *, key: str | None = None) -> dict[str, Any]:
        """Add edges as one batch; see `Client.add_edges`."""
        return await self._send(protocol.add_edges(edges, key))

    async def remove_edges(self, edges: Iterable[Sequence[Id]], *, key: str | None = None) -> dict[str, Any]:
        """Remove edges as one batch; see `Client.remove_edges`."""
        return await self._send(protocol.remove_edges(edges, key))

    async def remove_vertex(self, vertex: Id, *, key: str | None = None) -> dict[str, Any]:
        """Remove a vertex with all its edges; see `Client.remove_vertex`."""
        return await self._send(protocol.remove_vertices([vertex], key))

    async def vectors(self, ids: Iterable[Id]) -> Vector:
        """Return the vectors of vertices; see `Client.vectors`."""
        return protocol.parse_vectors(await self._send(protocol.vectors(ids)))

    async def vector(self, vertex: Id) -> Vector:
        """Return the vector of one vertex; see `Client.vector`."""
        return (await self.vectors([vertex]))[0]

    async def vertex(self, vertex: Id) -> dict[str, Any]:
        """Return the vector, degree, age and label of a vertex; see `Client.vertex`."""
        return await self._send(protocol.vertex(vertex))

    async def nearest(self, vertex: Id | Sequence[float] | Vector, k: int = 10) -> list[tuple[Id, float]]:
        """Return the vertices with the highest cosine similarity, best first; see `Client.nearest`."""
        return protocol.parse_nearest(await self._send(protocol.nearest(vertex, k)))

    async def preview(
        self, neighbors: IdsLike = NO_NEIGHBORS, weights: Weights = None, *, neighbours: IdsLike | None = None
    ) -> Vector:
        """Return the vector that a new vertex with these neighbors would receive; see `Client.preview`."""
        neighbors = resolve_neighbors(neighbors, neighbours)
        return protocol.parse_vector(await self._send(protocol.preview(neighbors, weights)))

    async def put_labels(self, labels: Mapping[Id, str | None]) -> int:
        """Set the labels of vertices; see `Client.put_labels`."""
        return int((await self._send(protocol.put_labels(labels)))["labels"])

    async def stats(self, *, digest: bool = False, full: bool = False) -> dict[str, Any]:
        """Return statistics of the service; see `Client.stats`."""
        return await self._send(protocol.stats(digest, full))

    async def changes(self, since: int | None = None) -> AsyncIterator[BatchChanges]:
        """Follow the changes of the model, batch by batch, without end; see `Client.changes`."""
        if since is None:
            since = int((await self.stats())["sequence"])
        budget = RetryBudget(self._retries)
        while True:
            try:
                async for changes in self._follow(since):
                    since = changes.sequence if changes.last else since
                    budget = RetryBudget(self._retries)
                    yield changes
            except httpx.TransportError:
                if (delay := budget.next_delay()) is None:
                    raise
                await asyncio.sleep(delay)

    async def _follow(self, since: int) -> AsyncIterator[BatchChanges]:
        headers, parser = {"Accept": protocol.EVENTS, "Last-Event-ID": str(since)}, EventParser()
        async with self._http.stream(
            "GET", "/v1/changes", headers=headers, timeout=protocol.STREAM_TIMEOUT
        ) as response:
            if not response.is_success:
                await response.aread()
                raise protocol.stream_error_of(response)
            async for line in response.aiter_lines():
                for event, data in parser.feed_line(line):
                    yield protocol.parse_event(event, data)

    async def _send(self, call: Call) -> Any:
        budget = RetryBudget(self._retries)
        while True:
            try:
                response = await self._http.request(**call.arguments())
            except httpx.TransportError:
                if (delay := budget.next_delay()) is None:
                    raise
            else:
                if response.is_success or (delay := budget.next_delay(response)) is None:
                    return protocol.parse_response(response)
            await asyncio.sleep(delay)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
