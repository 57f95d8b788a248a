"""The bounded thread pool for requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ripplevec.service.responses import RejectedRequest
from ripplevec.service.thread_queue import CLIENT_CLOSED_REQUEST, ThreadQueue


class Client:
    """An ASGI `receive` of a client that sends nothing more and disconnects when `gone` is set."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._body_sent = False

    async def __call__(self) -> Any:
        if not self._body_sent:
            self._body_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}


def run_with_queue(
    work: Callable[[ThreadQueue, threading.Event, list[int]], Coroutine[Any, Any, None]], **options: Any
) -> None:
    """Run a test with a queue of one thread, an event that releases it, and a list of completed work."""

    async def run() -> None:
        queue = ThreadQueue("test", **{"threads": 1, "max_waiting": 2, "timeout": 30.0} | options)
        release, done = threading.Event(), []
        try:
            await asyncio.wait_for(work(queue, release, done), 30)
        finally:
            release.set()
            queue.close()

    asyncio.run(run())


async def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_queue_full_rejects_with_503_and_retry_after() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        occupying = asyncio.create_task(queue.run(release.wait, 30))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(queue.run(done.append, number)) for number in range(2)]
        await wait_until(lambda: queue.waiting == 2)
        with pytest.raises(RejectedRequest) as rejected:
            await queue.run(done.append, 9)
        assert rejected.value.status == 503
        assert rejected.value.headers["Retry-After"] == "1"
        release.set()
        await asyncio.gather(occupying, *waiting)
        assert done == [0, 1]
        assert queue.waiting == 0
        await queue.run(done.append, 2)

    run_with_queue(work)


def test_queue_disconnected_clients_leave_without_work() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        occupying = asyncio.create_task(queue.run(release.wait, 30))
        await asyncio.sleep(0)
        clients = [Client(), Client()]
        waiting = [
            asyncio.create_task(queue.run(done.append, number, receive=client)) for number, client in enumerate(clients)
        ]
        await wait_until(lambda: queue.waiting == 2)
        clients[0].gone.set()
        await wait_until(lambda: queue.waiting == 1)  # while the thread is still occupied
        with pytest.raises(RejectedRequest) as rejected:
            await waiting[0]
        assert rejected.value.status == CLIENT_CLOSED_REQUEST
        release.set()
        await asyncio.gather(occupying, waiting[1])
        assert done == [1]

    run_with_queue(work)


def test_queue_client_disconnected_before_start_does_no_work() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        client = Client()
        client.gone.set()
        await client()
        with pytest.raises(RejectedRequest) as rejected:
            await queue.run(done.append, 1, receive=client)
        assert rejected.value.status == CLIENT_CLOSED_REQUEST
        assert done == []
        await queue.run(done.append, 2)
        assert done == [2]

    run_with_queue(work)


def test_queue_timeout_rejects_and_keeps_the_thread_until_work_ends() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        for _ in range(2):  # the request on the thread, and one that waits for it
            with pytest.raises(RejectedRequest) as rejected:
                await queue.run(release.wait, 30)
            assert rejected.value.status == 503
        assert queue.waiting == 0
        release.set()
        await queue.run(done.append, 1, timeout=30)
        assert done == [1]

    run_with_queue(work, timeout=0.05)


def test_queue_canceled_request_passes_its_thread_on() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        occupying = asyncio.create_task(queue.run(release.wait, 30))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(queue.run(done.append, number)) for number in range(2)]
        await wait_until(lambda: queue.waiting == 2)
        waiting[0].cancel()
        release.set()
        await asyncio.gather(occupying, waiting[1])
        assert done == [1]
        await queue.run(done.append, 3)

    run_with_queue(work)


def test_queue_failing_work_raises_and_queue_continues() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        with pytest.raises(ZeroDivisionError):
            await queue.run(lambda: 1 // 0)
        await queue.run(done.append, 1)
        assert done == [1]

    run_with_queue(work)
