"""Memory of gradual corrections, kept from one to the next: releasing and mapping gigabytes takes long."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray
from ripplevec.rules._correction_kernels import queue_moved
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.growable_array import GrowableArray
from ripplevec.views._kernels import FLOATS_PER_LINE, StridedColumns

MIN_SPARE_COLUMNS = 64  # fewer columns at a time would take longer: most of the time is spent waiting for memory
LARGE_BLOCK_BYTES = 1 << 28
"""Size of a block from which its columns are filtered in parts. Each part takes passes of its own over the graph: while
most of a block fits into the caches of a processor, that costs more time than it is worth in memory."""


def count_spare_columns(dim: int, parts: int) -> int:
    """Return the columns of the spare block, if the columns of rows are filtered in so many parts: full cache lines."""
    width = -(-dim // (parts * FLOATS_PER_LINE)) * FLOATS_PER_LINE
    return min(dim, max(width, MIN_SPARE_COLUMNS))


def select_columns(block: NDArray[np.float32], first: int, width: int) -> StridedColumns:
    """Describe adjacent columns of a contiguous block for the kernels: faster than `as_strided_columns`."""
    return StridedColumns(block.reshape(-1)[first:], block.shape[1], width)


def count_column_parts(rows: int, dim: int, most: int) -> int:
    """Return the number of parts in which the columns of so many rows are filtered, at most `most`."""
    return most if 4 * rows * dim >= LARGE_BLOCK_BYTES else 1


class Workspace:
    """A block with a row per vertex, a spare block with some of the columns, and a queue of rows.

    `rows` will replace those of the store. They are the block itself if the store has float32 rows.

    Parameters
    ----------
    store
        The store whose rows are corrected.
    parts
        Number of parts in which columns are filtered; the spare block has the columns of one part.
    """

    def __init__(self, store: VectorStore, parts: int) -> None:
        self.parts, dim = parts, store.vectors.shape[1]
        self.current = store.new_rows(np.float32)
        self.spare_columns = count_spare_columns(dim, parts)
        self.spare = store.new_rows(np.float32, self.spare_columns)
        self._shares_rows = store.vectors.dtype == np.float32
        self.rows = self.current if self._shares_rows else store.new_rows()
        self.marked = GrowableArray(np.uint8)  # rows that batches have moved; see `GradualCorrection.record_batch`
        self._queue, self._head, self._tail = GrowableArray(np.int64), 0, 0

    def grow(self, rows: int) -> None:
        """Grow to this many rows."""
        if rows > len(self.marked.array):
            for array in (self.current, self.spare, self.rows, self.marked):
                array.grow(rows)

    def allocate(self) -> None:
        """Begin to allocate the memory of all blocks on another thread: the stream would wait for each page."""
        for array in dict.fromkeys((self.current, self.spare, self.rows)):
            array.allocate()

    def exchange_rows(self, store: VectorStore) -> None:
        """Give the new rows to the store; `rows` are then the old ones."""
        self.rows = store.exchange_rows(self.rows)
        if self._shares_rows:
            self.current = self.rows

    def clear_rows(self, rows: RowArray) -> None:
        """Zero rows of all blocks."""
        for array in (self.current, self.spare, self.rows, self.marked):
            array.array[rows] = 0

    # ------------------------------------------------------------------ queue of moved rows

    @property
    def queued(self) -> RowArray:
        """The rows in the queue, first in first out; each is marked."""
        return self._queue.array[self._head : self._tail]

    def record_moved(self, rows: RowArray, arrival: NDArray[np.int64], first_new: int, *, with_known: bool) -> None:
        """Zero rows of vertices that arrived from `first_new` on, and queue them; also the others, if `with_known`."""
        queue = self._queue.grow(self._tail + rows.size)
        blocks = self.current.array, self.spare.array, VectorStore.as_kernel_array(self.rows.array)
        self._tail = queue_moved(rows, arrival, first_new, with_known, *blocks, self.marked.array, queue, self._tail)

    def restore_queue(self, rows: RowArray, marked: NDArray[np.uint8]) -> None:
        """Restore a saved queue; a row whose vertex was removed and replaced can be in it twice."""
        self._queue.grow(rows.size)[: rows.size] = rows
        self._head, self._tail = 0, rows.size
        self.marked.array[: marked.size] = marked

    def take(self, count: int) -> RowArray:
        """Remove and return up to this many rows from the queue."""
        rows = self.queued[:count].copy()
        self._head += rows.size
        self.marked.array[rows] = 0
        return rows

    def clear_queue(self) -> None:
        """Remove all rows from the queue."""
        self.take(self._tail)
        self._head = self._tail = 0

    def clear_marks(self) -> None:
        """Unmark all rows, and empty the queue."""
        self.marked.array[:] = 0
        self._head = self._tail = 0
