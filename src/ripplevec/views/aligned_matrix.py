"""Cache-aligned matrices with one row per vertex, and their conversion to `StridedColumns`, as kernels read them."""

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

COPY_BLOCK_ROWS = 8_192  # rows that one task copies

Matrix = NDArray[Any]


def aligned_zeros(rows: int, columns: int, dtype: Any, directory: str | PathLike[str] | None = None) -> Matrix:
    """Return a zero matrix aligned to a cache line, so that rows of 16·k float32 occupy as few lines as possible.

    With `directory`, the matrix is memory-mapped from an unnamed file there.
    """
    if directory is not None:
        return GrowableArray(dtype, (columns,), directory=directory).grow(rows)
    dtype = np.dtype(dtype)
    size = rows * columns * dtype.itemsize
    memory = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
    offset = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[offset : offset + size].view(dtype).reshape(rows, columns)


def copy_aligned(rows: Matrix, threads: int, directory: str | PathLike[str] | None = None) -> Matrix:
    """Return an aligned copy in at least float32, which a view may overwrite; in a file if `directory` is given."""
    block = aligned_zeros(len(rows), rows.shape[1], np.promote_types(rows.dtype, np.float32), directory)

    def copy(first: int, last: int) -> None:
        block[first:last] = rows[first:last]

    for_each_block(copy, len(rows), size=COPY_BLOCK_ROWS, threads=threads)
    return block


def as_strided_columns(matrix: Matrix) -> StridedColumns:
    """Describe a matrix, or adjacent columns `matrix[:, a:b]`, for the kernels, without copying."""
    (rows, width), (stride, step) = matrix.shape, matrix.strides
    if step != matrix.itemsize and width > 1:
        raise ValueError(f"entries of a row: expected contiguous, got a step of {step} bytes. Use a row-major matrix.")
    stride = stride // matrix.itemsize
    length = (rows - 1) * stride + width if rows else 0
    return StridedColumns(as_strided(matrix, (length,), (matrix.itemsize,)), stride, width)
