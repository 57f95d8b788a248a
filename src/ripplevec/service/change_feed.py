"""Change feed: the changes of the most recent batches, kept within limits for clients that follow them.

`ChangeFeed` holds the changes; `EncodedChangeFeed` encodes them as JSON messages, each once for all followers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import numpy as np

from ripplevec.changes import Changes
from ripplevec.io.change_messages import encode_message_part, split_points
from ripplevec.service.responses import NotFiniteError, RejectedRequest
from ripplevec.service.thread_queue import ThreadQueue

PART_BYTES = 1 << 16
"""Approximate size of a message: the memory that a follower which does not read occupies besides its socket buffer."""

CACHE_BYTES = 16 << 20
"""Encoded messages that are cached for other followers."""

_CACHED_BOUNDS = 1024  # batches whose part bounds are cached
_ENCODER_THREADS = 2
_ROW_OVERHEAD = 128  # bytes for an id and the other data stored with its vector


class ExpiredChangesError(RejectedRequest):
    """The requested changes are no longer retained."""


class ChangeFeed:
    """Changes of the most recent batches.

    The thread that applies batches appends them in order; any number of followers read them from an event loop.
    """

    def __init__(self, newest: int, dim: int, *, max_batches: int, max_bytes: int, max_followers: int) -> None:
        self.oldest = self.newest = newest  # a client that has seen batch `oldest` or a later one can catch up
        self._retained: deque[Changes] = deque()
        self._bytes, self._row_bytes = 0, 8 * dim + _ROW_OVERHEAD  # each vector is stored internally and as served
        self._max_batches, self._max_bytes, self._max_followers = max_batches, max_bytes, max_followers
        self._lock = threading.Lock()
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()
        self.followers = 0
        self.closed = False

    def append(self, changes: Changes) -> None:
        """Add the changes of the next batch; drop the oldest ones beyond the limits."""
        with self._lock:
            self._retained.append(changes)
            self._bytes += self._size_of(changes)
            self.newest = changes.sequence
            while self._retained and (len(self._retained) > self._max_batches or self._bytes > self._max_bytes):
                dropped = self._retained.popleft()
                self._bytes -= self._size_of(dropped)
                self.oldest = dropped.sequence
        self._wake_waiters()

    def read_after(self, since: int, limit: int) -> list[Changes]:
        """Return up to `limit` batches after `since`; rejected with 410 if some of them are no longer retained."""
        with self._lock:
            if not self.oldest <= since <= self.newest:
                raise ExpiredChangesError(
                    410,
                    f"since: expected a retained sequence number, {self.oldest} to {self.newest}, got {since}. "
                    "Read the vectors again and follow from the sequence number returned with them",
                )
            start = since - self.oldest  # sequence numbers have no gaps
            return list(islice(self._retained, start, start + limit))

    def read_batch(self, sequence: int) -> Changes:
        """Return the changes of one batch; rejected with 410 if they are no longer retained."""
        (changes,) = self.read_after(sequence - 1, 1)
        return changes

    async def wait(self, since: int, seconds: float) -> None:
        """Wait for a batch after `since`, until the feed closes or the time is over."""
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        with self._lock:
            if self.newest > since or self.closed:
                return
            self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter[1]], timeout=seconds)
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    @contextmanager
    def register_follower(self) -> Iterator[None]:
        """Count a follower for the duration of the block; rejected with 503 if there are too many.

        Enter the block before the response starts: its status cannot change afterwards.
        """
        if self.followers >= self._max_followers:
            raise RejectedRequest(503, f"too many followers ({self.followers}); retry later", {"Retry-After": "10"})
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    def close(self) -> None:
        """Close the feed and wake all waiting followers."""
        self.closed = True
        self._wake_waiters()

    def _size_of(self, changes: Changes) -> int:
        return _ROW_OVERHEAD + len(changes) * self._row_bytes + len(changes.removed) * _ROW_OVERHEAD

    def _wake_waiters(self) -> None:
        if not self._waiters:
            return
        with self._lock:
            waiters = list(self._waiters)
        for loop, waiter in waiters:
            loop.call_soon_threadsafe(_complete, waiter)


def _complete(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class EncodedPart(NamedTuple):
    """A JSON message with some changes of a batch, and whether it is the last message of that batch."""

    message: bytes
    last: bool


class EncodedChangeFeed:
    """JSON messages of a feed by batch and part number.

    A message is encoded when the first follower is ready to send it, once for all followers. Followers hold only a
    batch number and a part number.
    """

    def __init__(self, feed: ChangeFeed, *, max_waiting: int, timeout: float) -> None:
        self._feed = feed
        self._queue = ThreadQueue(
            "ripplevec-encoder", threads=_ENCODER_THREADS, max_waiting=max_waiting, timeout=timeout
        )
        self._bounds: OrderedDict[int, list[int]] = OrderedDict()  # per batch, the split points of its parts
        self._parts: OrderedDict[tuple[int, int], EncodedPart] = OrderedDict()
        self._cached_bytes = 0
        self._encoding: dict[tuple[int, int], asyncio.Task[EncodedPart]] = {}

    async def get_part(self, sequence: int, part: int) -> EncodedPart:
        """Return one part of a batch; rejected with 410 if the batch is no longer retained."""
        key = (sequence, part)
        if (cached := self._parts.get(key)) is not None:
            self._parts.move_to_end(key)
            return cached
        if (encoding := self._encoding.get(key)) is None:
            encoding = self._encoding[key] = asyncio.create_task(self._encode(key))
            encoding.add_done_callback(lambda task: self._finish(key, task))
        return await asyncio.shield(encoding)  # other followers may wait for it too

    def close(self) -> None:
        """End the encoder threads."""
        self._queue.close()

    async def _encode(self, key: tuple[int, int]) -> EncodedPart:
        sequence, part = key
        known_bounds = self._bounds.get(sequence)
        bounds, encoded = await self._queue.run(_encode_part_of_batch, self._feed, sequence, part, known_bounds)
        self._bounds[sequence] = bounds
        self._bounds.move_to_end(sequence)
        if len(self._bounds) > _CACHED_BOUNDS:
            self._bounds.popitem(last=False)
        self._cache(key, encoded)
        return encoded

    def _finish(self, key: tuple[int, int], encoding: asyncio.Task[EncodedPart]) -> None:
        del self._encoding[key]
        if not encoding.cancelled():
            encoding.exception()  # mark it as retrieved, even if no follower waits for it any more

    def _cache(self, key: tuple[int, int], encoded: EncodedPart) -> None:
        self._parts[key] = encoded
        self._cached_bytes += len(encoded.message)
        while self._cached_bytes > CACHE_BYTES:
            _, oldest = self._parts.popitem(last=False)
            self._cached_bytes -= len(oldest.message)


def _encode_part_of_batch(
    feed: ChangeFeed, sequence: int, part: int, bounds: list[int] | None
) -> tuple[list[int], EncodedPart]:
    """Encode one part of a retained batch; return it with the part bounds of the batch."""
    changes = feed.read_batch(sequence)
    if bounds is None:
        bounds = split_points(changes, PART_BYTES)
    if not np.isfinite(changes.vectors[bounds[part] : bounds[part + 1]]).all():
        raise NotFiniteError
    return bounds, EncodedPart(encode_message_part(changes, bounds, part), part + 2 == len(bounds))
