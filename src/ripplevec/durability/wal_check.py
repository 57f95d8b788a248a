"""A look at SQLite's write-ahead log before SQLite opens it.

SQLite reads the log up to the first frame that does not fit its checksum and drops the rest without a word. At the end
that is what a crash leaves: a last transaction that nobody was told of. Before the end it is damage, and batches that
were acknowledged would be gone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.durability._wal_kernels import log_checksum

_HEADER, _FRAME = 32, 24
_MAGIC = {0x377F0682: "<u4", 0x377F0683: ">u4"}


class LogReport(NamedTuple):
    """Transactions that SQLite will take from a log, those behind them that it will drop, and whether one is half."""

    good: int
    dropped: int
    unfinished: bool


def look_at_log(path: Path) -> LogReport:
    """What the log at a path holds; nothing where there is none."""
    try:
        data = np.fromfile(path, np.uint8)
    except FileNotFoundError:
        data = np.empty(0, np.uint8)
    if data.size <= _HEADER:
        return LogReport(0, 0, False)
    head = data[:_HEADER].view(">u4")
    kind, page = _MAGIC.get(int(head[0])), int(head[2])
    sums = np.zeros(2, np.uint32)
    if kind is not None:
        log_checksum(data[:24].view(kind).astype(np.uint32), sums)
    if kind is None or not np.array_equal(sums, head[6:]) or page < 512 or page % 8:
        return LogReport(0, int((_frames(data, 4096)[1][:, 1] > 0).sum()), True)
    frames, heads = _frames(data, page)
    mine = (heads[:, 2:4] == head[4:6]).all(axis=1)
    ends = mine & (heads[:, 1] > 0)
    valid = _valid(frames, heads, mine, kind, sums)
    unfinished = bool(mine[valid:].any() or (valid and not ends[valid - 1]))
    if valid == len(frames) and (data.size - _HEADER) % (_FRAME + page):  # the last one is not even whole
        unfinished = True
    return LogReport(int(ends[:valid].sum()), int(ends[valid:].sum()), unfinished)


def _valid(
    frames: NDArray[np.uint8], heads: NDArray[np.uint32], mine: NDArray[np.bool_], kind: str, sums: NDArray[np.uint32]
) -> int:
    """How many frames fit the checksum that runs through all of them."""
    for number in range(len(frames)):
        if not mine[number]:
            return number
        log_checksum(frames[number, :8].copy().view(kind).astype(np.uint32), sums)
        log_checksum(frames[number, _FRAME:].copy().view(kind).astype(np.uint32), sums)
        if not np.array_equal(sums, heads[number, 4:6]):
            return number
    return len(frames)


def _frames(data: NDArray[np.uint8], page: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The whole frames of a log, and the numbers at the beginning of each."""
    size = _FRAME + page
    frames = data[_HEADER : _HEADER + (data.size - _HEADER) // size * size].reshape(-1, size)
    return frames, frames[:, :_FRAME].copy().view(">u4")
