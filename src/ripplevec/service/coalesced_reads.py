"""Coalesced reads: short reads from an event loop run immediately, or together after the current batch is applied."""

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
    """Runs reads that take microseconds under the read lock.

    Reads that find a writer at work wait together on one thread: a thread for each would cost many times the read.
    """

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock
        self._pending: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._pending_lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, "ripplevec-waiting-reader")

    async def run(self, read: Callable[[], T]) -> T:
        """Return the result of `read`, called while no writer is active, here or on the waiting thread."""
        if self._lock.try_reading():
            try:
                return read()
            finally:
                self._lock.end_reading()
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        with self._pending_lock:
            self._pending.append((read, result))
            is_first = len(self._pending) == 1
        if is_first:
            self._executor.submit(self._run_pending, loop)
        return await result

    def _run_pending(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock.reading():
            with self._pending_lock:
                pending, self._pending = self._pending, []
            outcomes = [(result, _call(read)) for read, result in pending if not result.done()]
        with suppress(RuntimeError):  # the loop is closed, so no request waits any more
            loop.call_soon_threadsafe(_deliver, outcomes)


def _call(read: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return read(), None
    except Exception as error:
        return None, error


def _deliver(outcomes: list[tuple[asyncio.Future[Any], tuple[Any, Exception | None]]]) -> None:
    for result, (value, error) in outcomes:
        if result.done():
            continue
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)
