"""Thread pool with a bounded queue for requests: limits on waiting requests and time; disconnected clients leave it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import Receive

from ripplevec.service.responses import RejectedRequest

CLIENT_CLOSED_REQUEST = 499
"""Status of a request whose client disconnected before the response; it appears only in logs and metrics."""

T = TypeVar("T")


class ThreadQueue:
    """A few threads and a bounded queue in front of them, for one event loop.

    A request is rejected if the queue is full or its time is over. A request whose client disconnects leaves the queue
    immediately; work that has started runs to its end and occupies its thread until then.
    """

    def __init__(self, name: str, *, threads: int, max_waiting: int, timeout: float) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._free, self._max_waiting, self._timeout = threads, max_waiting, timeout
        self._waiting: dict[asyncio.Future[None], None] = {}  # tickets, first come first served

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a thread."""
        return len(self._waiting)

    async def run(
        self, function: Callable[..., T], *arguments: Any, receive: Receive | None = None, timeout: float | None = None
    ) -> T:
        """Call a function on a thread and return its result; `receive` reports when the client disconnects."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout if timeout is None else timeout)
        disconnected = loop.create_future() if receive is None else loop.create_task(_wait_for_disconnect(receive))
        try:
            if receive is not None:
                await asyncio.sleep(0)  # let the task check once: the client may have disconnected already
            await self._acquire_thread(disconnected, deadline)
            return await self._call(disconnected, deadline, function, *arguments)
        finally:
            disconnected.cancel()

    def close(self) -> None:
        """Wait for work that has started and end the threads."""
        self._pool.shutdown()

    async def _acquire_thread(self, disconnected: asyncio.Future[None], deadline: float) -> None:
        """Wait for a free thread and reserve it."""
        if disconnected.done():
            raise _client_closed_request()
        if self._free:
            self._free -= 1
            return
        if len(self._waiting) >= self._max_waiting:
            raise RejectedRequest(503, "too many requests are queued; retry", {"Retry-After": "1"})
        ticket = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = None
        acquired = False
        try:
            await _wait_for_either(ticket, disconnected, deadline)
            acquired = ticket.done() and not disconnected.done()
        finally:
            if not acquired:
                self._withdraw(ticket)
        if not acquired:
            raise _client_closed_request() if disconnected.done() else self._timeout_error()

    async def _call(
        self, disconnected: asyncio.Future[None], deadline: float, function: Callable[..., T], *arguments: Any
    ) -> T:
        """Run the function on the reserved thread, which is released when the function returns, awaited or not."""
        work = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
        work.add_done_callback(self._finish)
        await _wait_for_either(work, disconnected, deadline)
        if work.done():
            return work.result()
        raise _client_closed_request() if disconnected.done() else self._timeout_error()

    def _finish(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # mark it as retrieved, even if no request waits for it any more
        self._release_thread()

    def _withdraw(self, ticket: asyncio.Future[None]) -> None:
        """Give up a place in the queue, or the thread that was assigned to it meanwhile."""
        if ticket.done():
            self._release_thread()
        else:
            del self._waiting[ticket]
            ticket.cancel()

    def _release_thread(self) -> None:
        """Assign a thread to the next waiting request."""
        if self._waiting:
            ticket = next(iter(self._waiting))
            del self._waiting[ticket]
            ticket.set_result(None)
        else:
            self._free += 1

    def _timeout_error(self) -> RejectedRequest:
        return RejectedRequest(503, f"no response within {self._timeout:g} s; retry", {"Retry-After": "1"})


async def _wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected; the rest of a body is skipped."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_for_either(first: asyncio.Future[Any], second: asyncio.Future[Any], deadline: float) -> None:
    """Wait until one of the futures is done or the deadline has passed."""
    remaining = deadline - asyncio.get_running_loop().time()
    await asyncio.wait({first, second}, timeout=max(remaining, 0), return_when=asyncio.FIRST_COMPLETED)


def _client_closed_request() -> RejectedRequest:
    return RejectedRequest(CLIENT_CLOSED_REQUEST, "the client disconnected")
