"""One writer, many readers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """Readers share, a writer is alone; a waiting writer goes before readers that come after it."""

    def __init__(self) -> None:
        self._state = threading.Condition(threading.Lock())
        self._readers = 0
        self._writer: int | None = None
        self._waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold off writers meanwhile. The thread that writes may read as well."""
        if self._writer == threading.get_ident():
            yield
            return
        with self._state:
            while self._writer is not None or self._waiting:
                self._state.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._state:
                self._readers -= 1
                if not self._readers:
                    self._state.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be alone meanwhile."""
        with self._state:
            self._waiting += 1
            try:
                while self._writer is not None or self._readers:
                    self._state.wait()
            finally:  # an interrupted wait must not keep readers out for ever
                self._waiting -= 1
                self._state.notify_all()
            self._writer = threading.get_ident()
        try:
            yield
        finally:
            with self._state:
                self._writer = None
                self._state.notify_all()
