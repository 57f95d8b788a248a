"""One writer, many readers."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from types import TracebackType


class ReadWriteLock:
    """Readers share, a writer is alone; a waiting writer goes before readers that come after it."""

    def __init__(self) -> None:
        self._state = threading.Lock()
        self._changed = threading.Condition(self._state)
        self._readers = 0
        self._writing = False
        self._waiting = 0  # writers
        self._asleep = 0
        self._reader, self._writer = _Reader(self), _Writer(self)

    def reading(self) -> AbstractContextManager[None]:
        """Hold off writers meanwhile."""
        return self._reader

    def writing(self) -> AbstractContextManager[None]:
        """Be alone meanwhile."""
        return self._writer

    def begin_reading(self) -> None:
        """Wait until nobody writes or waits to."""
        with self._state:
            while self._writing or self._waiting:
                self._sleep()
            self._readers += 1

    def end_reading(self) -> None:
        """Let a writer in behind the last reader."""
        with self._state:
            self._readers -= 1
            if not self._readers and self._asleep:
                self._changed.notify_all()

    def begin_writing(self) -> None:
        """Wait until nobody reads or writes."""
        with self._state:
            self._waiting += 1
            try:
                while self._writing or self._readers:
                    self._changed.wait()
            except BaseException:  # an interrupted wait must not keep readers out for ever
                self._changed.notify_all()
                raise
            finally:
                self._waiting -= 1
            self._writing = True

    def end_writing(self) -> None:
        """Let everybody in."""
        with self._state:
            self._writing = False
            if self._asleep:
                self._changed.notify_all()

    def _sleep(self) -> None:
        self._asleep += 1
        self._changed.wait()
        self._asleep -= 1


class _Held(AbstractContextManager[None]):
    def __init__(self, lock: ReadWriteLock) -> None:
        self.lock = lock


class _Reader(_Held):
    def __enter__(self) -> None:
        self.lock.begin_reading()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.end_reading()


class _Writer(_Held):
    def __enter__(self) -> None:
        self.lock.begin_writing()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.end_writing()
