"""Reads from an event loop, at once or together after a write."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ripplevec.service.coalesced_reads import CoalescedReads
from ripplevec.util.locks import ReadWriteLock


def test_read_without_writer_runs_at_once() -> None:
    lock = ReadWriteLock()

    def read() -> int:
        assert not _can_write(lock)
        return 7

    assert asyncio.run(CoalescedReads(lock).run(read)) == 7
    assert _can_write(lock)


def test_read_during_write_waits_and_runs_in_order() -> None:
    lock, order, go_on = ReadWriteLock(), list[str](), threading.Event()

    def read(name: str) -> str:
        order.append(name)
        if name == "fails":
            raise KeyError(name)
        return name

    async def run() -> list[object]:
        reads = CoalescedReads(lock)
        writer = _write_until(lock, go_on)
        waiting = [
            asyncio.ensure_future(reads.run(lambda name=name: read(name))) for name in ("a", "gone", "fails", "b")
        ]
        await asyncio.sleep(0)
        assert order == []
        waiting[1].cancel()
        go_on.set()
        await asyncio.to_thread(writer.join)
        return await asyncio.gather(*waiting, return_exceptions=True)

    a, gone, fails, b = asyncio.run(run())
    assert (a, b) == ("a", "b")
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(fails, KeyError)
    assert order == ["a", "fails", "b"]
    assert _can_write(lock)


def test_read_of_closed_event_loop_does_not_block_writers() -> None:
    lock, go_on = ReadWriteLock(), threading.Event()

    async def leave() -> None:
        _write_until(lock, go_on)
        waiting = asyncio.ensure_future(CoalescedReads(lock).run(lambda: 1))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(leave())
    go_on.set()
    assert _can_write(lock)


def test_read_error_is_raised_to_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(CoalescedReads(ReadWriteLock()).run(lambda: 1 // 0))


def _write_until(lock: ReadWriteLock, go_on: threading.Event) -> threading.Thread:
    """Start a thread that holds the write lock until the event; return once it has the lock."""
    inside = threading.Event()

    def write() -> None:
        with lock.exclude_writers():
            lock.run_exclusively(lambda: (inside.set(), go_on.wait(10)))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert inside.wait(10)
    return writer


def _can_write(lock: ReadWriteLock, seconds: float = 0.2) -> bool:
    """Return whether a writer gets the lock in time, so that no read holds it."""
    written = threading.Event()

    def write() -> None:
        with lock.exclude_writers():
            lock.run_exclusively(written.set)

    threading.Thread(target=write, daemon=True).start()
    return written.wait(seconds)
