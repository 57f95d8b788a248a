"""Short reads of the model from an event loop: at once, or together with all others that waited for the same batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ripplet.locks import ReadWriteLock

T = TypeVar("T")


class Reading:
    """Reads that take microseconds. A thread each, only to wait for a batch, would cost many times what they do."""

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    async def __call__(self, read: Callable[[], T]) -> T:
        """What `read` returns; it is called by this event loop while nobody writes."""
        if self._lock.try_reading():
            try:
                return read()
            finally:
                self._lock.end_reading()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.append((read, done))
        if len(self._waiting) == 1:
            self._lock.ask_to_read(lambda: self._granted(loop))
        return await done

    def _granted(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._read_all)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._lock.end_reading()

    def _read_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            for read, done in waiting:
                if not done.done():
                    _settle(read, done)
        finally:
            self._lock.end_reading()


def _settle(read: Callable[[], Any], done: asyncio.Future[Any]) -> None:
    try:
        done.set_result(read())
    except Exception as error:
        done.set_exception(error)
