"""Reader-writer lock that stays consistent when a thread is interrupted.

Python may raise KeyboardInterrupt between any two bytecodes, so Python code cannot guarantee to release a lock that it
has acquired. A `with` statement over a lock implemented in C can. Everything here that blocks other threads is such a
lock, held by such a statement:

- Every reading thread has its own lock, `inside`, which it holds while it reads.
- A writer holds `_gate`, then acquires and releases the `inside` of every reader: all earlier readers have finished.
- A reader that finds the gate closed waits for it and holds its `queued` lock meanwhile. The next writer acquires and
  releases the `queued` of every reader before it closes the gate: readers that waited go first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast
from weakref import ref

Result = TypeVar("Result")


class ReadWriteLock:
    """Reader-writer lock without starvation: readers share it, a writer has it alone.

    A waiting writer goes before readers that arrive after it; readers that arrive during a write go before the next
    writer. A reader therefore waits for at most one write.
    """

    def __init__(self) -> None:
        self._writer_lock = threading.Lock()
        self._gate = threading.Lock()
        self._registration_lock = threading.Lock()
        self._readers: tuple[ref[_Reader], ...] = ()  # one per living thread that has read
        self._thread = threading.local()

    def exclude_writers(self) -> AbstractContextManager[Any]:
        """Return a context that excludes all other writers while it is active; readers continue."""
        return self._writer_lock

    def run_exclusively(
        self, work: Callable[[], Result], on_error: Callable[[BaseException], None] | None = None
    ) -> Result:
        """Run `work` while no thread reads. Only for a writer, within `exclude_writers`.

        If `work` raises an error, `on_error` is called with it before any thread reads again.
        """
        for reference in self._readers:
            if (reader := reference()) is not None:
                with reader.queued:
                    pass
        with self._gate:
            for reference in self._readers:
                if (reader := reference()) is not None:
                    with reader.inside:
                        pass
            return work() if on_error is None else _run_guarded(work, on_error)

    def reading(self) -> AbstractContextManager[Any]:
        """Return a context that excludes changes while it is active; without effect if the thread already reads."""
        reader = self._reader()
        # A new lock is a context without effect, for a thread that already reads.
        return threading.Lock() if reader.is_inside() else reader.context

    def try_reading(self) -> bool:
        """Start reading unless a writer is active or waiting; return whether it started. End with `end_reading`."""
        reader = self._reader()
        reader.inside.acquire()
        if not self._gate.locked():
            return True
        reader.inside.release()
        return False

    def end_reading(self) -> None:
        """End the reading that `try_reading` started, in the same thread."""
        self._reader().inside.release()

    def _reader(self) -> _Reader:
        """Return the locks of the current thread, creating them if necessary."""
        try:
            return cast(_Reader, self._thread.reader)
        except AttributeError:
            return self._register()

    def _register(self) -> _Reader:
        reader = _Reader(self._gate)
        with self._registration_lock:
            living = (reference for reference in self._readers if reference() is not None)
            self._readers = (*living, ref(reader))
        self._thread.reader = reader
        return reader


def _run_guarded(work: Callable[[], Result], on_error: Callable[[BaseException], None]) -> Result:
    try:
        return work()
    except BaseException as error:
        on_error(error)
        raise


class _Reader:
    """Locks of one reading thread."""

    def __init__(self, gate: threading.Lock) -> None:
        self.inside, self.queued = threading.RLock(), threading.Lock()
        self.is_inside: Callable[[], bool] = cast(Any, self.inside)._is_owned
        self.context = _create_read_context(gate, self.inside, self.queued)


def _create_read_context(gate: Any, inside: Any, queued: Any) -> AbstractContextManager[Any]:
    """Return a context manager whose exit is a C function, so that an interrupt cannot prevent the release."""

    def enter(_: object) -> None:
        try:
            inside.acquire()
            if gate.locked():
                inside.release()
                with queued, gate:
                    inside.acquire()
        except BaseException:
            if inside._is_owned():
                inside.release()
            raise

    return cast(
        AbstractContextManager[Any], type("_ReadContext", (), {"__enter__": enter, "__exit__": inside.__exit__})()
    )
