"""Where the arrays of a growing state lie: in memory that grows without anything being copied, or in a file.

A large array gets a stretch of address space far longer than it is. Pages that nobody has touched cost nothing, so to
grow is to look at more of it: no pause while gigabytes are moved, and no moment at which both copies are there.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LARGE_BYTES = 1 << 20  # bytes: below this an array is an ordinary one, which is copied when it grows
DOUBLING_LIMIT = 1 << 14  # rows: up to here they are doubled
RESERVED_BYTES = 1 << 36  # bytes of address space per large array; one that outgrows them is copied, once, to twice as many
_UNCOUNTED = getattr(mmap, "MAP_NORESERVE", 0x4000)  # of Linux: only pages that are used count as memory


class GrowableArray:
    """An array that grows along its first axis; what is new holds `fill`.

    >>> rows = GrowableArray(np.float32, (2,))
    >>> rows.grow(3).shape
    (3, 2)
    """

    def __init__(
        self,
        dtype: DTypeLike,
        columns: tuple[int, ...] = (),
        *,
        fill: Any = None,
        directory: str | PathLike[str] | None = None,
    ) -> None:
        self.array: NDArray[Any] = np.zeros((0, *columns), dtype)
        self._fill = fill
        self._file: Any = None
        if directory is not None:
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # has no name: it is never left over
            weakref.finalize(self, self._file.close)
        self._space = self.array  # all that `array` may still grow into

    def grow(self, rows: int) -> NDArray[Any]:
        """Have at least so many rows; the array, which shares its memory with the one before where it can."""
        if rows > len(self.array):
            before = len(self.array)
            if rows > len(self._space):
                self._move(rows)
            self.array = self._space[:rows]
            if self._fill is not None:
                self.array[before:] = self._fill
        return self.array

    def _move(self, rows: int) -> None:
        shape, dtype = (rows, *self.array.shape[1:]), self.array.dtype
        if self._file is not None:
            self._space = _mapped(self._file, shape, dtype)
            return
        space = _reserved(shape, dtype) if _size(shape, dtype) >= LARGE_BYTES else np.zeros(shape, dtype)
        space[: len(self.array)] = self.array
        self._space = space


def next_capacity(rows: int, needed: int) -> int:
    """How many rows to grow to: twice as many where there are few, else a sixteenth more, to have little to spare."""
    return max(needed, rows + max(rows // 16, min(rows, DOUBLING_LIMIT)) + 16)


def widen_half(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows in a precision to compute with: those of half precision as single, others as they are."""
    return rows.astype(np.float32) if rows.dtype == np.float16 else rows


def _size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize


def _reserved(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros in address space of their own, as many rows as fit; just the rows asked for where the system refuses."""
    row = max(_size(shape[1:], dtype), 1)
    size = max(RESERVED_BYTES, 2 * shape[0] * row)
    try:
        space = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNCOUNTED)
        space.madvise(mmap.MADV_HUGEPAGE)  # rows are read at random: fewer, larger pages are found sooner
    except (AttributeError, OSError, ValueError):  # not Linux, or a limit on address space
        return np.zeros(shape, dtype)
    return np.frombuffer(space, dtype, size // row * (row // dtype.itemsize)).reshape(-1, *shape[1:])


def _mapped(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The first rows of a file, which is as long as it has to be: a full disk is found out here, as an error.

    Where pages of a file have no place on the disk, to write to them ends the process.
    """
    size = max(_size(shape, dtype), 1)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
    return np.frombuffer(mmap.mmap(file.fileno(), 0), dtype, int(np.prod(shape))).reshape(shape)
