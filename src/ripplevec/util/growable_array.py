"""Growable arrays: memory that grows in place, without copying, or memory mapped from a file.

A large array reserves much more address space than it needs. Pages that were never touched cost nothing, so growing
only means using more of the reserved space: there is no pause to copy gigabytes, and never two copies at once. The
memory that the next growth will use is allocated meanwhile, on another thread.
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

from ripplevec.util.prefault import prefault

LARGE_BYTES = 1 << 20  # a smaller array is an ordinary one, which is copied when it grows
DOUBLING_LIMIT = 1 << 14  # up to this many rows, the capacity is doubled
GROWTH_BYTES = 1 << 20  # the most that is added to the capacity at once
PREFAULT_BYTES = 1 << 24  # the most that is allocated ahead of use
RESERVED_BYTES = 1 << 36  # address space per large array; one that outgrows it is copied, once, to twice its size
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux: only touched pages count as memory


class GrowableArray:
    """An array that grows along its first axis; new rows are set to `fill`, or to zero by default.

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
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # unnamed, so never left behind
            weakref.finalize(self, self._file.close)
        self._space = self.array  # the memory that `array` can grow into

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return max(1, _byte_size(self.array.shape[1:], self.array.dtype))

    def grow(self, rows: int) -> NDArray[Any]:
        """Grow to at least this many rows; return the array, in the same memory if possible."""
        if rows > len(self.array):
            before = len(self.array)
            if rows > len(self._space):
                self._reallocate(rows)
            self.array = self._space[:rows]
            if self._fill is not None:
                self.array[before:] = self._fill
            self._prefault_next(rows - before)
        return self.array

    def allocate(self) -> None:
        """Begin to allocate the memory of all rows on another thread, if it is large and not in a file."""
        if self._file is None and self.array.nbytes >= LARGE_BYTES:
            prefault(self.array)

    def _prefault_next(self, rows: int) -> None:
        """Allocate the memory for as many rows as the array has just grown by, within limits."""
        row_bytes = _byte_size(self.array.shape[1:], self.array.dtype)
        if self._file is None and rows * row_bytes >= LARGE_BYTES:
            used = len(self.array)
            prefault(self._space[used : used + min(rows, used // 16, PREFAULT_BYTES // row_bytes)])

    def _reallocate(self, rows: int) -> None:
        """Get memory for this many rows and copy the content into it, or extend the mapped file."""
        rows = max(rows, len(self._space) + len(self._space) // 16)  # if it has to be copied or mapped again each time
        shape, dtype = (rows, *self.array.shape[1:]), self.array.dtype
        if self._file is not None:
            self._space = _map_file(self._file, shape, dtype)
            return
        space = _reserve(shape, dtype) if _byte_size(shape, dtype) >= LARGE_BYTES else np.zeros(shape, dtype)
        space[: len(self.array)] = self.array
        self._space = space


def next_capacity(rows: int, needed: int, row_bytes: int) -> int:
    """Return the number of rows to grow to, at least `needed`: twice as many, or up to a sixteenth more of many rows.

    A large array grows without copying, so little is added at a time: no call has to initialize much memory.
    """
    added = min(rows, max(rows // 16, DOUBLING_LIMIT), GROWTH_BYTES // row_bytes)
    return max(needed, rows + added + 16)


def grow_array(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    """Return a longer copy along the first axis, with `fill` in the new part; untouched zeros use no memory yet."""
    new = np.zeros((size, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    if fill:
        new[len(array) :] = fill
    return new


def _byte_size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize


def _reserve(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros in newly reserved address space, as many rows as fit; only `shape` if that is not possible."""
    row_bytes = max(_byte_size(shape[1:], dtype), 1)
    size = max(RESERVED_BYTES, 2 * shape[0] * row_bytes)
    try:
        space = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        space.madvise(mmap.MADV_HUGEPAGE)  # rows are read at random: larger pages mean fewer TLB misses
    except (AttributeError, OSError, ValueError):  # not Linux, or address space is limited
        return np.zeros(shape, dtype)
    return np.frombuffer(space, dtype, size // row_bytes * (row_bytes // dtype.itemsize)).reshape(-1, *shape[1:])


def _map_file(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Map the first rows of a file after allocating its disk space, so that a full disk raises an error here.

    Writing to a mapped page that has no disk space would kill the process.
    """
    size = max(_byte_size(shape, dtype), 1)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
    return np.frombuffer(mmap.mmap(file.fileno(), 0), dtype, int(np.prod(shape))).reshape(shape)
