"""A writer is alone, readers share, and nobody is kept out for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ripplet.locks import ReadWriteLock

SOON = 0.05  # long enough for a thread that is free to go to have gone
LATE = 10.0  # nobody waits this long unless the lock is broken


@contextmanager
def running(*works: Callable[[], None]) -> Iterator[list[threading.Thread]]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield threads
    for thread in threads:
        thread.join(LATE)
        assert not thread.is_alive()


def test_a_writer_never_meets_anybody() -> None:
    lock, faults = ReadWriteLock(), []
    inside = {"readers": 0, "writers": 0}
    pair = [0, 0]

    def read() -> None:
        for _ in range(200):
            with lock.reading():
                inside["readers"] += 1
                if inside["writers"] or pair[0] != pair[1]:
                    faults.append("a reader met a writer")
                inside["readers"] -= 1

    def write() -> None:
        for _ in range(100):
            with lock.writing():
                inside["writers"] += 1
                if inside["writers"] > 1:
                    faults.append("two writers met")
                pair[0] += 1
                threading.Event().wait(0.0001)  # let the others try
                pair[1] += 1
                inside["writers"] -= 1

    with running(write, write, read, read, read):
        pass
    assert not faults
    assert pair == [200, 200]


def test_readers_share() -> None:
    lock, together = ReadWriteLock(), threading.Barrier(3)

    def read() -> None:
        with lock.reading():
            together.wait(LATE)

    with running(read, read, read):
        pass
    assert not together.broken


def test_a_writer_waits_for_readers_and_goes_before_those_that_come_after_it() -> None:
    lock, order = ReadWriteLock(), []
    leave, entered, waiting = threading.Event(), threading.Event(), threading.Event()

    def early() -> None:
        with lock.reading():
            entered.set()
            leave.wait(LATE)
            order.append("early reader")

    def write() -> None:
        entered.wait(LATE)
        waiting.set()
        with lock.writing():
            order.append("writer")

    def late() -> None:
        waiting.wait(LATE)
        threading.Event().wait(SOON)
        with lock.reading():
            order.append("late reader")

    with running(early, write, late):
        waiting.wait(LATE)
        threading.Event().wait(3 * SOON)
        assert order == []
        leave.set()
    assert order == ["early reader", "writer", "late reader"]


def test_whoever_asked_is_told_when_the_write_is_over_and_goes_before_the_next() -> None:
    lock, order = ReadWriteLock(), list[str]()
    lock.ask_to_read(lambda: order.append("at once"))
    lock.end_reading()
    lock.begin_writing()
    lock.ask_to_read(lambda: order.append("first"))
    lock.ask_to_read(lambda: order.append("second"))
    assert order == ["at once"]
    lock.end_writing()
    assert order == ["at once", "first", "second"]

    def write() -> None:
        with lock.writing():
            order.append("writer")

    with running(write) as (writer,):
        lock.end_reading()
        writer.join(SOON)
        assert order[3:] == []  # one of them still reads
        lock.end_reading()
    assert order[3:] == ["writer"]


def test_whoever_asked_is_told_where_the_writer_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, told = ReadWriteLock(), []

    def interrupt() -> None:
        lock._state.release()  # as a wait does
        lock.ask_to_read(lambda: told.append(1))
        lock._state.acquire()
        raise KeyboardInterrupt

    with lock.reading(), monkeypatch.context() as patched:
        patched.setattr(lock._changed, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt), lock.writing():
            pass
    assert told == [1]
    lock.end_reading()
    with lock.writing():
        pass


def test_an_error_inside_sets_the_lock_free() -> None:
    lock = ReadWriteLock()
    for hold in (lock.writing, lock.reading):
        with pytest.raises(ZeroDivisionError), hold():
            raise ZeroDivisionError

    def write() -> None:
        with lock.writing():
            pass

    with running(write):
        pass


def test_an_interrupted_wait_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ReadWriteLock()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with lock.reading(), monkeypatch.context() as patched:
        patched.setattr(lock._changed, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt), lock.writing():
            pass

    def read() -> None:
        with lock.reading():
            pass

    with running(read):
        pass


def test_one_reader_beside_one_writer_never_wait_for_each_other_for_ever() -> None:
    lock, stop, reads = ReadWriteLock(), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            with lock.reading():
                reads.append(1)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for _ in range(2_000):
        with lock.writing():
            pass
    stop.set()
    reader.join(10)
    assert not reader.is_alive()
    assert reads


def test_a_reader_waits_for_one_write_at_the_most() -> None:
    """Beside a writer that never pauses, every write that ends lets the waiting reader in before the next."""
    lock, stop, writes = ReadWriteLock(), threading.Event(), [0]

    def write() -> None:
        while not stop.is_set():
            with lock.writing():
                writes[0] += 1

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    waited = []
    for _ in range(50):
        lock._state.acquire()  # what has been written so far, while the lock itself is held still
        before = writes[0]
        lock._state.release()
        with lock.reading():
            waited.append(writes[0] - before)
    stop.set()
    writer.join(10)
    assert not writer.is_alive()
    assert sorted(waited)[len(waited) // 2] <= 2


def test_trying_to_read_never_waits() -> None:
    lock = ReadWriteLock()
    assert lock.try_reading()
    assert lock.try_reading()  # readers share
    waiting = threading.Thread(target=lock.begin_writing, daemon=True)
    waiting.start()
    waiting.join(SOON)
    assert not lock.try_reading()  # a writer waits
    lock.end_reading()
    lock.end_reading()
    waiting.join(LATE)
    assert not lock.try_reading()  # a writer is inside
    lock.end_writing()
    with lock.reading():
        assert lock.try_reading()
        lock.end_reading()


def test_readers_go_on_while_a_writer_is_aside_but_no_other_writer() -> None:
    lock, wrote = ReadWriteLock(), threading.Event()

    def write() -> None:
        with lock.writing():
            wrote.set()

    with lock.writing():
        assert not lock.try_reading()
        with lock.aside():
            other = threading.Thread(target=write)
            other.start()
            assert lock.try_reading()
            lock.end_reading()
            assert not wrote.wait(0.05)
        assert not lock.try_reading()
        assert not wrote.is_set()
    other.join()
    assert wrote.is_set()


def test_nothing_is_still_while_a_writer_is_aside() -> None:
    lock, looked = ReadWriteLock(), threading.Event()

    def look() -> None:
        with lock.still():
            looked.set()

    with lock.writing(), lock.aside():
        other = threading.Thread(target=look)
        other.start()
        assert not looked.wait(0.05)
    other.join()
    assert looked.is_set()


def test_aside_of_nothing_is_nothing() -> None:
    lock = ReadWriteLock()
    with lock.aside():
        pass
    assert lock.try_reading()
