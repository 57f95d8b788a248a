"""Table of vertex ids: maps ids to rows and rows to ids, without a Python object per id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from ripplevec.batch import Id, IdColumn
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.graph import _id_kernels as kernels
from ripplevec.graph._id_kernels import (
    ARENA_GARBAGE,
    ARENA_USED,
    FREE,
    FREE_HEAD,
    INTEGER,
    LIVE_COUNT,
    MOVED_SLOTS,
    ROW_COUNT,
    Bytes,
    EncodedIds,
    Ints,
    Table,
)
from ripplevec.graph.bulk_ids import UnknownIds, enter_ids
from ripplevec.util.growable_array import GrowableArray, next_capacity
from ripplevec.util.prefault import prefault

MIN_BULK_PAIRS = 2_048  # a smaller batch is entered faster id by id, also on one thread
ROW_STEP = 65_536  # rows of a large table are allocated in multiples of this number
_BIG_INTEGER_PREFIX = 0xFF  # this byte never occurs in UTF-8, so an integer encoded after it cannot be taken for text
# Saved arrays and their types.
_STATE = {"key": np.dtype(np.int64), "end": np.dtype(np.int64), "text": np.dtype(np.uint8), "free": np.dtype(np.int64)}


class IdTable:
    """Rows of all vertices by id. The rows of removed vertices are reused, the most recently freed row first.

    >>> ids = IdTable()
    >>> ids.intern_one("alice"), ids.intern_one(1), ids.intern_one("1")
    ((0, True), (1, True), (2, True))
    >>> ids.find_row(1), ids.find_row("bob")
    (1, -1)
    """

    def __init__(self, rows: int = 1) -> None:
        meta = np.zeros(6, np.int64)
        meta[FREE_HEAD] = -1
        self._spans, self._arena = GrowableArray(np.int64, (2,)), GrowableArray(np.uint8)
        self._next_slots: Ints | None = None  # allocated before they are needed
        slots = _allocate_slots(rows)
        self._table = Table(slots, self._spans.array, self._arena.grow(64), meta, slots[:0])
        self._grow_rows(rows)

    def __len__(self) -> int:
        return int(self._table.meta[LIVE_COUNT])

    def __contains__(self, vertex: Id) -> bool:
        return self.find_row(vertex) >= 0

    @property
    def row_count(self) -> int:
        """Number of rows ever used: 1 + the highest row."""
        return int(self._table.meta[ROW_COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(part.nbytes for part in (*self._table, self._next_slots) if part is not None)

    @property
    def table(self) -> Table:
        """The table as kernels see it; it is replaced, not modified, when it grows."""
        old_slots = len(self._table.old_slots)
        if old_slots and self._table.meta[MOVED_SLOTS] == old_slots:
            self._release_old_slots()
        return self._table

    def find_rows(self, column: IdColumn) -> NDArray[np.int64]:
        """Return the rows of ids, -1 for each unknown id."""
        rows = np.empty(len(column), np.int64)
        kernels.find_ids(self._table, encode_ids(column), 0, len(rows), rows)
        return rows

    def find_row(self, vertex: Id) -> int:
        """Return the row of an id, -1 if it is unknown."""
        key, end, text = _encode_id(vertex)
        return int(kernels.find_id(self._table, key, end, _as_readonly(text, np.uint8)))

    def intern(
        self, src: IdColumn, dst: IdColumn, threads: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of both endpoints of edges, adding unknown ids, and the rows of the ids that were added.

        Ids are added by first occurrence in the order src[0], dst[0], src[1], … The result does not depend on the
        number of threads.
        """
        rows, columns = np.empty((2, len(src)), np.int64), (encode_ids(src), encode_ids(dst))
        if len(src) >= MIN_BULK_PAIRS:
            return rows[0], rows[1], self._intern_in_bulk(*columns, rows, threads)
        (src_rows, dst_rows), added = rows, np.empty(2 * len(src), np.int64)
        arguments = *columns, src_rows, dst_rows, added
        pairs, new = kernels.intern_ids(self.table, *arguments, (0, 0))
        while pairs < len(src):
            self._make_room()
            pairs, new = kernels.intern_ids(self._table, *arguments, (pairs, new))
        return src_rows, dst_rows, added[:new].copy()

    def _intern_in_bulk(self, src: EncodedIds, dst: EncodedIds, rows: Ints, threads: int) -> Ints:
        """Fill in the rows of a large batch, adding unknown ids; return the rows of the ids that were added."""
        unknown = UnknownIds.find(self.table, src, dst, rows, threads)
        free = self.row_count - len(self)
        self.reserve(max(0, unknown.new_ids - free), unknown.new_bytes)
        return enter_ids(self._table, src, dst, rows, unknown, threads)

    def intern_one(self, vertex: Id) -> tuple[int, bool]:
        """Return the row of an id, adding it if it is unknown, and whether it was added."""
        row = self.find_row(vertex)
        return (row, False) if row >= 0 else (int(self.intern([vertex], [vertex])[0][0]), True)

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Remove the ids of rows; the last of these rows is reused first."""
        kernels.remove_rows(self._table, _as_readonly(rows))
        meta = self._table.meta
        # Compaction visits every row. One byte of garbage per row pays for that, even if few ids are text.
        if meta[ARENA_GARBAGE] > max(meta[ARENA_USED] // 2, meta[ROW_COUNT]):
            self._compact()

    def to_list(self, rows: NDArray[np.int64]) -> list[Id]:
        """Return the ids of rows as Python ints and strs."""
        keys, ends, data = self._gather(rows)
        return _decode_ids(keys, ends, data) if (ends >= 0).any() else keys.tolist()

    def to_column(self, rows: NDArray[np.int64]) -> IdColumn:
        """Return the ids of rows as an id column."""
        keys, ends, data = self._gather(rows)
        texts = np.count_nonzero(ends >= 0)
        if texts == 0:
            return keys
        if texts < len(ends) or (data == _BIG_INTEGER_PREFIX).any():
            return _decode_ids(keys, ends, data)
        bounds = np.concatenate([[0], ends])
        return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(bounds), pa.py_buffer(data))

    def copy(self) -> IdTable:
        """Return an independent copy."""
        slots, spans, arena, meta, old_slots = self.table
        other = IdTable(len(spans))
        other._spans.array[:], other._arena.grow(len(arena))[:] = spans, arena
        other._table = Table(slots.copy(), other._spans.array, other._arena.array, meta.copy(), old_slots.copy())
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all ids, and the order in which free rows will be reused, as plain arrays."""
        keys, ends, text = kernels.gather_ids(self._table, _as_readonly(np.arange(self.row_count)))
        keys[ends == FREE] = 0
        return {"key": keys, "end": ends, "text": text, "free": kernels.free_rows(self._table)}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> IdTable:
        """Restore a table from its `state`; it continues exactly as the original would."""
        keys, ends, text, free = _validate_state(state)
        ids = cls(len(keys))
        ids.reserve(0, len(text))
        _, spans, arena, meta, _ = ids._table
        spans[: len(keys), 0], spans[: len(keys), 1], arena[: len(text)] = keys, ends, text
        spans[free, 0] = np.append(free[1:], -1)[: len(free)]
        meta[LIVE_COUNT], meta[ROW_COUNT], meta[ARENA_USED] = len(keys) - len(free), len(keys), len(text)
        meta[FREE_HEAD] = free[0] if len(free) else -1
        kernels.rebuild_slots(ids._table)
        used = np.flatnonzero(ends != FREE)
        encoded = _as_readonly(keys[used]), _as_readonly(ends[used]), _as_readonly(text, np.uint8)
        rows = np.empty_like(used)
        kernels.find_ids(ids._table, encoded, 0, len(rows), rows)
        if not np.array_equal(rows, used):
            raise _format_error("every id once", "an id with two rows")
        return ids

    def _gather(self, rows: NDArray[np.int64]) -> EncodedIds:
        keys, ends, data = kernels.gather_ids(self._table, _as_readonly(rows))
        if (ends == FREE).any():
            raise InvalidValueError.of("rows", "rows of existing vertices", int(rows[int((ends == FREE).argmax())]))
        return keys, ends, data

    def reserve(self, rows: int, size: int) -> None:
        """Make room for this many more rows, and for ids with `size` bytes."""
        meta = self._table.meta
        self._grow_rows(int(meta[ROW_COUNT]) + rows)
        used, length = int(meta[ARENA_USED]) + size, len(self._arena.array)
        if used > length:
            self._table = self._table._replace(arena=self._arena.grow(next_capacity(length, used, 1)))

    def _make_room(self) -> None:
        """Grow the part that is full: the rows, or else the arena."""
        meta = self._table.meta
        if meta[FREE_HEAD] < 0 and meta[ROW_COUNT] == len(self._spans.array):
            self.reserve(1, 0)
        else:
            self.reserve(0, len(self._arena.array) - int(meta[ARENA_USED]) + 1)

    def _grow_rows(self, rows: int) -> None:
        """Make room for this many rows in all; entries are moved to larger slots later, little by little."""
        if rows <= len(self._spans.array):
            return
        if rows > _max_rows(self._table.slots):
            self._replace_slots(rows)
        slots = self._table.slots
        capacity = min(_max_rows(slots), ROW_STEP * -(-rows // ROW_STEP))
        self._table = self._table._replace(spans=self._spans.grow(capacity))
        if capacity == _max_rows(slots) >= ROW_STEP and self._next_slots is None:
            self._next_slots = _allocate_slots(capacity + 1)
            prefault(self._next_slots)

    def _replace_slots(self, rows: int) -> None:
        """Begin to move all entries to slots with room for this many rows."""
        kernels.move_slots(self._table, len(self._table.old_slots))  # none is left, unless a batch is very large
        slots, self._next_slots = self._next_slots, None
        if slots is None or rows > _max_rows(slots):
            slots = _allocate_slots(rows)
        self._table.meta[MOVED_SLOTS] = 0
        self._table = self._table._replace(slots=slots, old_slots=self._table.slots)

    def _release_old_slots(self) -> None:
        """Release the old slots after all entries have been moved."""
        self._table.meta[MOVED_SLOTS] = 0
        self._table = self._table._replace(old_slots=self._table.slots[:0])

    def _compact(self) -> None:
        """Rewrite the arena without the bytes of removed ids."""
        spans, meta = self._table.spans, self._table.meta
        keys, ends, text = kernels.gather_ids(self._table, _as_readonly(np.arange(self.row_count)))
        spans[: len(keys)] = np.stack([keys, ends], axis=1)
        meta[ARENA_USED], meta[ARENA_GARBAGE] = len(text), 0
        self._arena = GrowableArray(np.uint8)
        arena = self._arena.grow(max(64, len(text) * 3 // 2))
        arena[: len(text)] = text
        self._table = self._table._replace(arena=arena)


def _allocate_slots(rows: int) -> Ints:
    """Return empty slots with room for this many rows."""
    size = 16
    while size * 5 // 8 < rows:
        size *= 2
    return GrowableArray(np.int64, (2,)).grow(size)


def _max_rows(slots: Ints) -> int:
    """Return the largest number of rows for slots: at most 5 rows per 8 slots."""
    return len(slots) * 5 // 8


def _as_readonly(buffer: Any, dtype: DTypeLike = np.int64) -> NDArray[Any]:
    """Return a read-only array over a buffer. Kernels are compiled once per array type, so all inputs get this type."""
    array = (
        np.ascontiguousarray(buffer, dtype).view() if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, dtype)
    )
    array.flags.writeable = False
    return array


_NO_INTS: Ints = _as_readonly(b"")
_NO_BYTES: Bytes = _as_readonly(b"", np.uint8)


def encode_ids(column: IdColumn) -> EncodedIds:
    """Return a column of ids in the encoding that kernels read (see `_id_kernels`)."""
    if isinstance(column, np.ndarray):
        return _as_readonly(column), _NO_INTS, _NO_BYTES
    if not len(column):
        return _NO_INTS, _NO_INTS, _NO_BYTES
    if isinstance(column, list):
        return _encode_list(column)
    _, offsets, text = column.buffers()
    bounds = _as_readonly(offsets)[column.offset : column.offset + len(column) + 1]
    return bounds[:-1], bounds[1:], _as_readonly(text, np.uint8)


def _encode_id(vertex: Id) -> tuple[int, int, bytes]:
    """Return the key, end and bytes of one id."""
    if isinstance(vertex, str):
        text = vertex.encode()
    elif -(2**63) <= vertex < 2**63:
        return vertex, INTEGER, b""
    else:
        text = bytes([_BIG_INTEGER_PREFIX]) + vertex.to_bytes(vertex.bit_length() // 8 + 1, "little", signed=True)
    return 0, len(text), text


def _encode_list(ids: list[Id]) -> EncodedIds:
    keys, ends, texts, used = [], [], [], 0
    for key, end, text in map(_encode_id, ids):
        keys.append(key if end == INTEGER else used)
        used += len(text)
        ends.append(end if end == INTEGER else used)
        texts.append(text)
    return _as_readonly(np.array(keys)), _as_readonly(np.array(ends)), _as_readonly(b"".join(texts), np.uint8)


def _decode_ids(keys: Ints, ends: Ints, data: Bytes) -> list[Id]:
    text = data.tobytes()
    return [
        key if end == INTEGER else _decode_text(text[key:end])
        for key, end in zip(keys.tolist(), ends.tolist(), strict=True)
    ]


def _decode_text(text: bytes) -> Id:
    is_integer = text[:1] == bytes([_BIG_INTEGER_PREFIX])
    return int.from_bytes(text[1:], "little", signed=True) if is_integer else text.decode()


def _validate_state(state: Mapping[str, NDArray[Any]]) -> tuple[Ints, Ints, Bytes, Ints]:
    """Return the arrays of a saved state; raise `FormatError` if they are inconsistent."""
    for name, dtype in _STATE.items():
        part = state.get(name)
        if part is None or part.dtype != dtype or part.ndim != 1:
            got = "none" if part is None else f"{part.dtype} of shape {part.shape}"
            raise _format_error(f"an array {name!r} of {dtype} with one dimension", got)
    keys, ends, text, free = (state[name] for name in _STATE)
    if len(keys) != len(ends):
        raise _format_error("as many keys as ends", f"{len(keys):,} and {len(ends):,}")
    if not np.array_equal(np.sort(free), np.flatnonzero(ends == FREE)):
        raise _format_error("the free rows to be the rows without an id", "other rows")
    stops = ends[ends >= 0]
    bounds = np.concatenate([[0], stops])
    packed = np.array_equal(keys[ends >= 0], bounds[:-1]) and bounds[-1] == len(text) and (np.diff(bounds) >= 0).all()
    if not packed or (ends < FREE).any():
        raise _format_error(f"consecutive texts of {len(text):,} bytes in total", "other bounds")
    return keys, ends, text, free


def _format_error(expected: str, got: str) -> FormatError:
    return FormatError(f"The saved vertex ids are damaged: expected {expected}, got {got}. Restore a backup.")
