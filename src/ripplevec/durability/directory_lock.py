"""A lock file: one session writes to a directory at a time."""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from ripplevec.errors import StateError
from ripplevec.util.checked_directory import make_directory

_held: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


class DirectoryLock:
    """Held from when it is made until it is let go, or until the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        try:
            make_directory(directory)
            self._file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise StateError(
                f"{directory}: cannot be written to ({error.strerror}); a session needs a directory of its own, "
                "and `ripplevec state inspect` looks into one without writing"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StateError(f"{directory}: in use by {lock_holder(directory)}; close that one first") from None
        _held.add(self)
        with suppress(OSError):  # no room for the name of whoever holds it; it is held all the same
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others have the directory."""
        if self._file < 0:
            return
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)  # also for a child that has the file open
        self.abandon()

    def abandon(self) -> None:
        """Close the file; in a child, the parent holds the lock on."""
        file, self._file = self._file, -1
        _held.discard(self)
        if file >= 0:
            os.close(file)

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _abandon_all() -> None:
    """In a child: hold no directory. Else it would stay locked for as long as the child lives."""
    for lock in list(_held):
        lock.abandon()


os.register_at_fork(after_in_child=_abandon_all)


def lock_holder(directory: Path) -> str | None:
    """Who holds the lock of a directory, in words; None where nobody does."""
    try:
        with open(directory / "lock", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return f"process {file.read(32).decode(errors='replace').strip() or 'unknown'}"
    except OSError:
        pass
    return None
