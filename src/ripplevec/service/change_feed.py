"""The feed: what the last batches changed, kept for those who follow, up to a bound."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from ripplevec.changes import Changes
from ripplevec.service.responses import RejectedRequest

_AROUND = 128  # bytes for an id and what is kept beside its vector


class ExpiredChangesError(RejectedRequest):
    """Changes that are asked for are no longer kept."""


class ChangeFeed:
    """The changes of the last batches. Whoever applies them appends, in order; any number follow from an event loop."""

    def __init__(self, newest: int, dim: int, *, batches: int, size: int, followers: int) -> None:
        self.oldest = self.newest = newest  # whoever has seen `oldest` or a later batch can be told the rest
        self._kept: deque[Changes] = deque()
        self._size, self._row = 0, 8 * dim + _AROUND  # a vector is kept as it is inside and, once asked for, as served
        self._batches, self._limit, self._most_followers = batches, size, followers
        self._lock = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()
        self.followers = 0
        self.closed = False

    def append(self, changes: Changes) -> None:
        """Keep what the next batch changed; the oldest go where there is too much."""
        with self._lock:
            self._kept.append(changes)
            self._size += self._bytes(changes)
            self.newest = changes.sequence
            while self._kept and (len(self._kept) > self._batches or self._size > self._limit):
                gone = self._kept.popleft()
                self._size -= self._bytes(gone)
                self.oldest = gone.sequence
        self._wake()

    def after(self, since: int, limit: int) -> list[Changes]:
        """Up to `limit` batches behind `since`; refused with 410 where some of them are no longer kept."""
        with self._lock:
            if not self.oldest <= since <= self.newest:
                raise ExpiredChangesError(
                    410,
                    f"since: expected {self.oldest} to {self.newest}, which are kept, got {since}; read the vectors "
                    "anew and follow from the sequence that comes with them",
                )
            first = since - self.oldest  # numbers have no gaps
            return list(islice(self._kept, first, first + limit))

    def get(self, sequence: int) -> Changes:
        """The changes of one batch; refused with 410 where they are no longer kept."""
        (found,) = self.after(sequence - 1, 1)
        return found

    async def wait(self, since: int, seconds: float) -> None:
        """Return when something came behind `since`, when the feed closes, or when the time is over."""
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        with self._lock:
            if self.newest > since or self.closed:
                return
            self._waiting.add(waiter)
        try:
            await asyncio.wait([waiter[1]], timeout=seconds)
        finally:
            with self._lock:
                self._waiting.discard(waiter)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Count a follower meanwhile; refused where there are too many, so before an answer is begun."""
        if self.followers >= self._most_followers:
            raise RejectedRequest(503, f"there are {self.followers} followers already", {"Retry-After": "10"})
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    def close(self) -> None:
        """Let everybody who waits go."""
        self.closed = True
        self._wake()

    def _bytes(self, changes: Changes) -> int:
        return _AROUND + len(changes) * self._row + len(changes.removed) * _AROUND

    def _wake(self) -> None:
        if not self._waiting:
            return
        with self._lock:
            waiting = list(self._waiting)
        for loop, waiter in waiting:
            loop.call_soon_threadsafe(_finish, waiter)


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
