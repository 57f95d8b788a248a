"""A lock file: one session writes to a directory at a time."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from ripplet.errors import StateError


class DirectoryLock:
    """Held from when it is made until it is let go, or until the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        path = directory / "lock"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StateError(
                f"{directory}: cannot be written to ({error.strerror}); a session needs a directory of its own, "
                "and `ripplet state inspect` looks into one without writing"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StateError(f"{directory}: in use by {holder(directory)}; close that one first") from None
        os.ftruncate(self._file, 0)
        with suppress(OSError):  # no room for the name of whoever holds it; it is held all the same
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others have the directory."""
        os.ftruncate(self._file, 0)
        os.close(self._file)

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(directory: Path) -> str | None:
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
