"""Answers that say no: one form for all of them, and what each error of the library means over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ripplevec.errors import (
    FormatError,
    InvalidValueError,
    RipplevecError,
    StateError,
    UnknownEdgeError,
    UnknownVertexError,
)
from ripplevec.io.messages import MessageError

CHUNK_BYTES = 1 << 16
"""Bytes of a large answer that are handed to a connection at a time."""

_LONGEST_REASON = 500
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_STATUS: dict[type[RipplevecError], int] = {
    MessageError: 422,
    InvalidValueError: 422,
    UnknownVertexError: 404,
    UnknownEdgeError: 404,
    StateError: 503,
    FormatError: 503,
}


class RejectedRequest(RipplevecError):
    """A request is refused: with which status, why, and what else to say."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.headers = status, dict(headers or {})


def error_response(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that is refused: `{"error": reason}`."""
    shown = reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"
    body = json.dumps({"error": shown})  # ASCII: a reason may quote what cannot be written as UTF-8
    return Response(body, status, {**_HEADERS, **(headers or {})}, media_type="application/json")


def exception_response(error: RipplevecError) -> Response:
    """What an error of the library means over HTTP."""
    if isinstance(error, RejectedRequest):
        return error_response(error.status, str(error), error.headers)
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return error_response(status, str(error), {"Retry-After": "1"} if status == 503 else None)


class NotFiniteError(RipplevecError):
    """A number to be answered is infinite or none at all, which JSON cannot hold: a fault of the service."""

    def __init__(self) -> None:
        super().__init__("expected finite numbers, got NaN or infinity: the vectors are damaged; see the log")


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None, *, finite: bool = True
) -> Response:
    """A value as compact JSON; where a number is not finite NotFiniteError, or null where it need not be."""
    body = to_json(value, inf_nan_mode="constants" if finite else "null")
    if finite and (b"NaN" in body or b"Infinity" in body):  # perhaps in a text
        json.loads(body, parse_constant=_refuse_constant)
    return Response(body, status, {**_HEADERS, **(headers or {})}, media_type="application/json")


def _refuse_constant(name: str) -> None:
    raise NotFiniteError


class ResponseBudget:
    """The bytes of large answers that clients have not taken yet, and the most there may be."""

    def __init__(self, limit: int) -> None:
        self.held, self._limit = 0, limit

    def check_room(self) -> None:
        """Refuse to make another large answer while too much of others is held."""
        if self.held >= self._limit:
            raise RejectedRequest(503, "too many large answers are on their way; try again", {"Retry-After": "1"})

    def track(self, answer: Response) -> Response:
        """The same answer, sent in pieces as the client takes them, and counted until then."""
        return _ChunkedResponse(answer, self)


class _ChunkedResponse(Response):
    def __init__(self, answer: Response, count: ResponseBudget) -> None:
        super().__init__(None, answer.status_code)
        self.body, self.raw_headers, self._count = answer.body, answer.raw_headers, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(self.body)
        self._count.held += size
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for first in range(0, size, CHUNK_BYTES):
                await send(
                    {"type": "http.response.body", "body": self.body[first : first + CHUNK_BYTES], "more_body": True}
                )
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._count.held -= size
