"""Request bodies: read within limits of size, rate and memory, and decoded as batches or request models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from ripplevec.io.message_schema import Document, MessageError
from ripplevec.io.messages import Message, build_message, decode_arrow, decode_json, decode_messages
from ripplevec.service.responses import RejectedRequest
from ripplevec.service.schemas import RemoveEdges, RemoveVertices
from ripplevec.service.settings import Limits

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
EVENT_TYPES = (JSON, NDJSON, ARROW)
KEY_HEADER = "idempotency-key"

T = TypeVar("T", bound=BaseModel)


class BodyReader:
    """Reads request bodies within a memory budget, which counts received bytes, not announced ones."""

    def __init__(self, limits: Limits, budget: int) -> None:
        self.limits, self.budget = limits, max(budget, limits.body_bytes)
        self.held_bytes = 0

    @asynccontextmanager
    async def read(
        self, request: Request, content_types: tuple[str, ...] = (JSON,)
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the content type and the bytes of a body; it counts against the budget until the block ends."""
        content_type = check_content_type(request, content_types)
        self._check_content_length(request)
        parts: list[bytes] = []
        try:
            await self._receive(request, parts)
            parts[:] = [b"".join(parts)]
            yield content_type, parts[0]
        finally:
            self.held_bytes -= sum(map(len, parts))

    def _check_content_length(self, request: Request) -> None:
        """Reject a body that is too large before it is read."""
        text = request.headers.get("content-length", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise RejectedRequest(400, "Content-Length: expected a number of bytes")
        self._check_size(int(text))

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """Collect the parts of a body as they arrive, each before its deadline."""
        stream = request.stream()
        start_time, size = asyncio.get_running_loop().time(), 0
        while True:
            try:
                async with asyncio.timeout_at(start_time + self._deadline(size)):
                    part = await anext(stream, None)
            except TimeoutError:
                raise self._too_slow() from None
            except ClientDisconnect:
                raise RejectedRequest(400, "the body is incomplete: the client disconnected") from None
            if part is None:
                return
            size += len(part)
            self._check_size(size)
            if self.held_bytes + len(part) > self.budget:
                raise RejectedRequest(429, "too many large requests at once; retry", {"Retry-After": "1"})
            self.held_bytes += len(part)
            parts.append(part)

    def _deadline(self, size: int) -> float:
        """Return the seconds from the start by which the next part must arrive, given the bytes received so far."""
        limits = self.limits
        return min(limits.body_seconds, limits.body_grace + size / limits.body_rate)

    def _too_slow(self) -> RejectedRequest:
        """Make the error for a slow body; the connection is closed, as later bytes would look like a new request."""
        limits = self.limits
        reason = (
            f"body too slow: expected all of it within {limits.body_seconds:g} s, and {limits.body_rate:,} bytes per "
            f"second after the first {limits.body_grace:g} s"
        )
        return RejectedRequest(408, reason, {"Connection": "close"})

    def _check_size(self, size: int) -> None:
        if size > self.limits.body_bytes:
            raise RejectedRequest(413, f"body: expected at most {self.limits.body_bytes:,} bytes, got more")


def check_content_type(request: Request, expected: tuple[str, ...]) -> str:
    """Return the content type of a request without its parameters; reject one that is not expected with 415."""
    content_type, _, parameters = request.headers.get("content-type", "").partition(";")
    content_type, charset = content_type.strip().lower(), parameters.strip().lower().replace('"', "")
    if content_type not in expected or charset not in ("", "charset=utf-8"):
        got = repr(content_type) if content_type not in expected else f"{content_type} with {charset!r}"
        reason = f"Content-Type: expected {' or '.join(expected)}, got {got if content_type else 'none'}"
        raise RejectedRequest(415, reason, {"Accept": ", ".join(expected)})
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RejectedRequest(415, "Content-Encoding: expected none", {"Accept-Encoding": "identity"})
    return content_type


def decode_events(content_type: str, data: bytes, key: str | None, limits: Limits) -> Message:
    """Decode the batch in a body, with its idempotency key from the body or the header."""
    return _check_message(_decode(content_type, data), key, limits)


def decode_removals(model: type[RemoveEdges | RemoveVertices], data: bytes, key: str | None, limits: Limits) -> Message:
    """Decode the body of a removal request, with its idempotency key from the body or the header."""
    body = parse_body(model, data)
    removed = {"remove_edges": body.edges} if isinstance(body, RemoveEdges) else {"remove_vertices": body.ids}
    return _check_message(build_message(Document(body.key, **removed)), key, limits)


def _check_message(message: Message, key: str | None, limits: Limits) -> Message:
    """Check the number of events, and that the body and the header do not have different keys."""
    if not len(message.batch):
        raise MessageError("expected at least one event, got none")
    if len(message.batch) > limits.events:
        raise RejectedRequest(
            413, f"expected at most {limits.events:,} events in one request, got {len(message.batch):,}"
        )
    if message.key is not None and key is not None and message.key != key:
        raise RejectedRequest(409, "key: expected the same key in the body and in Idempotency-Key, got two")
    return Message(message.batch, message.key if key is None else key)


def _decode(content_type: str, data: bytes) -> Message:
    if content_type == ARROW:
        return Message(decode_arrow(data))
    if content_type == JSON:
        return decode_json(data)
    lines = ((f"line {number}", line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip())
    decoded = decode_messages(lines)
    if bad_messages := decoded.bad_messages:
        raise MessageError(f"{bad_messages[0].where}: {bad_messages[0].reason}")
    return Message(decoded.to_batch())


def parse_body(model: type[T], data: bytes) -> T:
    """Parse a JSON body as a request model; the error is one line with the first problem."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        if first["type"] == "extra_forbidden":
            expected = ", ".join(model.model_fields)
            raise MessageError(
                f"body: expected only the keys {expected}, got {place}. Remove the key or correct its spelling"
            ) from None
        raise MessageError(f"{place}: {first['msg']}") from None
