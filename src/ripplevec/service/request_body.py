"""What comes with a request: read within bounds, of a kind that is expected, as bytes or as a batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from ripplevec.io.messages import Message, MessageError, check_message_key, decode_arrow, decode_json, decode_messages
from ripplevec.service.responses import RejectedRequest
from ripplevec.service.settings import Limits

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
EVENTS = (JSON, NDJSON, ARROW)
KEY_HEADER = "idempotency-key"

T = TypeVar("T", bound=BaseModel)


class BodyReader:
    """Reads the bodies of requests within a budget of bytes: received and still held, not announced."""

    def __init__(self, limits: Limits, budget: int) -> None:
        self.limits, self.budget = limits, max(budget, limits.body_bytes)
        self.held = 0

    @asynccontextmanager
    async def of(self, request: Request, kinds: tuple[str, ...] = (JSON,)) -> AsyncIterator[tuple[str, bytes]]:
        """The kind and the bytes of a body, counted as long as they are held."""
        kind = content_type(request, kinds)
        self._check_announced(request)
        parts: list[bytes] = []
        try:
            await self._receive(request, parts)
            parts[:] = [b"".join(parts)]
            yield kind, parts[0]
        finally:
            self.held -= sum(map(len, parts))

    def _check_announced(self, request: Request) -> None:
        """Refuse a size that is too large before anything is read."""
        text = request.headers.get("content-length", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise RejectedRequest(400, "Content-Length: expected a number of bytes")
        self._check(int(text))

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """Collect the parts of a body as they come, each within its time."""
        stream = request.stream()
        began, size = asyncio.get_running_loop().time(), 0
        while True:
            try:
                async with asyncio.timeout_at(began + self._seconds(size)):
                    part = await anext(stream, None)
            except TimeoutError:
                raise self._too_slow() from None
            except ClientDisconnect:
                raise RejectedRequest(400, "the body was cut off") from None
            if part is None:
                return
            size += len(part)
            self._check(size)
            if self.held + len(part) > self.budget:
                raise RejectedRequest(429, "too many large requests at once; try again", {"Retry-After": "1"})
            self.held += len(part)
            parts.append(part)

    def _seconds(self, size: int) -> float:
        """How long after its beginning a body of which so much is there has to go on."""
        limits = self.limits
        return min(limits.body_seconds, limits.body_grace + size / limits.body_rate)

    def _too_slow(self) -> RejectedRequest:
        """A connection that is cut off: whatever came later would be taken for another request."""
        limits = self.limits
        reason = (
            f"expected the whole body within {limits.body_seconds:g} s, and {limits.body_rate:,} bytes a second "
            f"after the first {limits.body_grace:g} s"
        )
        return RejectedRequest(408, reason, {"Connection": "close"})

    def _check(self, size: int) -> None:
        if size > self.limits.body_bytes:
            raise RejectedRequest(413, f"expected a body of at most {self.limits.body_bytes:,} bytes")


def content_type(request: Request, kinds: tuple[str, ...]) -> str:
    """The content type of a request, without its parameters, if it is one of those expected."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    kind, charset = kind.strip().lower(), parameters.strip().lower().replace('"', "")
    if kind not in kinds or charset not in ("", "charset=utf-8"):
        raise RejectedRequest(415, f"Content-Type: expected {' or '.join(kinds)}", {"Accept": ", ".join(kinds)})
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RejectedRequest(415, "Content-Encoding: expected none", {"Accept-Encoding": "identity"})
    return kind


def decode_events(kind: str, data: bytes, key: str | None, limits: Limits) -> Message:
    """The batch a request holds, and its key, from the body or from the header."""
    message = _decoded(kind, data)
    if not len(message.batch):
        raise MessageError("expected at least one event, got none")
    if len(message.batch) > limits.events:
        raise RejectedRequest(
            413, f"expected at most {limits.events:,} events in one request, got {len(message.batch):,}"
        )
    if message.key is not None and key is not None and message.key != key:
        raise RejectedRequest(409, "key: expected the same in the body and in Idempotency-Key, got two")
    return Message(message.batch, check_message_key(message.key if key is None else key))


def _decoded(kind: str, data: bytes) -> Message:
    if kind == ARROW:
        return Message(decode_arrow(data))
    if kind == JSON:
        return decode_json(data)
    lines = ((f"line {number}", line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip())
    batch, bad_messages = decode_messages(lines)
    if bad_messages:
        raise MessageError(f"{bad_messages[0].where}: {bad_messages[0].reason}")
    return Message(batch)


def parse_body(kind: type[T], data: bytes) -> T:
    """A small body as what it should be, or one line that says why it is not."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        raise MessageError(f"{place}: {first['msg']}") from None


def removal_message(kind: type[BaseModel], data: bytes, form: str, field: str) -> bytes:
    """A body that names what to remove, as the message that removes it."""
    body: dict[str, Any] = parse_body(kind, data).model_dump(mode="json")
    return json.dumps({"key": body["key"], form: body[field]}).encode()
