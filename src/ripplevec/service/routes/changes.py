"""What changed: asked for once, waited for, or followed as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ripplevec.service import schemas
from ripplevec.service.change_feed import ChangeFeed, ExpiredChangesError
from ripplevec.service.encoded_change_feed import EncodedChangeFeed, EncodedPart
from ripplevec.service.lifecycle import Runtime

router = APIRouter(prefix="/v1", tags=["changes"])

EVENTS = "text/event-stream"
PULSE = 15.0
"""Seconds after which a quiet stream says that it is still there."""

_ABOUT = 5.0  # seconds that a batch which readers see already may take to be in the feed
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
    last_event_id: Annotated[
        str, Header(pattern="^[0-9]{0,18}$", description="As `since`, when a stream is resumed; empty for none.")
    ] = "",
) -> Response:
    """What batches behind `since` changed; `Accept: text/event-stream` follows them as they come.

    Answers 410 where some of them are no longer kept. A batch with many changes comes in several parts, each of which
    says which of how many it is.
    """
    runtime: Runtime = request.app.state.runtime
    feed, encoded = runtime.feed, runtime.encoded_feed
    begin = int(last_event_id) if last_event_id else feed.newest if since is None else since
    if feed.newest < begin <= runtime.model.sequence:  # applied, and about to be told
        await feed.wait(begin - 1, _ABOUT)
    feed.after(begin, 1)  # refused now, not in the middle of a stream
    if EVENTS in request.headers.get("accept", ""):
        return _Following(feed, _stream(feed, encoded, begin), EVENTS)
    if feed.newest == begin and wait:
        with feed.following():
            await feed.wait(begin, min(wait, runtime.settings.limits.poll_seconds))
    last = min(feed.newest, begin + limit)
    if last > begin:
        await encoded.part(begin + 1, 0)  # where it fails, it does so before the answer is begun
    return _Following(feed, _document(encoded, begin, last), "application/json")


class _Following(StreamingResponse):
    """An answer whose reader counts as a follower until it has all of it."""

    def __init__(self, feed: ChangeFeed, content: AsyncIterator[bytes], kind: str) -> None:
        super().__init__(content, media_type=kind, headers={"Cache-Control": "no-store"})
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._feed.following():
            await super().__call__(scope, receive, send)


async def _document(encoded: EncodedChangeFeed, since: int, last: int) -> AsyncIterator[bytes]:
    """The answer piece by piece: the changes of an anchor may be more than should be held at once.

    A reader so slow that it is overtaken gets what there was; `next` says up to where that is whole.
    """
    yield b'{"since":%d,"batches":[' % since
    reached, comma = since, b""
    with suppress(ExpiredChangesError):
        for sequence in range(since + 1, last + 1):
            async for message, _ in _parts(encoded, sequence):
                yield comma + message
                comma = b","
            reached = sequence
    yield b'],"next":%d}' % reached


async def _stream(feed: ChangeFeed, encoded: EncodedChangeFeed, since: int) -> AsyncIterator[bytes]:
    """Batches as they come, each with its number, by which the stream can be resumed.

    Only the last part of a batch has the number, so that a stream that is cut off within a batch begins it again.
    """
    yield b"retry: 1000\n\n"
    while not feed.closed:
        if feed.newest == since:
            await feed.wait(since, PULSE)
            if feed.newest == since:
                yield b": still here\n\n"
            continue
        try:
            async for message, final in _parts(encoded, since + 1):
                number = b"id: %d\n" % (since + 1) if final else b""
                yield number + b"event: changes\ndata: " + message + b"\n\n"
        except ExpiredChangesError:  # a reader so slow that it was overtaken
            yield b"event: gone\ndata: {}\n\n"
            return
        since += 1


async def _parts(encoded: EncodedChangeFeed, sequence: int) -> AsyncIterator[EncodedPart]:
    """The parts of a batch, each asked for when the one before it was taken."""
    part, final = 0, False
    while not final:
        found = await encoded.part(sequence, part)
        yield found
        part, final = part + 1, found.last
