"""Detection of a journal that lost its end: checks of SQLite's write-ahead log (WAL), and a last-batch marker.

SQLite reads the log up to the first frame whose checksum does not match and silently drops the rest. At the end of the
log this is the normal result of a crash: a last transaction that was never acknowledged. Before the end it is damage,
and acknowledged batches would be lost.

SQLite also cannot distinguish a log that was cut between two transactions, or left out of a copy, from one that was
never longer. A marker file next to the journal can: it holds the number of the last batch. It is written after every
commit but not flushed: after a power cut it may be older than the journal, never newer. A missing or damaged marker
counts as no information.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import uint32
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import kernel

_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24  # of the log
_WORD_TYPE_BY_MAGIC = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # byte order of checksums, by the first word of the log
_NUMBER_BYTES, _CHECKSUM_BYTES = 8, 16  # content of the marker file


class WalReport(NamedTuple):
    """Content of a write-ahead log."""

    valid: int
    """Transactions that SQLite will read."""

    dropped: int
    """Complete transactions after the valid ones, which SQLite will drop."""

    incomplete: bool
    """Whether the log ends with a partial or damaged transaction."""


def scan_wal(path: Path) -> WalReport:
    """Count the transactions in the log at a path; a missing file counts as an empty log."""
    try:
        data = np.fromfile(path, np.uint8)
    except FileNotFoundError:
        data = np.empty(0, np.uint8)
    if data.size <= _HEADER_BYTES:
        return WalReport(0, 0, False)
    header = data[:_HEADER_BYTES].view(">u4")
    word_type, page_size = _WORD_TYPE_BY_MAGIC.get(int(header[0])), int(header[2])
    sums = np.zeros(2, np.uint32)
    if word_type is not None:
        update_checksum(data[:24].view(word_type).astype(np.uint32), sums)
    if word_type is None or not np.array_equal(sums, header[6:]) or page_size < 512 or page_size % 8:
        return WalReport(0, int((_split_frames(data, 4096)[1][:, 1] > 0).sum()), True)
    frames, frame_headers = _split_frames(data, page_size)
    current = (frame_headers[:, 2:4] == header[4:6]).all(axis=1)  # the salts match: not left over from an earlier log
    commits = current & (frame_headers[:, 1] > 0)
    valid = _count_valid_frames(frames, frame_headers, current, word_type, sums)
    incomplete = bool(current[valid:].any() or (valid and not commits[valid - 1]))
    if valid == len(frames) and (data.size - _HEADER_BYTES) % (_FRAME_HEADER_BYTES + page_size):  # a partial last frame
        incomplete = True
    return WalReport(int(commits[:valid].sum()), int(commits[valid:].sum()), incomplete)


@kernel
def update_checksum(words: NDArray[np.uint32], sums: NDArray[np.uint32]) -> None:
    """Continue the two running sums of SQLite's WAL checksum over an even number of words."""
    first, second = sums[0], sums[1]
    for i in range(0, words.size, 2):
        first = uint32(first + words[i] + second)
        second = uint32(second + words[i + 1] + first)
    sums[0], sums[1] = first, second


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


def _count_valid_frames(
    frames: NDArray[np.uint8],
    frame_headers: NDArray[np.uint32],
    current: NDArray[np.bool_],
    word_type: str,
    sums: NDArray[np.uint32],
) -> int:
    """Count the leading frames that match the checksum, which runs through all of them."""
    for number in range(len(frames)):
        if not current[number]:
            return number
        update_checksum(frames[number, :8].copy().view(word_type).astype(np.uint32), sums)
        update_checksum(frames[number, _FRAME_HEADER_BYTES:].copy().view(word_type).astype(np.uint32), sums)
        if not np.array_equal(sums, frame_headers[number, 4:6]):
            return number
    return len(frames)


def _split_frames(data: NDArray[np.uint8], page_size: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Return the complete frames of a log and the header words of each."""
    size = _FRAME_HEADER_BYTES + page_size
    frames = data[_HEADER_BYTES : _HEADER_BYTES + (data.size - _HEADER_BYTES) // size * size].reshape(-1, size)
    return frames, frames[:, :_FRAME_HEADER_BYTES].copy().view(">u4")


def _checksum(number: bytes) -> bytes:
    return hashlib.blake2b(number, digest_size=_CHECKSUM_BYTES).digest()
