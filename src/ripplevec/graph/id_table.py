"""Names of vertices to rows and back, without a Python object per name."""

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
    ROW_COUNT,
    Bytes,
    EncodedIds,
    Ints,
    Table,
)

_BIG_INTEGER_PREFIX = 0xFF  # no UTF-8 text holds this byte, so an integer written behind it is never mistaken for one
_STATE = {"key": np.dtype(np.int64), "end": np.dtype(np.int64), "text": np.dtype(np.uint8), "free": np.dtype(np.int64)}


class IdTable:
    """The rows of all vertices by name. Rows of removed vertices are reused, the latest first.

    >>> ids = IdTable()
    >>> ids.intern_one("alice"), ids.intern_one(1), ids.intern_one("1")
    ((0, True), (1, True), (2, True))
    >>> ids.find_row(1), ids.find_row("bob")
    (1, -1)
    """

    def __init__(self) -> None:
        meta = np.zeros(5, np.int64)
        meta[FREE_HEAD] = -1
        self._table = _create_table(np.empty((0, 2), np.int64), np.empty(64, np.uint8), meta)

    def __len__(self) -> int:
        return int(self._table[3][LIVE_COUNT])

    def __contains__(self, name: Id) -> bool:
        return self.find_row(name) >= 0

    @property
    def row_count(self) -> int:
        """The number of rows ever used, 1 + the highest."""
        return int(self._table[3][ROW_COUNT])

    @property
    def nbytes(self) -> int:
        """The memory all names take."""
        return sum(part.nbytes for part in self._table)

    @property
    def table(self) -> Table:
        """The table as kernels see it; replaced, not altered, when it grows."""
        return self._table

    def find_rows(self, column: IdColumn) -> NDArray[np.int64]:
        """The rows of names, -1 where one is unknown."""
        rows = np.empty(len(column), np.int64)
        kernels.find_ids(self._table, encode_ids(column), 0, len(rows), rows)
        return rows

    def find_row(self, name: Id) -> int:
        """The row of a name, -1 where it is unknown."""
        key, end, text = _encode_id(name)
        return int(kernels.find_id(self._table, key, end, _as_readonly(text, np.uint8)))

    def intern(self, src: IdColumn, dst: IdColumn) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The rows of the ends of edges, and the new ones among them by first mention (src[0], dst[0], src[1], …)."""
        (src_rows, dst_rows), fresh = np.empty((2, len(src)), np.int64), np.empty(2 * len(src), np.int64)
        work = encode_ids(src), encode_ids(dst), src_rows, dst_rows, fresh
        pairs, new = kernels.intern_ids(self._table, *work, (0, 0))
        while pairs < len(src):
            self._make_room()
            pairs, new = kernels.intern_ids(self._table, *work, (pairs, new))
        return src_rows, dst_rows, fresh[:new].copy()

    def intern_one(self, name: Id) -> tuple[int, bool]:
        """The row of a name, and whether the name is new."""
        row = self.find_row(name)
        return (row, False) if row >= 0 else (int(self.intern([name], [name])[0][0]), True)

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Forget the names of rows; the last of these rows is the first to be reused."""
        kernels.remove_rows(self._table, _as_readonly(rows))
        meta = self._table[3]
        # To compact is to visit every row: a byte of garbage per row pays for that, even where few names are text.
        if meta[ARENA_GARBAGE] > max(meta[ARENA_USED] // 2, meta[ROW_COUNT]):
            self._compact()

    def to_list(self, rows: NDArray[np.int64]) -> list[Id]:
        """The names of rows as plain ints and strs."""
        keys, ends, data = self._gather(rows)
        return _decode_ids(keys, ends, data) if (ends >= 0).any() else keys.tolist()

    def to_column(self, rows: NDArray[np.int64]) -> IdColumn:
        """The names of rows as a column of ids."""
        keys, ends, data = self._gather(rows)
        texts = np.count_nonzero(ends >= 0)
        if texts == 0:
            return keys
        if texts < len(ends) or (data == _BIG_INTEGER_PREFIX).any():
            return _decode_ids(keys, ends, data)
        bounds = np.concatenate([[0], ends])
        return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(bounds), pa.py_buffer(data))

    def copy(self) -> IdTable:
        """The same names in arrays of their own."""
        other = IdTable()
        slots, spans, arena, meta = self._table
        other._table = slots.copy(), spans.copy(), arena.copy(), meta.copy()
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """All names and the order in which free rows will be reused, as plain arrays."""
        keys, ends, text = kernels.gather_ids(self._table, _as_readonly(np.arange(self.row_count)))
        keys[ends == FREE] = 0
        return {"key": keys, "end": ends, "text": text, "free": kernels.free_rows(self._table)}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> IdTable:
        """The names that `state` wrote down; they go on as if never interrupted."""
        keys, ends, text, free = _validate_state(state)
        spans = np.stack([keys, ends], axis=1)
        spans[free, 0] = np.append(free[1:], -1)[: len(free)]
        head = free[0] if len(free) else -1
        ids = cls()
        ids._table = _create_table(spans, text, np.array([len(keys) - len(free), len(keys), head, len(text), 0]))
        kernels.rebuild_slots(ids._table)
        named = np.flatnonzero(ends != FREE)
        names, rows = (_as_readonly(keys[named]), _as_readonly(ends[named]), _as_readonly(text, np.uint8)), np.empty_like(named)
        kernels.find_ids(ids._table, names, 0, len(rows), rows)
        if not np.array_equal(rows, named):
            raise FormatError("names of vertices: expected every name once, got one that stands in two rows")
        return ids

    def _gather(self, rows: NDArray[np.int64]) -> EncodedIds:
        keys, ends, data = kernels.gather_ids(self._table, _as_readonly(rows))
        if (ends == FREE).any():
            raise InvalidValueError.of("rows", "rows that have a name", int(rows[int((ends == FREE).argmax())]))
        return keys, ends, data

    def _make_room(self) -> None:
        """Double what is full: the rows, else the arena."""
        slots, spans, arena, meta = self._table
        if meta[FREE_HEAD] < 0 and meta[ROW_COUNT] == len(spans):
            self._table = _create_table(spans, arena, meta, rows=len(spans) + 1)
            kernels.rehash_slots(slots, self._table[0])
        else:
            self._table = (self._table[0], spans, _with_length(arena, 2 * len(arena)), meta)

    def _compact(self) -> None:
        """Rewrite the arena without the bytes of removed names."""
        slots, spans, _, meta = self._table
        keys, ends, text = kernels.gather_ids(self._table, _as_readonly(np.arange(self.row_count)))
        spans[: len(keys)] = np.stack([keys, ends], axis=1)
        meta[ARENA_USED], meta[ARENA_GARBAGE] = len(text), 0
        self._table = (slots, spans, _with_length(text, max(64, len(text) * 3 // 2)), meta)


def _create_table(spans: Ints, arena: Bytes, meta: Ints, rows: int = 1) -> Table:
    """A table with empty slots and room for at least `rows` rows and all in `spans`: 5 rows to 8 slots at most."""
    size = 16
    while size * 5 // 8 < max(rows, len(spans)):
        size *= 2
    slots = np.full((size, 2), kernels.EMPTY, np.int64)
    return slots, _with_length(spans, size * 5 // 8), _with_length(arena, 64), meta


def _with_length(part: NDArray[Any], length: int) -> NDArray[Any]:
    """A copy of an array with room behind it."""
    longer = np.empty((max(length, len(part)), *part.shape[1:]), part.dtype)
    longer[: len(part)] = part
    return longer


def _as_readonly(buffer: Any, dtype: DTypeLike = np.int64) -> NDArray[Any]:
    """A read-only array over a buffer: one type of array for the kernels, which are compiled once per type."""
    array = (
        np.ascontiguousarray(buffer, dtype).view() if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, dtype)
    )
    array.flags.writeable = False
    return array


_NO_INTS: Ints = _as_readonly(b"")
_NO_BYTES: Bytes = _as_readonly(b"", np.uint8)


def encode_ids(column: IdColumn) -> EncodedIds:
    """A column of ids as the kernels read it."""
    if isinstance(column, np.ndarray):
        return _as_readonly(column), _NO_INTS, _NO_BYTES
    if not len(column):
        return _NO_INTS, _NO_INTS, _NO_BYTES
    if isinstance(column, list):
        return _encode_list(column)
    _, offsets, text = column.buffers()
    bounds = _as_readonly(offsets)[column.offset : column.offset + len(column) + 1]
    return bounds[:-1], bounds[1:], _as_readonly(text, np.uint8)


def _encode_id(name: Id) -> tuple[int, int, bytes]:
    """One id as the kernels read it, but for the type of its bytes."""
    if isinstance(name, str):
        text = name.encode()
    elif -(2**63) <= name < 2**63:
        return name, INTEGER, b""
    else:
        text = bytes([_BIG_INTEGER_PREFIX]) + name.to_bytes(name.bit_length() // 8 + 1, "little", signed=True)
    return 0, len(text), text


def _encode_list(names: list[Id]) -> EncodedIds:
    keys, ends, texts, used = [], [], [], 0
    for key, end, text in map(_encode_id, names):
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
    return int.from_bytes(text[1:], "little", signed=True) if text[:1] == bytes([_BIG_INTEGER_PREFIX]) else text.decode()


def _validate_state(state: Mapping[str, NDArray[Any]]) -> tuple[Ints, Ints, Bytes, Ints]:
    """The arrays of a state, or an error that says what is wrong with them."""
    for name, dtype in _STATE.items():
        part = state.get(name)
        if part is None or part.dtype != dtype or part.ndim != 1:
            got = "nothing" if part is None else f"{part.dtype} of shape {part.shape}"
            raise FormatError(f"names of vertices: expected a column {name!r} of {dtype}, got {got}")
    keys, ends, text, free = (state[name] for name in _STATE)
    if len(keys) != len(ends):
        raise FormatError(f"names of vertices: expected as many keys as ends, got {len(keys):,} and {len(ends):,}")
    if not np.array_equal(np.sort(free), np.flatnonzero(ends == FREE)):
        raise FormatError("names of vertices: expected the free rows to be those without a name, got others")
    stops = ends[ends >= 0]
    bounds = np.concatenate([[0], stops])
    packed = np.array_equal(keys[ends >= 0], bounds[:-1]) and bounds[-1] == len(text) and (np.diff(bounds) >= 0).all()
    if not packed or (ends < FREE).any():
        raise FormatError(f"names of vertices: expected texts that fill {len(text):,} bytes, got others")
    return keys, ends, text, free
