"""A short way for the read that is asked most: all about one vertex, without the machinery of the routes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ripplevec.errors import RipplevecError
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.reads import vertex_lookup
from ripplevec.service.reads.path_ids import NEAREST_SUFFIX, VERTICES_PREFIX, decode_id, raw_vertex_path
from ripplevec.service.responses import json_response


class FastReadMiddleware:
    """Answers `GET /v1/vertices/{id}` where nothing is special about it; all else, refusals too, goes to the routes."""

    def __init__(self, app: ASGIApp, runtime: Runtime, route: Any) -> None:
        self.app, self.runtime, self.route = app, runtime, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "http" and scope["path"].startswith(VERTICES_PREFIX):
            path = scope["path"] = raw_vertex_path(scope)
            if scope["method"] == "GET" and not scope["query_string"] and not path.endswith(NEAREST_SUFFIX):
                answer: Response | None = None
                with suppress(RipplevecError):  # which the route will meet as well, and say
                    answer = json_response(await vertex(self.runtime, path[len(VERTICES_PREFIX) :], "auto", receive))
                if answer is not None:
                    scope["route"] = self.route  # by which requests are counted
                    await answer(scope, receive, send)
                    return
        await self.app(scope, receive, send)


async def vertex(runtime: Runtime, text: str, kind: vertex_lookup.IdKind, receive: Receive) -> dict[str, Any]:
    """All about the vertex that an address names, with its label."""
    model, labels, name = runtime.model, runtime.labels, decode_id(text)
    found = await runtime.read_shortly(lambda: vertex_lookup.vertex(model.engine, name, kind), receive)
    return found | {"label": labels.get(found["id"])}
