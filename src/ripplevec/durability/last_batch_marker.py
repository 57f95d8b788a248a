"""Marker file next to the journal with the number of its last batch; it reveals a journal that lost its end.

SQLite cannot distinguish a write-ahead log that was cut between two transactions, or left out of a copy, from one that
was never longer. The marker can. It is written after every commit but not flushed: after a power cut it may be older
than the journal, never newer. A missing or damaged marker counts as no information.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_NUMBER_BYTES, _CHECKSUM_BYTES = 8, 16


class LastBatchMarker:
    """File that holds the number of the last acknowledged batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def read(self) -> int:
        """Return the number in the file; 0 if the file is missing, damaged or a symbolic link."""
        try:
            if self.path.is_symlink():
                return 0
            data = self.path.read_bytes()
        except OSError:
            return 0
        number = data[:_NUMBER_BYTES]
        return int.from_bytes(number, "little") if data == number + _checksum(number) else 0

    def write(self, last: int, *, durably: bool = False) -> None:
        """Write a batch number; errors are ignored unless the write has to be durable."""
        number = last.to_bytes(_NUMBER_BYTES, "little")
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
        """Close the file; later calls have no effect."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None


def _checksum(number: bytes) -> bytes:
    return hashlib.blake2b(number, digest_size=_CHECKSUM_BYTES).digest()
