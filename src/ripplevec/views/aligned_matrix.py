"""Matrices with a row per vertex: whole cache lines to a row, and some of their columns as kernels see them."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ripplevec.util.growable_array import GrowableArray
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES
from ripplevec.util.parallel import for_each_block
from ripplevec.views._kernels import StridedColumns

COPY_BLOCK_ROWS = 8_192  # rows copied together

Matrix = NDArray[Any]


def aligned_zeros(rows: int, columns: int, kind: Any, directory: str | PathLike[str] | None = None) -> Matrix:
    """A matrix that begins with a cache line: a row of a multiple of 16 float32 is then read in as few as can be.

    It is in a file of a directory, if there is one.
    """
    if directory is not None:
        return GrowableArray(kind, (columns,), directory=directory).grow(rows)
    kind = np.dtype(kind)
    size = rows * columns * kind.itemsize
    memory = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[first : first + size].view(kind).reshape(rows, columns)


def copy_aligned(rows: Matrix, threads: int, directory: str | PathLike[str] | None = None) -> Matrix:
    """A matrix of its own for a view to use up, in float32 at least; in a file of a directory, if there is one."""
    block = aligned_zeros(len(rows), rows.shape[1], np.promote_types(rows.dtype, np.float32), directory)

    def copy(first: int, last: int) -> None:
        block[first:last] = rows[first:last]

    for_each_block(copy, len(rows), size=COPY_BLOCK_ROWS, threads=threads)
    return block


def as_strided_columns(matrix: Matrix) -> StridedColumns:
    """A matrix, or neighboring columns `whole[:, a:b]` of one, without copying it."""
    (rows, width), (stride, step) = matrix.shape, matrix.strides
    if step != matrix.itemsize and width > 1:
        raise ValueError("the entries of a row must lie side by side")
    stride = stride // matrix.itemsize
    length = (rows - 1) * stride + width if rows else 0
    return StridedColumns(as_strided(matrix, (length,), (matrix.itemsize,)), stride, width)
