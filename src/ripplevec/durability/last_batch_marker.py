"""A small file beside the journal that names its last batch, so that a journal that lost its end is noticed.

SQLite cannot tell a log that was cut between two transactions, or left out of a copy, from one that was never longer.
The marker can. It is written after every commit and not flushed: after a power cut it may be older than the journal,
never newer. Where it is missing or damaged it says nothing.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_NUMBER, _CHECKSUM = 8, 16


class Marker:
    """The number of the last batch that was acknowledged, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def read(self) -> int:
        """The number in the file; 0 where there is none, or it cannot be relied on."""
        try:
            if self.path.is_symlink():
                return 0
            data = self.path.read_bytes()
        except OSError:
            return 0
        number = data[:_NUMBER]
        return int.from_bytes(number, "little") if data == number + _checksum(number) else 0

    def write(self, last: int, *, durably: bool = False) -> None:
        """Put a number into the file; a failure is passed over, unless it has to be durable."""
        number = last.to_bytes(_NUMBER, "little")
        try:
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            os.pwrite(self._file, number + _checksum(number), 0)
            if durably:
                os.fsync(self._file)
        except OSError:
            if durably:
                raise

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None


def _checksum(number: bytes) -> bytes:
    return hashlib.blake2b(number, digest_size=_CHECKSUM).digest()
