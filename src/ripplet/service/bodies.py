"""What comes with a request: read within bounds, of a kind that is expected, as bytes or as a batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from ripplet.io.messages import Message, MessageError, checked_key, decode_arrow, decode_json, decode_many
from ripplet.service.answers import Refused
from ripplet.service.settings import Limits

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
EVENTS = (JSON, NDJSON, ARROW)
KEY_HEADER = "idempotency-key"

T = TypeVar("T", bound=BaseModel)


class Bodies:
    """Reads the bodies of requests, and keeps count of the bytes that are held for all of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def of(self, request: Request, kinds: tuple[str, ...] = (JSON,)) -> AsyncIterator[tuple[str, bytes]]:
        """The kind and the bytes of a body, counted as long as they are held."""
        kind = kind_of(request, kinds)
        size = self._announced(request)
        if self.held + size > self.limits.bodies_bytes:
            raise Refused(429, "too many large requests at once; try again", {"Retry-After": "1"})
        self.held += size
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                data = await self._read(request)
        except TimeoutError:
            self.held -= size
            raise Refused(408, f"expected the whole body within {self.limits.body_seconds:g} s") from None
        except BaseException:
            self.held -= size
            raise
        self.held += len(data) - size
        try:
            yield kind, data
        finally:
            self.held -= len(data)

    def _announced(self, request: Request) -> int:
        """The size a request says it has; the most it may have where it does not say."""
        text = request.headers.get("content-length")
        if text is None:
            return self.limits.body_bytes
        size = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if size < 0:
            raise Refused(400, "Content-Length: expected a number of bytes")
        self._check(size)
        return size

    async def _read(self, request: Request) -> bytes:
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                self._check(size)
                parts.append(part)
        except ClientDisconnect:
            raise Refused(400, "the body was cut off") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check(self, size: int) -> None:
        if size > self.limits.body_bytes:
            raise Refused(413, f"expected a body of at most {self.limits.body_bytes:,} bytes")


def kind_of(request: Request, kinds: tuple[str, ...]) -> str:
    """The content type of a request, without its parameters, if it is one of those expected."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    kind, charset = kind.strip().lower(), parameters.strip().lower().replace('"', "")
    if kind not in kinds or charset not in ("", "charset=utf-8"):
        raise Refused(415, f"Content-Type: expected {' or '.join(kinds)}", {"Accept": ", ".join(kinds)})
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "Content-Encoding: expected none", {"Accept-Encoding": "identity"})
    return kind


def events_of(kind: str, data: bytes, key: str | None, limits: Limits) -> Message:
    """The batch a request holds, and its key, from the body or from the header."""
    message = _decoded(kind, data)
    if not len(message.batch):
        raise MessageError("expected at least one event, got none")
    if len(message.batch) > limits.events:
        raise Refused(413, f"expected at most {limits.events:,} events in one request, got {len(message.batch):,}")
    if message.key is not None and key is not None and message.key != key:
        raise MessageError("key: expected the same in the body and in Idempotency-Key, got two")
    return Message(message.batch, checked_key(message.key if key is None else key))


def _decoded(kind: str, data: bytes) -> Message:
    if kind == ARROW:
        return Message(decode_arrow(data))
    if kind == JSON:
        return decode_json(data)
    lines = ((f"line {number}", line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip())
    batch, poison = decode_many(lines)
    if poison:
        raise MessageError(f"{poison[0].where}: {poison[0].reason}")
    return Message(batch)


def model_of(kind: type[T], data: bytes) -> T:
    """A small body as what it should be, or one line that says why it is not."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        raise MessageError(f"{place}: {first['msg']}") from None


def removals_of(kind: type[BaseModel], data: bytes, form: str, field: str) -> bytes:
    """A body that names what to remove, as the message that removes it."""
    body: dict[str, Any] = model_of(kind, data).model_dump(mode="json")
    return json.dumps({"key": body["key"], form: body[field]}).encode()
