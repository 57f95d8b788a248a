"""One writer, many readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType


class ReadWriteLock:
    """Readers share, a writer is alone, and nobody starves.

    A writer that waits goes before readers that come after it; the readers that came while it wrote go before the next
    writer. So a reader waits for one write at the most.
    """

    def __init__(self) -> None:
        self._one_writer = threading.Lock()
        self._state = threading.Lock()
        self._changed = threading.Condition(self._state)
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0
        self._readers_waiting = 0
        self._passes = 0  # readers that may go before the next writer
        self._asking: list[Callable[[], None]] = []  # readers that are told when it is their turn
        self._reader, self._writer = _Reader(self), _Writer(self)

    def reading(self) -> AbstractContextManager[None]:
        """Hold off writers meanwhile."""
        return self._reader

    def writing(self) -> AbstractContextManager[None]:
        """Be alone meanwhile."""
        return self._writer

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within `writing`: let readers in, but no other writer, around long work that changes nothing yet."""
        if not self._writing:
            yield
            return
        self.end_writing()
        try:
            yield
        finally:
            self.begin_writing()

    def still(self) -> AbstractContextManager[bool]:
        """Have nobody write, nor be aside in the middle of it, meanwhile: for what is looked at as a whole."""
        return self._one_writer

    def begin_reading(self) -> None:
        """Wait until nobody writes, and until it is a reader's turn."""
        with self._state:
            if self._writing or self._writers_waiting:
                self._wait_to_read()
            self._readers += 1

    def try_reading(self) -> bool:
        """Begin to read if nobody writes or waits to; else leave it, and say so."""
        with self._state:
            free = not (self._writing or self._writers_waiting)
            self._readers += free
            return free

    def ask_to_read(self, granted: Callable[[], None]) -> None:
        """Have `granted` called, by whatever thread, once it is a reader's turn; the reading has begun for it then."""
        with self._state:
            if self._writing or self._writers_waiting:
                self._asking.append(granted)
                return
            self._readers += 1
        granted()

    def _wait_to_read(self) -> None:
        self._readers_waiting += 1
        try:
            while self._writing or (self._writers_waiting and not self._passes):
                self._changed.wait()
        finally:  # also when interrupted: a pass that nobody takes would keep writers out for ever
            self._readers_waiting -= 1
            self._passes = min(max(self._passes - 1, 0), self._readers_waiting)
            self._wake()

    def end_reading(self) -> None:
        """Let a writer in behind the last reader."""
        with self._state:
            self._readers -= 1
            if not self._readers:
                self._wake()

    def begin_writing(self) -> None:
        """Wait until nobody reads or writes, and until the readers whose turn it is have had it."""
        try:
            with self._state:
                self._wait_to_write()
        except BaseException:  # interrupted: readers may have been waiting for this writer
            with self._state:
                asking = self._admit()
            _tell(asking)
            raise

    def _wait_to_write(self) -> None:
        self._writers_waiting += 1
        try:
            while self._writing or self._readers or self._passes:
                self._changed.wait()
            self._writing = True
        finally:
            self._writers_waiting -= 1

    def end_writing(self) -> None:
        """Let everybody in, those who waited to read first."""
        with self._state:
            self._writing = False
            self._passes = self._readers_waiting
            asking = self._admit()
        _tell(asking)

    def _admit(self) -> list[Callable[[], None]]:
        """Wake those who wait and, unless somebody writes, begin to read for those who asked: they are to be told."""
        asking: list[Callable[[], None]] = []
        if not self._writing:
            asking, self._asking = self._asking, asking
        self._readers += len(asking)
        self._wake()
        return asking

    def _wake(self) -> None:
        if self._readers_waiting or self._writers_waiting:
            self._changed.notify_all()


def _tell(asking: list[Callable[[], None]]) -> None:
    for granted in asking:
        granted()


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
        self.lock._one_writer.acquire()
        try:
            self.lock.begin_writing()
        except BaseException:
            self.lock._one_writer.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.lock.end_writing()
        finally:
            self.lock._one_writer.release()
