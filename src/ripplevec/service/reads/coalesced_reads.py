"""Short reads of the model from an event loop: at once, or together with all others that waited for the same batch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from ripplevec.util.locks import ReadWriteLock

T = TypeVar("T")


class CoalescedReads:
    """Reads that take microseconds. A thread each, only to wait for a batch, would cost many times what they do."""

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._adding = threading.Lock()
        self._waiter = ThreadPoolExecutor(1, "ripplevec-waiting-reader")

    async def __call__(self, read: Callable[[], T]) -> T:
        """What `read` returns; it is called while nobody writes, by this event loop or by the thread that waited."""
        if self._lock.try_reading():
            try:
                return read()
            finally:
                self._lock.end_reading()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        with self._adding:
            self._waiting.append((read, done))
            first = len(self._waiting) == 1
        if first:
            self._waiter.submit(self._read_all, loop)
        return await done

    def _read_all(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock.reading():
            with self._adding:
                waiting, self._waiting = self._waiting, []
            found = [(done, _outcome(read)) for read, done in waiting if not done.done()]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, found)


def _outcome(read: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return read(), None
    except Exception as error:
        return None, error


def _settle(found: list[tuple[asyncio.Future[Any], tuple[Any, Exception | None]]]) -> None:
    for done, (value, error) in found:
        if done.done():
            continue
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)
