from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ripplevec.service.responses import RejectedRequest
from ripplevec.service.thread_queue import CLIENT_CLOSED_REQUEST, ThreadQueue


class Client:
    """What `receive` says of a client: nothing more, until it hangs up."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._asked = False

    async def __call__(self) -> Any:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}


def with_queue(
    work: Callable[[ThreadQueue, threading.Event, list[int]], Coroutine[Any, Any, None]], **options: Any
) -> None:
    """Run against a queue of one thread, which is occupied until an event is set; what was done is listed."""

    async def all_of_it() -> None:
        queue = ThreadQueue("test", **{"threads": 1, "max_waiting": 2, "timeout": 30.0} | options)
        release, done = threading.Event(), []
        try:
            await asyncio.wait_for(work(queue, release, done), 30)
        finally:
            release.set()
            queue.close()

    asyncio.run(all_of_it())


async def settled(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_queue_full_rejects_with_503_and_retry_after() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        occupying = asyncio.create_task(queue.run(release.wait, 30))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(queue.run(done.append, number)) for number in range(2)]
        await settled(lambda: queue.waiting == 2)
        with pytest.raises(RejectedRequest) as refused:
            await queue.run(done.append, 9)
        assert refused.value.status == 503
        assert refused.value.headers["Retry-After"] == "1"
        release.set()
        await asyncio.gather(occupying, *waiting)
        assert done == [0, 1]
        assert queue.waiting == 0
        await queue.run(done.append, 2)

    with_queue(work)


def test_queue_disconnected_clients_leave_without_work() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        occupying = asyncio.create_task(queue.run(release.wait, 30))
        await asyncio.sleep(0)
        clients = [Client(), Client()]
        waiting = [
            asyncio.create_task(queue.run(done.append, number, receive=client)) for number, client in enumerate(clients)
        ]
        await settled(lambda: queue.waiting == 2)
        clients[0].gone.set()
        await settled(lambda: queue.waiting == 1)  # while the thread is still occupied
        with pytest.raises(RejectedRequest) as refused:
            await waiting[0]
        assert refused.value.status == CLIENT_CLOSED_REQUEST
        release.set()
        await asyncio.gather(occupying, waiting[1])
        assert done == [1]

    with_queue(work)


def test_queue_client_disconnected_before_start_does_no_work() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        client = Client()
        client.gone.set()
        await client()
        with pytest.raises(RejectedRequest) as refused:
            await queue.run(done.append, 1, receive=client)
        assert refused.value.status == CLIENT_CLOSED_REQUEST
        assert done == []
        await queue.run(done.append, 2)
        assert done == [2]

    with_queue(work)


def test_queue_timeout_rejects_and_keeps_the_thread_until_work_ends() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        for _ in range(2):  # the one that works, and one that waits for it
            with pytest.raises(RejectedRequest) as refused:
                await queue.run(release.wait, 30)
            assert refused.value.status == 503
        assert queue.waiting == 0
        release.set()
        await queue.run(done.append, 1, timeout=30)
        assert done == [1]

    with_queue(work, timeout=0.05)


def test_queue_canceled_request_passes_its_thread_on() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        occupying = asyncio.create_task(queue.run(release.wait, 30))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(queue.run(done.append, number)) for number in range(2)]
        await settled(lambda: queue.waiting == 2)
        waiting[0].cancel()
        release.set()
        await asyncio.gather(occupying, waiting[1])
        assert done == [1]
        await queue.run(done.append, 3)

    with_queue(work)


def test_queue_failing_work_raises_and_queue_continues() -> None:
    async def work(queue: ThreadQueue, release: threading.Event, done: list[int]) -> None:
        with pytest.raises(ZeroDivisionError):
            await queue.run(lambda: 1 // 0)
        await queue.run(done.append, 1)
        assert done == [1]

    with_queue(work)
