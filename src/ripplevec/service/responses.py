"""JSON responses, error responses with the exception-to-status mapping, and the byte budget of large responses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
from ripplevec.io.message_schema import MessageError

CHUNK_BYTES = 1 << 16
"""Bytes of a large response that are handed to the connection at a time."""

_MAX_REASON_LENGTH = 500
_MAX_MISSING = 100  # unknown ids or edges in one response
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
    """A request is rejected with this status, reason and response headers."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.headers = status, dict(headers or {})


class NotFiniteError(RipplevecError):
    """A number in a response is NaN or infinite, which JSON cannot represent: an internal fault."""

    def __init__(self) -> None:
        super().__init__("vectors: expected finite numbers, got NaN or infinity. The state is damaged; see the log")


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None, *, finite: bool = True
) -> Response:
    """Encode a value as compact JSON.

    A number that is not finite raises NotFiniteError, or becomes null with `finite=False`.
    """
    body = to_json(value, inf_nan_mode="constants" if finite else "null")
    if finite and (b"NaN" in body or b"Infinity" in body):  # may also be part of a string
        json.loads(body, parse_constant=_reject_constant)
    return Response(body, status, {**_HEADERS, **(headers or {})}, media_type="application/json")


def _reject_constant(name: str) -> None:
    raise NotFiniteError


def error_response(
    status: int, reason: str, headers: Mapping[str, str] | None = None, missing: Sequence[object] = ()
) -> Response:
    """Build the response to a rejected request: `{"error": reason}`, and the ids or edges that do not exist."""
    text = reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…"
    content: dict[str, object] = {"error": text}
    if missing:
        content["missing"] = missing[:_MAX_MISSING]
    body = json.dumps(content)  # ASCII: a reason may quote text that cannot be encoded as UTF-8
    return Response(body, status, {**_HEADERS, **(headers or {})}, media_type="application/json")


def exception_response(error: RipplevecError) -> Response:
    """Build the error response for an exception of this library."""
    if isinstance(error, RejectedRequest):
        return error_response(error.status, str(error), error.headers)
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    missing = error.missing if isinstance(error, UnknownVertexError | UnknownEdgeError) else ()
    return error_response(status, str(error), {"Retry-After": "1"} if status == 503 else None, missing)


class ResponseBudget:
    """Limit on the bytes of large responses that clients have not received yet."""

    def __init__(self, max_bytes: int) -> None:
        self.pending_bytes, self._max_bytes = 0, max_bytes

    def check_capacity(self) -> None:
        """Reject a request with 503 while too many bytes of other large responses are pending."""
        if self.pending_bytes >= self._max_bytes:
            raise RejectedRequest(503, "too many large responses are being sent; retry", {"Retry-After": "1"})

    def track(self, response: Response) -> Response:
        """Wrap a response: it is sent in chunks as the client reads them, and counted until it is sent."""
        return _ChunkedResponse(response, self)


class _ChunkedResponse(Response):
    """A response that is sent in chunks and counts against a budget until it is sent."""

    def __init__(self, response: Response, budget: ResponseBudget) -> None:
        super().__init__(None, response.status_code)
        self.body, self.raw_headers, self._budget = response.body, response.raw_headers, budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(self.body)
        self._budget.pending_bytes += size
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for start in range(0, size, CHUNK_BYTES):
                chunk = self.body[start : start + CHUNK_BYTES]
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._budget.pending_bytes -= size
