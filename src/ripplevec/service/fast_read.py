"""Fast path for the most frequent request, `GET /v1/vertices/{id}`: it bypasses the FastAPI router."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ripplevec.errors import RipplevecError
from ripplevec.service import model_reads
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.path_ids import NEAREST_SUFFIX, VERTICES_PREFIX, IdKind, decode_id, raw_vertex_path
from ripplevec.service.responses import json_response


class FastReadMiddleware:
    """Answer `GET /v1/vertices/{id}` without query parameters; pass all other requests, and all errors, to the routes.

    Also restores the percent escapes in vertex paths, which the routes need.
    """

    def __init__(self, app: ASGIApp, runtime: Runtime, route: Any) -> None:
        self.app, self.runtime, self.route = app, runtime, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request or pass it on."""
        if scope["type"] == "http" and scope["path"].startswith(VERTICES_PREFIX):
            path = scope["path"] = raw_vertex_path(scope)
            if scope["method"] == "GET" and not scope["query_string"] and not path.endswith(NEAREST_SUFFIX):
                response: Response | None = None
                with suppress(RipplevecError):  # the route raises it again and reports it
                    escaped_id = path[len(VERTICES_PREFIX) :]
                    response = json_response(await read_labeled_vertex(self.runtime, escaped_id, "auto", receive))
                if response is not None:
                    scope["route"] = self.route  # metrics count requests by route
                    await response(scope, receive, send)
                    return
        await self.app(scope, receive, send)


async def read_labeled_vertex(runtime: Runtime, escaped_id: str, kind: IdKind, receive: Receive) -> dict[str, Any]:
    """Return the vector, degree, age and label of the vertex that a path names."""
    model, labels, text = runtime.model, runtime.labels, decode_id(escaped_id)
    vertex = await runtime.read_inline(lambda: model_reads.read_vertex(model.engine, text, kind), receive)
    return vertex | {"label": labels.get(vertex["id"])}
