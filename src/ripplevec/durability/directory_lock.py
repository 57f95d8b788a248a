"""Exclusive lock on a state directory, so that only one session writes to it."""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from ripplevec.errors import StateError
from ripplevec.util.checked_directory import create_directory

try:
    import fcntl
except ImportError:  # Windows; without sessions, the library does not need it
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"
"""Name of the lock file in a state directory; it contains the process id of its holder."""

_open_locks: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


class DirectoryLock:
    """Lock on a directory, held from construction until `release` or the end of the process, even by SIGKILL."""

    def __init__(self, directory: Path) -> None:
        if fcntl is None:
            raise StateError(
                f"{directory}: a session cannot lock its directory on this system: expected Linux or macOS, got "
                f"{sys.platform}. Use `Embedder` with `save` and `ripplevec.load`, which need no lock."
            )
        try:
            create_directory(directory)
            self._file = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise StateError(
                f"{directory}: expected a writable directory, got an error ({error.strerror}). A session needs a "
                "directory of its own; to look into one without writing, use `ripplevec state inspect`."
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StateError(f"{directory}: in use by {lock_holder(directory)}. Close that session first.") from None
        _open_locks.add(self)
        with suppress(OSError):  # on a full disk the process id is missing, but the lock holds
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Unlock the directory; later calls have no effect."""
        if self._file < 0:
            return
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)  # explicit, because a forked child may keep the file open
        self.close_file()

    def close_file(self) -> None:
        """Close the lock file without unlocking: in a forked child, the parent keeps the lock."""
        file, self._file = self._file, -1
        _open_locks.discard(self)
        if file >= 0:
            os.close(file)

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_holder(directory: Path) -> str | None:
    """Describe the process that holds the lock on a directory; None if it is not locked."""
    if fcntl is None:  # no session can hold it
        return None
    try:
        with open(directory / LOCK_FILE, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return f"process {file.read(32).decode(errors='replace').strip() or 'unknown'}"
    except OSError:
        pass
    return None


def _close_files_after_fork() -> None:
    """Close the inherited lock files in a child; otherwise a directory would stay locked while the child lives."""
    for lock in list(_open_locks):
        lock.close_file()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_close_files_after_fork)
