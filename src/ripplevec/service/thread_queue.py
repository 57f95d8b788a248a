"""Work of requests on a few threads: bounded in number, in waiting and in time, and not for clients that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import Receive

from ripplevec.service.responses import RejectedRequest

CLIENT_GONE = 499
"""The status of a request whose client hung up before the answer; only logs and metrics ever show it."""

T = TypeVar("T")


class ThreadQueue:
    """A few threads and a bounded queue before them, for one event loop.

    A request is refused where the queue is full or the time is over. One whose client hangs up leaves the queue at
    once; work that has begun goes on to its end and occupies its thread until then.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._free, self._most_waiting, self._seconds = threads, waiting, seconds
        self._waiting: dict[asyncio.Future[None], None] = {}  # in order of their coming

    @property
    def waiting(self) -> int:
        """How many requests wait for a thread."""
        return len(self._waiting)

    async def run(
        self, function: Callable[..., T], *arguments: Any, receive: Receive | None = None, seconds: float | None = None
    ) -> T:
        """What the function returns, called by a thread; `receive` tells when the client has hung up."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + (self._seconds if seconds is None else seconds)
        gone = loop.create_future() if receive is None else loop.create_task(_until_gone(receive))
        try:
            if receive is not None:
                await asyncio.sleep(0)  # lets the task look once: it may have hung up already
            await self._enter(gone, latest)
            return await self._work(gone, latest, function, *arguments)
        finally:
            gone.cancel()

    def close(self) -> None:
        """Wait for the work that has begun, and end the threads."""
        self._pool.shutdown()

    async def _enter(self, gone: asyncio.Future[None], latest: float) -> None:
        """Wait for a free thread and occupy it."""
        if gone.done():
            raise _client_gone()
        if self._free:
            self._free -= 1
            return
        if len(self._waiting) >= self._most_waiting:
            raise RejectedRequest(503, "too many requests wait to be answered; try again", {"Retry-After": "1"})
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        entered = False
        try:
            await _first_of(turn, gone, latest)
            entered = turn.done() and not gone.done()
        finally:
            if not entered:
                self._withdraw(turn)
        if not entered:
            raise _client_gone() if gone.done() else self._too_late()

    async def _work(self, gone: asyncio.Future[None], latest: float, function: Callable[..., T], *arguments: Any) -> T:
        """Have a thread that is occupied do the work; it is free again when the work is done, awaited or not."""
        work = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
        work.add_done_callback(self._finish)
        await _first_of(work, gone, latest)
        if work.done():
            return work.result()
        raise _client_gone() if gone.done() else self._too_late()

    def _finish(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # seen, also where nobody waits for it any more
        self._leave()

    def _withdraw(self, turn: asyncio.Future[None]) -> None:
        """Give up a place in the queue, or the thread that it has led to meanwhile."""
        if turn.done():
            self._leave()
        else:
            del self._waiting[turn]
            turn.cancel()

    def _leave(self) -> None:
        """Hand a thread to the next that waits."""
        if self._waiting:
            turn = next(iter(self._waiting))
            del self._waiting[turn]
            turn.set_result(None)
        else:
            self._free += 1

    def _too_late(self) -> RejectedRequest:
        return RejectedRequest(503, f"not answered within {self._seconds:g} s; try again", {"Retry-After": "1"})


async def _until_gone(receive: Receive) -> None:
    """Return when the client has hung up; what is left of a body is passed over."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first_of(one: asyncio.Future[Any], other: asyncio.Future[Any], latest: float) -> None:
    """Wait until either is done, or until the time is over."""
    left = latest - asyncio.get_running_loop().time()
    await asyncio.wait({one, other}, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)


def _client_gone() -> RejectedRequest:
    return RejectedRequest(CLIENT_GONE, "the client has hung up")
