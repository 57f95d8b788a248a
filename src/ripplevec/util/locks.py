"""One writer, many readers, and nothing stays held when somebody is interrupted.

Python may raise KeyboardInterrupt between any two steps, so that code in Python cannot be sure to release what it has
acquired. A `with` statement over a lock that is written in C can. Everything here that keeps others waiting is such a
lock, held by such a statement:

- Every thread that reads has a lock of its own, `inside`, which it holds while it reads.
- A writer holds `_gate`, then takes each reader's `inside` once: the readers that were there have gone.
- A reader that finds the gate closed waits for it, and holds its `queued` meanwhile. The next writer takes each
  reader's `queued` once before it closes the gate: the readers that waited go first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast
from weakref import ref

Result = TypeVar("Result")


class ReadWriteLock:
    """Readers share, a writer is alone, and nobody starves.

    A writer that waits goes before readers that come after it; the readers that came while it wrote go before the next
    writer. So a reader waits for one write at the most.
    """

    def __init__(self) -> None:
        self._one_writer = threading.Lock()
        self._gate = threading.Lock()
        self._registering = threading.Lock()
        self._readers: tuple[ref[_Reader], ...] = ()  # of threads that have read and still live
        self._mine = threading.local()

    def exclude_writers(self) -> AbstractContextManager[Any]:
        """Keep other writers out meanwhile: what is looked at stays as it is, and readers go on."""
        return self._one_writer

    def run_exclusively(self, work: Callable[[], Result]) -> Result:
        """Do something while nobody reads. For the one who writes: within `exclude_writers`."""
        for known in self._readers:
            if (reader := known()) is not None:
                with reader.queued:
                    pass
        with self._gate:
            for known in self._readers:
                if (reader := known()) is not None:
                    with reader.inside:
                        pass
            return work()

    def reading(self) -> AbstractContextManager[Any]:
        """Keep writers from changing anything meanwhile. Within another of the same thread it does nothing."""
        reader = self._reader()
        return threading.Lock() if reader.is_inside() else reader.entry

    def try_reading(self) -> bool:
        """Begin to read if nobody writes or waits to, until `end_reading` by the same thread; whether it has begun."""
        reader = self._reader()
        reader.inside.acquire()
        if not self._gate.locked():
            return True
        reader.inside.release()
        return False

    def end_reading(self) -> None:
        """Let writers in again, after `try_reading`."""
        self._reader().inside.release()

    def _reader(self) -> _Reader:
        """What this thread reads with."""
        try:
            return cast(_Reader, self._mine.reader)
        except AttributeError:
            return self._register()

    def _register(self) -> _Reader:
        reader = _Reader(self._gate)
        with self._registering:
            living = (known for known in self._readers if known() is not None)
            self._readers = (*living, ref(reader))
        self._mine.reader = reader
        return reader


class _Reader:
    """What one thread reads with."""

    def __init__(self, gate: threading.Lock) -> None:
        self.inside, self.queued = threading.RLock(), threading.Lock()
        self.is_inside: Callable[[], bool] = cast(Any, self.inside)._is_owned
        self.entry = _entry(gate, self.inside, self.queued)


def _entry(gate: Any, inside: Any, queued: Any) -> AbstractContextManager[Any]:
    """A context manager that is left by a function in C, which no interrupt comes before."""

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

    return cast(AbstractContextManager[Any], type("_Entry", (), {"__enter__": enter, "__exit__": inside.__exit__})())
