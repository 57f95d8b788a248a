"""Answers that say no: one form for all of them, and what each error of the library means over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from ripplet.errors import (
    FormatError,
    InvalidValueError,
    RippletError,
    StateError,
    UnknownEdgeError,
    UnknownVertexError,
)
from ripplet.io.messages import MessageError

_LONGEST_REASON = 500
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_STATUS: dict[type[RippletError], int] = {
    MessageError: 422,
    InvalidValueError: 422,
    UnknownVertexError: 404,
    UnknownEdgeError: 404,
    StateError: 503,
    FormatError: 503,
}


class Refused(RippletError):
    """A request is refused: with which status, why, and what else to say."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.headers = status, dict(headers or {})


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that is refused: `{"error": reason}`."""
    shown = reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"
    body = json.dumps({"error": shown})  # ASCII: a reason may quote what cannot be written as UTF-8
    return Response(body, status, {**_HEADERS, **(headers or {})}, media_type="application/json")


def refusal_of(error: RippletError) -> Response:
    """What an error of the library means over HTTP."""
    if isinstance(error, Refused):
        return refusal(error.status, str(error), error.headers)
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return refusal(status, str(error), {"Retry-After": "1"} if status == 503 else None)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as compact JSON."""
    return Response(to_json(value), status, {**_HEADERS, **(headers or {})}, media_type="application/json")
