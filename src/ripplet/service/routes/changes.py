"""What changed: asked for once, waited for, or followed as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ripplet.changes import Changes
from ripplet.io.change_messages import change_messages
from ripplet.service import schemas
from ripplet.service.answers import Refused
from ripplet.service.feed import Feed
from ripplet.service.runtime import Runtime

router = APIRouter(prefix="/v1", tags=["changes"])

EVENTS = "text/event-stream"
PULSE = 15.0
"""Seconds after which a quiet stream says that it is still there."""

_AT_ONCE = 64  # batches taken from the feed at a time
_DESCRIBED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Batches behind `since`, in order: what moved, arrived or was removed, and whether it anchored.",
        "content": {"application/json": {}, EVENTS: {"schema": {"type": "string"}}},
    }
}


@router.get("/changes", responses={**_DESCRIBED, **schemas.refusals(410, 422)}, response_class=Response)
async def changes(
    request: Request,
    since: Annotated[int | None, Query(ge=0, description="The last batch seen; the newest, if left out.")] = None,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for something new.")] = 0.0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Batches in one answer.")] = 100,
    last_event_id: Annotated[str | None, Header(description="As `since`, when a stream is resumed.")] = None,
) -> Response:
    """What batches behind `since` changed; `Accept: text/event-stream` follows them as they come.

    Answers 410 where some of them are no longer kept. A batch with many changes comes in several parts, each of which
    says which of how many it is.
    """
    runtime: Runtime = request.app.state.runtime
    feed = runtime.feed
    begin = _begin(since, last_event_id, feed.newest)
    if EVENTS in request.headers.get("accept", ""):
        feed.after(begin, 1)  # refused now, not in the middle of a stream
        feed.check_room()
        return StreamingResponse(
            _stream(runtime, feed, begin), media_type=EVENTS, headers={"Cache-Control": "no-store"}
        )
    found = feed.after(begin, limit)
    if not found and wait:
        feed.check_room()
        with feed.following():
            await feed.wait(begin, min(wait, runtime.settings.limits.poll_seconds))
        found = feed.after(begin, limit)
    return StreamingResponse(_document(begin, found), media_type="application/json")


def _begin(since: int | None, last_event_id: str | None, newest: int) -> int:
    if last_event_id is not None and last_event_id.strip():
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 19):
            raise Refused(422, "Last-Event-ID: expected the number of a batch")
        return int(last_event_id)
    return newest if since is None else since


def _document(since: int, found: list[Changes]) -> Iterator[bytes]:
    """The answer piece by piece: the changes of an anchor may be more than should be held at once."""
    yield b'{"since":%d,"next":%d,"batches":[' % (since, found[-1].sequence if found else since)
    comma = b""
    for batch in found:
        for message in change_messages(batch):
            yield comma + message
            comma = b","
    yield b"]}"


async def _stream(runtime: Runtime, feed: Feed, since: int) -> AsyncIterator[bytes]:
    """Batches as they come, each with its number, by which the stream can be resumed."""
    with feed.following():
        yield b"retry: 1000\n\n"
        while not feed.closed:
            try:
                found = feed.after(since, _AT_ONCE)
            except Refused:  # a reader so slow that it was overtaken
                yield b"event: gone\ndata: {}\n\n"
                return
            for batch in found:
                async for event in _events(runtime, batch):
                    yield event
                since = int(batch.sequence)
            if not found:
                await feed.wait(since, PULSE)
                if feed.newest == since:
                    yield b": still here\n\n"


async def _events(runtime: Runtime, batch: Changes) -> AsyncIterator[bytes]:
    """The parts of a batch, one at a time as an anchor may have many; only the last has the number.

    So a stream that is cut off within a batch begins it again.
    """
    parts = change_messages(batch)
    message = await runtime.read(next, parts, None)
    while message is not None:
        later = await runtime.read(next, parts, None)
        yield (b"id: %d\n" % batch.sequence if later is None else b"") + _event(message)
        message = later


def _event(message: bytes) -> bytes:
    return b"event: changes\ndata: " + message + b"\n\n"
