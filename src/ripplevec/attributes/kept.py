"""The attributes of vertices that are kept, to project them again after the projection has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.growable_array import GrowableArray, next_capacity

Entries = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Attributes and values of one row."""


class KeptAttributes:
    """Sparse rows of any length, one per row of the graph.

    A row occupies a block of 2**k entries. A block stays with its row, also when the vertex is removed: the next vertex
    in this row uses it again, or a larger one. So the unused space is never more than three quarters.
    """

    def __init__(self) -> None:
        self._columns, self._values = GrowableArray(np.int32), GrowableArray(np.float32)
        self._blocks = GrowableArray(np.int64, (3,))  # per row: first entry, entries used, size of the block
        self._top = 0

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        return 8 * self._top + self._blocks.array.nbytes

    def get(self, row: int) -> Entries:
        """Return the attributes and values of a row; empty if it has none."""
        if row >= len(self._blocks.array):
            return self._columns.array[:0], self._values.array[:0]
        begin, used, _ = self._blocks.array[row].tolist()
        part = slice(begin, begin + used)
        return self._columns.array[part], self._values.array[part]

    def set(self, row: int, columns: NDArray[np.int32], values: NDArray[np.float32]) -> None:
        """Replace the attributes of a row."""
        if row >= len(self._blocks.array):
            self._blocks.grow(next_capacity(len(self._blocks.array), row + 1, self._blocks.row_bytes))
        block = self._blocks.array[row]
        if columns.size > block[2]:
            size = 1 << (int(columns.size) - 1).bit_length()
            block[:] = self._top, 0, size
            self._top += size
            for array in (self._columns, self._values):
                if self._top > len(array.array):
                    array.grow(next_capacity(len(array.array), self._top, array.row_bytes))
        part = slice(int(block[0]), int(block[0]) + columns.size)
        self._columns.array[part], self._values.array[part] = columns, values
        block[1] = columns.size

    def clear(self, row: int) -> None:
        """Remove the attributes of a row."""
        if row < len(self._blocks.array):
            self._blocks.array[row, 1] = 0

    def gather(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the attributes of rows as the arrays of a sparse matrix: begin, columns, values."""
        blocks = np.zeros((rows.size, 3), np.int64)
        known = rows < len(self._blocks.array)
        blocks[known] = self._blocks.array[rows[known]]
        begin = np.concatenate([[0], np.cumsum(blocks[:, 1])]).astype(np.int64)
        entries = np.arange(begin[-1]) + np.repeat(blocks[:, 0] - begin[:-1], blocks[:, 1])
        return {"begin": begin, "columns": self._columns.array[entries], "values": self._values.array[entries]}

    def set_all(self, rows: NDArray[np.int64], begin: NDArray[np.int64], columns: Any, values: Any) -> None:
        """Set the attributes of rows that have none, from the arrays of a sparse matrix."""
        if not rows.size:
            return
        used = np.diff(begin)
        sizes = np.where(used > 0, 1 << np.ceil(np.log2(np.maximum(used, 1))).astype(np.int64), 0)
        first = self._top + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._blocks.grow(int(rows.max()) + 1)[rows] = np.column_stack([first, used, sizes])
        self._top += int(sizes.sum())
        entries = np.arange(columns.size) + np.repeat(first - begin[:-1], used)
        for array, given in ((self._columns, columns), (self._values, values)):
            array.grow(self._top)[entries] = given
