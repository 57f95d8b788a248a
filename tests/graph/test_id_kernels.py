"""Kernels of the id table compared with plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.graph import _id_kernels as kernels
from ripplevec.graph._id_kernels import (
    ARENA_USED,
    EMPTY,
    FREE,
    FREE_HEAD,
    INTEGER,
    LIVE_COUNT,
    MOVED_SLOTS,
    ROW_COUNT,
    EncodedIds,
    Table,
)

MASK = 2**64 - 1
NO_BYTES = np.frombuffer(b"", np.uint8)


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def reference_hash(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return signed(value)


def reference_home(tag: int, mask: int) -> int:
    value = tag + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return (value ^ value >> 31) & mask


def empty_table(slots: int = 16, rows: int = 10, arena: int = 64) -> Table:
    meta = np.zeros(6, np.int64)
    meta[FREE_HEAD] = -1
    lines = np.full((slots, 2), EMPTY, np.int64)
    return Table(lines, np.zeros((rows, 2), np.int64), np.zeros(arena, np.uint8), meta, lines[:0])


def intern(table: Table, ids: EncodedIds) -> tuple[list[int], int]:
    n = len(ids[0])
    src_rows, dst_rows, added = np.full(n, -7), np.full(n, -7), np.empty(2 * n, np.int64)
    pairs, _ = kernels.intern_ids(table, ids, ids, src_rows, dst_rows, added, (0, 0))
    return src_rows.tolist(), pairs


def readonly(*values: int) -> NDArray[np.int64]:
    """Return a read-only column, the type that `IdTable` passes, so that kernels are not compiled for another type."""
    return np.frombuffer(np.array(values, np.int64).tobytes(), np.int64)


def integers(*keys: int) -> EncodedIds:
    return readonly(*keys), readonly(), NO_BYTES


def texts(*parts: bytes) -> EncodedIds:
    bounds = readonly(*np.cumsum([0, *map(len, parts)]))
    return bounds[:-1], bounds[1:], np.frombuffer(b"".join(parts), np.uint8)


@given(st.binary(max_size=40))
def test_compute_tag_bytes_is_fnv1a(data: bytes) -> None:
    assert kernels.compute_tag(0, len(data), np.frombuffer(data, np.uint8)) == reference_hash(data)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 40))
def test_home_slot_is_splitmix64(tag: int, bits: int) -> None:
    assert kernels.compute_tag(tag, INTEGER, NO_BYTES) == tag
    assert kernels.home_slot(tag, 2**bits - 1) == reference_home(tag, 2**bits - 1)


def test_find_id_integer_and_bytes_with_same_tag_are_different() -> None:
    table = empty_table()
    assert intern(table, integers(reference_hash(b"a"))) == ([0], 1)
    assert intern(table, texts(b"a")) == ([1], 1)
    assert kernels.find_id(table, 0, 1, np.frombuffer(b"a", np.uint8)) == 1
    assert kernels.find_id(table, reference_hash(b"a"), INTEGER, NO_BYTES) == 0


def test_find_ids_bytes_with_same_tag_are_compared() -> None:
    table = empty_table()
    intern(table, texts(b"abc"))
    for other in (b"abd", b"ab", b"abcd", b""):
        forged = reference_hash(other)
        table[0][:] = EMPTY
        table[0][reference_home(forged, 15)] = forged, 3  # the row of b"abc" under the tag of another id
        rows = np.empty(1, np.int64)
        kernels.find_ids(table, texts(other), 0, 1, rows)
        assert rows[0] == -1


def test_intern_ids_full_table_stops() -> None:
    assert intern(empty_table(rows=3), integers(5, 6, 7, 8)) == ([0, 1, 2, -1], 3)
    table = empty_table(arena=5)
    assert intern(table, texts(b"abc", b"de", b"f")) == ([0, 1, -1], 2)
    assert table[3].tolist()[:4] == [2, 2, -1, 5]
    assert intern(table, texts(b"", b"abc")) == ([2, 0], 2)


def test_find_ids_does_not_read_unused_rows() -> None:
    table = empty_table()
    table[1][:] = 2**60, 2**61  # arbitrary uninitialized memory: reading it as addresses would crash
    rows = np.empty(2, np.int64)
    kernels.find_ids(table, texts(b"a", b"b"), 0, 2, rows)
    assert rows.tolist() == [-1, -1]


@given(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=10), st.data())
def test_remove_rows_leaves_no_gaps(keys: list[int], data: st.DataObject) -> None:
    """Backward shifts keep every other id reachable without a gap after its home slot."""
    table = empty_table()
    intern(table, integers(*keys))
    removed = data.draw(st.lists(st.sampled_from(range(len(keys))), unique=True))
    kernels.remove_rows(table, readonly(*removed))
    slots, spans, meta = table.slots, table.spans, table.meta
    assert kernels.free_rows(table).tolist() == removed[::-1]
    assert meta[LIVE_COUNT] == np.count_nonzero(slots[:, 1] != EMPTY) == len(keys) - len(removed)
    for row, key in enumerate(keys):
        path = [(reference_home(key, 15) + step) % 16 for step in range(16)]
        if row in removed:
            assert spans[row, 1] == FREE
            assert 2 * row + 2 not in slots[:, 1]
        else:
            place = path.index(int(np.flatnonzero(slots[:, 1] == 2 * row + 2)[0]))
            assert all(slots[slot, 1] != EMPTY for slot in path[:place])


@given(st.lists(st.binary(max_size=4), unique=True, max_size=9), st.lists(st.integers(-2, 12), max_size=12))
def test_gather_ids_packs_bytes_in_order_of_rows(parts: list[bytes], rows: list[int]) -> None:
    table = empty_table()
    intern(table, texts(*parts))
    intern(table, integers(77))
    keys, ends, data = kernels.gather_ids(table, readonly(*rows))
    stored: dict[int, bytes | int] = {**dict(enumerate(parts)), len(parts): 77}
    for row, key, end in zip(rows, keys.tolist(), ends.tolist(), strict=True):
        stored_id = stored.get(row)
        assert (end == FREE) == (stored_id is None)
        assert stored_id is None or stored_id == (key if end == INTEGER else data[key:end].tobytes())
    assert len(data) == sum(len(parts[row]) for row in rows if 0 <= row < len(parts))


def test_rebuild_slots_makes_every_id_findable() -> None:
    table = empty_table()
    intern(table, texts(b"", b"a", b"bc"))
    intern(table, integers(-5, 2**62))
    kernels.remove_rows(table, readonly(1))
    refilled = table._replace(slots=np.full((32, 2), EMPTY, np.int64))
    kernels.rebuild_slots(refilled)
    rows = np.empty(3, np.int64)
    kernels.find_ids(refilled, texts(b"", b"a", b"bc"), 0, 3, rows)
    assert rows.tolist() == [0, -1, 2]
    kernels.find_ids(refilled, integers(-5, 2**62, 9), 0, 3, rows)
    assert rows.tolist() == [3, 4, -1]
    assert (refilled[3][ROW_COUNT], refilled[3][ARENA_USED]) == (5, 3)


@given(
    keys=st.lists(st.integers(-50, 50), unique=True, max_size=10),
    times=st.sampled_from([1, 2, 8]),
    step=st.integers(1, 16),
    data=st.data(),
)
def test_move_slots_ids_are_found_after_every_step(keys: list[int], times: int, step: int, data: st.DataObject) -> None:
    """Ids are removed between the steps; their rows must not be found in the old slots, nor copied."""
    table = empty_table()
    intern(table, integers(*keys))
    expected = {key: row for row, key in enumerate(keys)}
    table = table._replace(slots=np.full((16 * times, 2), EMPTY, np.int64), old_slots=table.slots)
    for first in range(0, 16, step):
        assert kernels.is_growing(table)
        if data.draw(st.booleans()) and expected:
            removed = data.draw(st.sampled_from(sorted(expected)))
            kernels.remove_rows(table, readonly(expected.pop(removed)))
        kernels.move_slots(table, step)
        assert table.meta[MOVED_SLOTS] == min(first + step, 16)
        rows = np.full(len(keys) + 1, -7)
        kernels.find_ids(table, integers(*keys, 99), 0, len(rows), rows)
        assert rows.tolist() == [*(expected.get(key, -1) for key in keys), -1]
    assert not kernels.is_growing(table)
    assert np.count_nonzero(table.slots[:, 1]) == len(expected)


def test_find_ids_removed_bytes_in_old_slots_are_unknown() -> None:
    table = empty_table()
    intern(table, texts(b"a", b"b"))
    table = table._replace(slots=np.full((32, 2), EMPTY, np.int64), old_slots=table.slots)
    kernels.remove_rows(table, readonly(0))
    rows = np.empty(2, np.int64)
    kernels.find_ids(table, texts(b"a", b"b"), 0, 2, rows)
    assert rows.tolist() == [-1, 1]
