"""A short way for the read that is asked most: all about one vertex, without the machinery of the routes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ripplet.errors import RippletError
from ripplet.service import reads
from ripplet.service.answers import json_answer
from ripplet.service.runtime import Runtime

_BEFORE, _NOT_BEHIND = "/v1/vertices/", "/nearest"


class Express:
    """Answers `GET /v1/vertices/{id}` where nothing is special about it; all else, refusals too, goes to the routes."""

    def __init__(self, app: ASGIApp, runtime: Runtime, route: Any) -> None:
        self.app, self.runtime, self.route = app, runtime, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]:
            path: str = scope["path"]
            if path.startswith(_BEFORE) and not path.endswith(_NOT_BEHIND):
                found: dict[str, Any] | None = None
                with suppress(RippletError):  # which the route will meet as well, and say
                    found = await vertex(self.runtime, path[len(_BEFORE) :], "auto", receive)
                if found is not None:
                    scope["route"] = self.route  # by which requests are counted
                    await json_answer(found)(scope, receive, send)
                    return
        await self.app(scope, receive, send)


async def vertex(runtime: Runtime, text: str, kind: reads.Kind, receive: Receive) -> dict[str, Any]:
    """All about a vertex, with its label."""
    engine, labels = runtime.model.engine, runtime.labels
    found = await runtime.read_shortly(lambda: reads.vertex(engine, text, kind), receive)
    return found | {"label": labels.get(found["id"])}
