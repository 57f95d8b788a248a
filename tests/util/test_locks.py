"""Reader-writer lock: exclusion, fairness, and release after interrupts."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from interrupts import raise_at_line

from ripplevec.util import locks
from ripplevec.util.locks import ReadWriteLock

SOON = 0.05  # seconds; enough for a thread that is not blocked to finish
LATE = 10.0  # seconds; a wait this long means that the lock is broken


def write(lock: ReadWriteLock, work: Callable[[], Any] = lambda: None) -> Any:
    with lock.exclude_writers():
        return lock.run_exclusively(work)


def is_free(lock: ReadWriteLock) -> bool:
    """Return whether another thread can read and write."""
    done = threading.Event()

    def use() -> None:
        with lock.reading():
            pass
        write(lock, done.set)

    threading.Thread(target=use, daemon=True).start()
    return done.wait(LATE)


@contextmanager
def running(*works: Callable[[], None]) -> Iterator[list[threading.Thread]]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield threads
    for thread in threads:
        thread.join(LATE)
        assert not thread.is_alive()


def test_writer_is_always_alone() -> None:
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

    def change() -> None:
        inside["writers"] += 1
        if inside["writers"] > 1:
            faults.append("two writers met")
        pair[0] += 1
        threading.Event().wait(0.0001)  # let the other threads try
        pair[1] += 1
        inside["writers"] -= 1

    def write_often() -> None:
        for _ in range(100):
            write(lock, change)

    with running(write_often, write_often, read, read, read):
        pass
    assert not faults
    assert pair == [200, 200]


def test_readers_share_the_lock() -> None:
    lock, together = ReadWriteLock(), threading.Barrier(3)

    def read() -> None:
        with lock.reading():
            together.wait(LATE)

    with running(read, read, read):
        pass
    assert not together.broken


def test_writer_waits_for_earlier_readers_and_precedes_later_ones() -> None:
    lock, order = ReadWriteLock(), []
    leave, entered, waiting = threading.Event(), threading.Event(), threading.Event()

    def early() -> None:
        with lock.reading():
            entered.set()
            leave.wait(LATE)
            order.append("early reader")

    def write_once() -> None:
        entered.wait(LATE)
        waiting.set()
        write(lock, lambda: order.append("writer"))

    def late() -> None:
        waiting.wait(LATE)
        threading.Event().wait(SOON)
        with lock.reading():
            order.append("late reader")

    with running(early, write_once, late):
        waiting.wait(LATE)
        threading.Event().wait(3 * SOON)
        assert order == []
        leave.set()
    assert order == ["early reader", "writer", "late reader"]


def test_lock_after_an_exception_is_free() -> None:
    lock = ReadWriteLock()
    with pytest.raises(ZeroDivisionError), lock.reading():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        write(lock, lambda: 1 // 0)
    assert is_free(lock)


def test_reader_and_writer_in_loops_do_not_deadlock() -> None:
    lock, stop, reads = ReadWriteLock(), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            with lock.reading():
                reads.append(1)

    with running(read):
        for _ in range(2_000):
            write(lock)
        stop.set()
    assert reads


def test_reader_waits_for_at_most_one_write() -> None:
    """With a writer that never pauses, a waiting reader enters between two writes."""
    lock, stop, writes = ReadWriteLock(), threading.Event(), [0]

    def change() -> None:
        writes[0] += 1

    def write_on() -> None:
        while not stop.is_set():
            write(lock, change)

    waited = []
    with running(write_on):
        for _ in range(50):
            before = writes[0]
            with lock.reading():
                waited.append(writes[0] - before)
        stop.set()
    assert sorted(waited)[len(waited) // 2] <= 2


def test_try_reading_never_blocks() -> None:
    lock, inside, leave = ReadWriteLock(), threading.Event(), threading.Event()
    assert lock.try_reading()
    assert lock.try_reading()
    with running(lambda: write(lock, lambda: (inside.set(), leave.wait(LATE)))):
        deadline = time.monotonic() + LATE
        while lock.try_reading():  # until a writer waits
            lock.end_reading()
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert not inside.is_set()
        lock.end_reading()
        lock.end_reading()
        inside.wait(LATE)
        assert not lock.try_reading()  # a writer is inside
        leave.set()
    assert lock.try_reading()
    lock.end_reading()
    assert is_free(lock)


def test_nested_reading_does_not_wait_for_a_waiting_writer() -> None:
    lock, order = ReadWriteLock(), list[str]()
    with lock.reading():
        writer = threading.Thread(target=write, args=(lock, lambda: order.append("writer")), daemon=True)
        writer.start()
        writer.join(SOON)
        with lock.reading():
            order.append("inner")
        assert order == ["inner"]
    writer.join(LATE)
    assert order == ["inner", "writer"]


def test_exclude_writers_blocks_writers_but_not_readers() -> None:
    lock, wrote = ReadWriteLock(), threading.Event()
    with (
        running(lambda: write(lock, wrote.set) if lock.exclude_writers() else None) as (writer,),
        lock.exclude_writers(),
    ):
        writer.join(SOON)
        with lock.reading():
            pass
    assert wrote.wait(LATE)


def test_registered_readers_of_ended_threads_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = list[weakref.ref[Any]]()

    class RecordedReference(weakref.ref):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            registered.append(weakref.ref(self))

    monkeypatch.setattr(locks, "ref", RecordedReference)
    lock = ReadWriteLock()

    def read() -> None:
        with lock.reading():
            pass

    for _ in range(20):
        with running(read):
            pass
    assert len(registered) == 20
    assert sum(reference() is not None for reference in registered) < 10


def test_run_exclusively_failed_work_calls_on_error_before_anything_is_read() -> None:
    lock, failure, calls = ReadWriteLock(), ValueError("broken"), list[Any]()

    def fail() -> None:
        raise failure

    def handle(error: BaseException) -> None:
        calls.append((error, lock.try_reading()))

    with pytest.raises(ValueError, match="broken"), lock.exclude_writers():
        lock.run_exclusively(fail, handle)
    assert calls == [(failure, False)]
    assert is_free(lock)
    with lock.exclude_writers():
        assert lock.run_exclusively(lambda: "done", handle) == "done"
    assert len(calls) == 1


# ------------------------------------------------------------------ interrupts


def read_at_once(lock: ReadWriteLock) -> None:
    with lock.reading():
        pass


def write_with_handler(lock: ReadWriteLock) -> None:
    with lock.exclude_writers():
        lock.run_exclusively(lambda: None, lambda error: None)


def read_after_a_writer(lock: ReadWriteLock) -> None:
    inside, leave = threading.Event(), threading.Event()
    writer = threading.Thread(target=write, args=(lock, lambda: (inside.set(), leave.wait(LATE))), daemon=True)
    writer.start()
    inside.wait(LATE)
    threading.Timer(0.002, leave.set).start()
    try:
        read_at_once(lock)
    finally:
        leave.set()
        writer.join(LATE)


def write_after_a_reader(lock: ReadWriteLock) -> None:
    inside, leave = threading.Event(), threading.Event()

    def read() -> None:
        with lock.reading():
            inside.set()
            leave.wait(LATE)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    inside.wait(LATE)
    threading.Timer(0.002, leave.set).start()
    try:
        write(lock)
    finally:
        leave.set()
        reader.join(LATE)


@pytest.mark.parametrize("use", [read_at_once, write, write_with_handler, read_after_a_writer, write_after_a_reader])
def test_lock_interrupted_at_any_line_is_left_free(use: Callable[[ReadWriteLock], None]) -> None:
    for number in range(200):
        lock = ReadWriteLock()
        interrupt = raise_at_line(number, KeyboardInterrupt(), lambda name: name == locks.__file__)
        with suppress(KeyboardInterrupt), interrupt as injection:
            use(lock)
        assert is_free(lock), f"line {number}"
        if not injection.raised:
            return
    pytest.fail("more lines than expected")


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("use", [read_at_once, write])
def test_lock_interrupted_asynchronously_is_left_free(
    use: Callable[[ReadWriteLock], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asynchronous exceptions are raised at the same points as a KeyboardInterrupt from a signal."""
    # An interrupt may hit a destructor. pytest would report it with code that the next interrupt hits in turn, so a
    # built-in function that does nothing takes its place.
    monkeypatch.setattr(sys, "unraisablehook", id)
    lock, stop, caught = ReadWriteLock(), threading.Event(), [0]

    def use_until_stopped() -> None:
        while not stop.is_set():
            try:
                while not stop.is_set():
                    use(lock)
            except Interrupt:
                caught[0] += 1

    def use_and_survive_interrupts() -> None:
        while not stop.is_set():  # an interrupt may be raised where the inner loop cannot catch it
            try:
                use_until_stopped()
            except Interrupt:
                caught[0] += 1

    user = threading.Thread(target=use_and_survive_interrupts, daemon=True)
    user.start()
    until, interval = time.monotonic() + 1.0, sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    while time.monotonic() < until:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(user.ident or 0), ctypes.py_object(Interrupt))
        time.sleep(0.0001)
    sys.setswitchinterval(interval)
    stop.set()
    user.join(LATE)
    assert not user.is_alive()
    assert caught[0] > 10
    assert is_free(lock)


SIGNALS = """
import signal, threading, time
from ripplevec.util.locks import ReadWriteLock

armed = False

def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

def use(lock):
    for _ in range(50):
        with lock.reading():
            pass
        with lock.exclude_writers():
            lock.run_exclusively(lambda: None)

def use_in_parallel(lock, stop):
    while not stop.is_set():
        use(lock)

lock, stop, caught = ReadWriteLock(), threading.Event(), 0
threading.Thread(target=use_in_parallel, args=(lock, stop), daemon=True).start()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
until = time.monotonic() + 1.5
while time.monotonic() < until:
    try:
        armed = True
        use(lock)
        armed = False
    except KeyboardInterrupt:
        caught += 1
signal.setitimer(signal.ITIMER_REAL, 0)
stop.set()
done = threading.Event()
threading.Thread(target=lambda: (use(lock), done.set()), daemon=True).start()
assert done.wait(10), "the lock is held"
print(caught)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_lock_interrupted_by_signals_is_left_free() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
