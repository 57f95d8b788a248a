"""The client for programs that do not wait: every call is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import httpx

from ripplevec.batch import Id
from ripplevec.client import protocol
from ripplevec.client.protocol import BatchChanges, Call, EventLines, Patience, Vector, Weights


class AsyncClient:
    """A service at a distance, with the methods of an `Embedder` where they make sense.

    What cannot be delivered is sent again, up to `retries` times, with the same key: it is applied once.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        timeout: float = 90.0,
        retries: int = 5,
    ) -> None:
        self._http = httpx.AsyncClient(**protocol.settings(url, token, timeout))
        self._retries = retries

    async def add_vertex(
        self,
        vertex: Id,
        neighbors: Sequence[Id] = (),
        weights: Weights = None,
        time: float | None = None,
        *,
        key: str | None = None,
    ) -> Vector:
        """Let a vertex arrive with its edges; its vector."""
        await self._send(protocol.add_vertex(vertex, neighbors, weights, key, time))
        return (await self.vectors([vertex]))[0]

    async def add_edges(self, edges: Any, *, key: str | None = None) -> dict[str, Any]:
        """Add edges, in any form that `Embedder.fit` takes, as one batch; what became of it."""
        return await self._send(protocol.add_edges(edges, key))

    async def remove_edges(self, edges: Iterable[Sequence[Id]], *, key: str | None = None) -> dict[str, Any]:
        """Remove edges as one batch."""
        return await self._send(protocol.remove_edges(edges, key))

    async def remove_vertex(self, vertex: Id, *, key: str | None = None) -> dict[str, Any]:
        """Remove a vertex with all its edges."""
        return await self._send(protocol.remove_vertices([vertex], key))

    async def vectors(self, ids: Iterable[Id]) -> Vector:
        """The vectors of vertices, a row each; KeyError naming those that are not known."""
        return protocol.vectors_of(await self._send(protocol.vectors(ids)))

    async def vector(self, vertex: Id) -> Vector:
        """The vector of one vertex."""
        return (await self.vectors([vertex]))[0]

    async def vertex(self, vertex: Id) -> dict[str, Any]:
        """All about one vertex: vector, degree, age, label."""
        return await self._send(protocol.vertex(vertex))

    async def nearest(self, vertex: Id | Sequence[float] | Vector, k: int = 10) -> list[tuple[Id, float]]:
        """The `k` vertices of highest cosine with a vertex or with a raw vector, best first."""
        return protocol.nearest_of(await self._send(protocol.nearest(vertex, k)))

    async def preview(self, neighbors: Sequence[Id], weights: Weights = None) -> Vector:
        """The vector a newcomer with these neighbors would get; nothing changes."""
        return protocol.vector_of(await self._send(protocol.preview(neighbors, weights)))

    async def put_labels(self, labels: Mapping[Id, str | None]) -> int:
        """Set the labels of vertices; None takes one away. How many there are then."""
        return int((await self._send(protocol.put_labels(labels)))["labels"])

    async def stats(self, *, digest: bool = False, full: bool = False) -> dict[str, Any]:
        """How the service stands."""
        return await self._send(protocol.stats(digest, full))

    async def changes(self, since: int | None = None) -> AsyncIterator[BatchChanges]:
        """Follow what batches change, from behind `since`, or from now on; a lost connection is taken up again.

        `TooOldError` where what was missed is no longer kept.
        """
        if since is None:
            since = int((await self.stats())["sequence"])
        patience = Patience(self._retries)
        while True:
            try:
                async for changes in self._follow(since):
                    since = changes.sequence if changes.last else since
                    patience = Patience(self._retries)
                    yield changes
            except httpx.TransportError:
                if (pause := patience.pause()) is None:
                    raise
                await asyncio.sleep(pause)

    async def _follow(self, since: int) -> AsyncIterator[BatchChanges]:
        headers, lines = {"Accept": protocol.EVENTS, "Last-Event-ID": str(since)}, EventLines()
        async with self._http.stream("GET", "/v1/changes", headers=headers, timeout=protocol.PATIENCE) as response:
            if not response.is_success:
                await response.aread()
                raise protocol.stream_refusal(response)
            async for line in response.aiter_lines():
                for event, data in lines.take(line):
                    yield protocol.changes_of_event(event, data)

    async def _send(self, call: Call) -> Any:
        patience = Patience(self._retries)
        while True:
            try:
                response = await self._http.request(**call.arguments())
            except httpx.TransportError:
                if (pause := patience.pause()) is None:
                    raise
            else:
                if response.is_success or (pause := patience.pause(response)) is None:
                    return protocol.checked(response)
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
