from __future__ import annotations

import asyncio
import threading

import pytest

from ripplet.locks import ReadWriteLock
from ripplet.service.reading import Reading


def test_a_read_is_done_at_once_where_nobody_writes() -> None:
    lock = ReadWriteLock()

    def read() -> int:
        assert not _can_write(lock)
        return 7

    assert asyncio.run(Reading(lock)(read)) == 7
    assert _can_write(lock)


def test_those_that_waited_are_read_together_and_in_order() -> None:
    lock, order, here = ReadWriteLock(), list[str](), threading.get_ident()

    def read(name: str) -> str:
        assert threading.get_ident() == here
        order.append(name)
        if name == "fails":
            raise KeyError(name)
        return name

    async def live() -> list[object]:
        reading = Reading(lock)
        lock.begin_writing()
        waiting = [asyncio.ensure_future(reading(lambda name=name: read(name))) for name in ("a", "gone", "fails", "b")]
        await asyncio.sleep(0)
        assert order == []
        waiting[1].cancel()
        await asyncio.to_thread(lock.end_writing)
        return await asyncio.gather(*waiting, return_exceptions=True)

    a, gone, fails, b = asyncio.run(live())
    assert (a, b) == ("a", "b")
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(fails, KeyError)
    assert order == ["a", "fails", "b"]
    assert _can_write(lock)


def test_an_event_loop_that_has_ended_keeps_no_writer_out() -> None:
    lock = ReadWriteLock()

    async def leave() -> None:
        lock.begin_writing()
        waiting = asyncio.ensure_future(Reading(lock)(lambda: 1))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(leave())
    lock.end_writing()
    assert _can_write(lock)


def test_an_error_of_a_read_is_the_readers() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Reading(ReadWriteLock())(lambda: 1 // 0))


def _can_write(lock: ReadWriteLock) -> bool:
    """Whether nobody reads."""
    return lock._readers == 0
