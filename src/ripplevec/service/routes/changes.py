"""Endpoint for changes: a single read, a long poll, or a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ripplevec.service import schemas
from ripplevec.service.change_feed import ChangeFeed, EncodedChangeFeed, EncodedPart, ExpiredChangesError
from ripplevec.service.lifecycle import Runtime

router = APIRouter(prefix="/v1", tags=["changes"])

EVENT_STREAM = "text/event-stream"
KEEP_ALIVE_SECONDS = 15.0
"""Interval of the comments that keep an idle stream open."""

_FEED_DELAY = 5.0  # seconds within which a batch that readers already see must appear in the feed
_DESCRIPTION: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Batches after `since` in order: vertices that moved, arrived or were removed, and anchors.",
        "content": {"application/json": {}, EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}


@router.get("/changes", responses={**_DESCRIPTION, **schemas.describe_errors(410, 422)}, response_class=Response)
async def changes(
    request: Request,
    since: Annotated[int | None, Query(ge=0, description="The last batch seen; the newest by default.")] = None,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for a new batch.")] = 0.0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of batches in the response.")] = 100,
    last_event_id: Annotated[
        str, Header(pattern="^[0-9]{0,18}$", description="Replaces `since` when a stream is resumed; may be empty.")
    ] = "",
) -> Response:
    """Return the changes of the batches after `since`.

    With `Accept: text/event-stream`, streams them as they are applied. Answers 410 if some of these batches are no
    longer retained. A batch with many changes is split into parts, each with its number and the number of parts.
    """
    runtime: Runtime = request.app.state.runtime
    feed, encoded = runtime.feed, runtime.encoded_feed
    start = int(last_event_id) if last_event_id else feed.newest if since is None else since
    if feed.newest < start <= runtime.model.sequence:  # applied, but not in the feed yet
        await feed.wait(start - 1, _FEED_DELAY)
    feed.read_after(start, 1)  # raises now, not in the middle of a stream
    if EVENT_STREAM in request.headers.get("accept", ""):
        return _FollowerResponse(feed, _stream_events(feed, encoded, start), EVENT_STREAM)
    if feed.newest == start and wait:
        with feed.register_follower():
            await feed.wait(start, min(wait, runtime.settings.limits.poll_seconds))
    last = min(feed.newest, start + limit)
    if last > start:
        await encoded.get_part(start + 1, 0)  # if it fails, it does so before the response starts
    return _FollowerResponse(feed, _stream_document(encoded, start, last), "application/json")


class _FollowerResponse(StreamingResponse):
    """A response whose client counts as a follower until it has received all of it."""

    def __init__(self, feed: ChangeFeed, content: AsyncIterator[bytes], media_type: str) -> None:
        super().__init__(content, media_type=media_type, headers={"Cache-Control": "no-store"})
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._feed.register_follower():
            await super().__call__(scope, receive, send)


async def _stream_document(encoded: EncodedChangeFeed, since: int, last: int) -> AsyncIterator[bytes]:
    """Yield one JSON document piece by piece: the changes of an anchor may be too large to hold in memory.

    If a slow client is overtaken by the retention limits, the document ends early; `next` is the last complete batch.
    """
    yield b'{"since":%d,"batches":[' % since
    completed, separator = since, b""
    with suppress(ExpiredChangesError):
        for sequence in range(since + 1, last + 1):
            async for message, _ in _read_parts(encoded, sequence):
                yield separator + message
                separator = b","
            completed = sequence
    yield b'],"next":%d}' % completed


async def _stream_events(feed: ChangeFeed, encoded: EncodedChangeFeed, since: int) -> AsyncIterator[bytes]:
    """Yield server-sent events as batches are applied, with ids from which the stream can be resumed.

    Only the last part of a batch has an id, so that a stream interrupted within a batch resumes at its start.
    """
    yield b"retry: 1000\n\n"
    while not feed.closed:
        if feed.newest == since:
            await feed.wait(since, KEEP_ALIVE_SECONDS)
            if feed.newest == since:
                yield b": still here\n\n"
            continue
        try:
            async for message, is_last in _read_parts(encoded, since + 1):
                event_id = b"id: %d\n" % (since + 1) if is_last else b""
                yield event_id + b"event: changes\ndata: " + message + b"\n\n"
        except ExpiredChangesError:  # a slow client was overtaken by the retention limits
            yield b"event: gone\ndata: {}\n\n"
            return
        since += 1


async def _read_parts(encoded: EncodedChangeFeed, sequence: int) -> AsyncIterator[EncodedPart]:
    """Yield the parts of a batch; each is encoded when the previous one was sent."""
    number, is_last = 0, False
    while not is_last:
        part = await encoded.get_part(sequence, number)
        yield part
        number, is_last = number + 1, part.last
