"""Hash table of `IdTable`: maps vertex ids to rows and back, in flat arrays.

An encoded id is (key, end, data): the integer `key` itself if `end` is INTEGER, else the bytes `data[key:end]`. Encoded
ids are (keys, ends, data); if `ends` is empty, all of them are integers. A `Table` has these arrays:

- slots, one line per slot of the hash table: a tag (the integer, or the hash of the bytes) and a reference to a row, or
  EMPTY (see `make_reference`). Open addressing with linear probing; the number of slots is a power of two.
- spans, one line per row: (key, end) of its id in `arena`, or (the next free row, FREE).
- meta: the counters LIVE_COUNT to MOVED_SLOTS below.
- old_slots: while the table grows, the slots from before; else empty.

A kernel that runs out of room stops there; its caller makes room and calls it again.

The table grows gradually: new ids go to new slots, and each of them copies a few entries of the old slots. Nothing is
taken out of the old slots but removed ids, so they have all ids from before the growth until the last one is copied.

A jitted function that loops over arrays counts references on every call, which costs more than the lookup of an
integer. Ids are therefore searched in blocks, and a column of integers has its own search.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import allocation_free, kernel, prefetch

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
EncodedIds: TypeAlias = tuple[Ints, Ints, Bytes]


class Table(NamedTuple):
    """Arrays of a table; see the top of this file."""

    slots: Ints
    spans: Ints
    arena: Bytes
    meta: Ints
    old_slots: Ints


INTEGER, FREE = -1, -2  # special values of `end`
EMPTY, REMOVED = 0, 1  # special references; new slots are zero, and memory that is zero need not be written
SEARCH_BLOCK = 64  # ids searched together
MOVED_PER_ID = 16  # old slots that are moved for each new id; two would suffice to finish before the next growth
LIVE_COUNT, ROW_COUNT, FREE_HEAD, ARENA_USED, ARENA_GARBAGE, MOVED_SLOTS = range(6)
"""Cells of `meta`: ids in the table, rows ever used, first free row (or -1), arena bytes used, bytes of removed ids,
and old slots whose entries are in the new ones."""


@allocation_free(forceinline=True)
def compute_tag(key: int, end: int, data: Bytes) -> Any:
    """Return the tag of an id, which tells most ids apart: the integer itself, or the FNV-1a hash of the bytes."""
    if end == INTEGER:
        return key
    value = np.uint64(0xCBF29CE484222325)
    for place in range(key, end):
        value = (value ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
    return np.int64(value)


@allocation_free(forceinline=True)
def home_slot(tag: int, mask: int) -> Any:
    """Return the slot at which the search for a tag starts (splitmix64, so that regular ids spread evenly)."""
    value = np.uint64(tag) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((value ^ (value >> np.uint64(31))) & np.uint64(mask))


@allocation_free(forceinline=True)
def make_reference(row: int, end: int) -> Any:
    """Return the reference to a row for its slot: 2·(row + 1) + (1 for bytes)."""
    return 2 * row + (2 if end == INTEGER else 3)


@allocation_free(forceinline=True)
def referenced_row(reference: int) -> Any:
    """Return the row of a reference, -1 if it is EMPTY or REMOVED."""
    return (reference >> 1) - 1


@allocation_free(forceinline=True)
def is_growing(table: Table) -> bool:
    """Return whether the old slots have entries that are not in the new ones."""
    return table.meta[MOVED_SLOTS] < len(table.old_slots)


@allocation_free(forceinline=True)
def same_bytes(arena: Bytes, start: int, data: Bytes, key: int, size: int) -> bool:
    place = 0
    while place < size and arena[start + place] == data[key + place]:
        place += 1
    return place == size


@allocation_free(inner=True)
def _prefetch_block(slots: Ints, table: Table, tags: Ints) -> None:
    """Prefetch the memory that a block of text searches will read, so that the cache misses overlap."""
    spans, arena = table.spans, table.arena
    mask = len(slots) - 1
    for tag in tags:
        prefetch(slots, home_slot(tag, mask), 0)
    for tag in tags:
        row = referenced_row(slots[home_slot(tag, mask), 1])
        if row >= 0:
            prefetch(spans, row, 0)
    for tag in tags:
        row = referenced_row(slots[home_slot(tag, mask), 1])
        if row >= 0 and 0 <= spans[row, 0] < spans[row, 1]:
            prefetch(arena, spans[row, 0], 0)


@allocation_free(inner=True)
def _search_integers(slots: Ints, keys: Ints, rows: Ints) -> None:
    """Fill in the rows of integers, in blocks: all slots of a block are prefetched before they are read."""
    mask = len(slots) - 1
    for first in range(0, len(keys), SEARCH_BLOCK):
        last = min(first + SEARCH_BLOCK, len(keys))
        for i in range(first, last):
            rows[i] = home_slot(keys[i], mask)
            prefetch(slots, rows[i], 0)
        for i in range(first, last):
            slot = rows[i]
            ref = slots[slot, 1]
            while ref != EMPTY and (slots[slot, 0] != keys[i] or ref & 1):
                slot = (slot + 1) & mask
                ref = slots[slot, 1]
            rows[i] = referenced_row(ref)


@allocation_free(inner=True)
def _search(slots: Ints, table: Table, ids: EncodedIds, first: int, last: int, rows: Ints) -> None:
    """Replace the tags of a block of ids, which are in `rows`, by their rows."""
    spans, arena = table.spans, table.arena
    keys, ends, data = ids
    mask = len(slots) - 1
    for i in range(first, last):
        key, end, tag = keys[i], ends[i], rows[i]
        kind = 0 if end == INTEGER else 1
        slot = home_slot(tag, mask)
        ref = slots[slot, 1]
        while ref != EMPTY:
            if slots[slot, 0] == tag and ref & 1 == kind and ref != REMOVED:
                if kind == 0:
                    break
                start, stop = spans[referenced_row(ref)]
                if stop - start == end - key and same_bytes(arena, start, data, key, end - key):
                    break
            slot = (slot + 1) & mask
            ref = slots[slot, 1]
        rows[i] = referenced_row(ref)


@allocation_free(inner=True)
def _find_in_slots(slots: Ints, table: Table, ids: EncodedIds, first: int, last: int, rows: Ints) -> None:
    """Fill in the rows of ids `first` to `last` that are in these slots of a table, -1 for the others."""
    keys, ends, data = ids
    if len(ends) == 0:
        _search_integers(slots, keys[first:last], rows[first:last])
        return
    for start in range(first, last, SEARCH_BLOCK):
        stop = min(start + SEARCH_BLOCK, last)
        for i in range(start, stop):
            rows[i] = compute_tag(keys[i], ends[i], data)
        if stop - start > 1:
            _prefetch_block(slots, table, rows[start:stop])
        _search(slots, table, ids, start, stop, rows)


@allocation_free
def find_ids(table: Table, ids: EncodedIds, first: int, last: int, rows: Ints) -> None:
    """Fill in the rows of ids `first` to `last`, -1 for each unknown id."""
    if not is_growing(table):
        _find_in_slots(table.slots, table, ids, first, last, rows)
        return
    _find_in_slots(table.old_slots, table, ids, first, last, rows)  # has all but the newest ids
    for i in range(first, last):
        if rows[i] < 0:
            _find_in_slots(table.slots, table, ids, i, i + 1, rows)


@kernel
def find_id(table: Table, key: int, end: int, data: Bytes) -> Any:
    """Return the row of one id, -1 if it is unknown."""
    rows = np.empty(1, np.int64)
    find_ids(table, (np.array([key]), np.array([end]), data), 0, 1, rows)
    return rows[0]


@allocation_free(forceinline=True)
def insert_reference(slots: Ints, tag: int, reference: int) -> None:
    """Write a reference into the first empty slot for its tag."""
    mask = len(slots) - 1
    slot = home_slot(tag, mask)
    while slots[slot, 1] != EMPTY:
        slot = (slot + 1) & mask
    slots[slot, 0] = tag
    slots[slot, 1] = reference


@allocation_free
def move_slots(table: Table, count: int) -> None:
    """Copy the entries of the next `count` old slots to the new ones.

    The ids themselves are not read. A slot array twice as large repeats the order of the old one twice, so that memory
    is written almost sequentially, at two places.
    """
    old, meta = table.old_slots, table.meta
    last = min(meta[MOVED_SLOTS] + count, len(old))
    for i in range(meta[MOVED_SLOTS], last):
        if old[i, 1] > REMOVED:
            insert_reference(table.slots, old[i, 0], old[i, 1])
    meta[MOVED_SLOTS] = last


@allocation_free(forceinline=True)
def _add_id(table: Table, key: int, end: int, data: Bytes) -> Any:
    """Assign a row to an unknown id and return it, -1 if there is no room."""
    slots, spans, arena, meta, _ = table
    row, used = meta[FREE_HEAD], meta[ARENA_USED]
    size = 0 if end == INTEGER else end - key
    if (row < 0 and meta[ROW_COUNT] == len(spans)) or used + size > len(arena):
        return np.int64(-1)
    if row >= 0:
        meta[FREE_HEAD] = spans[row, 0]
    else:
        row = meta[ROW_COUNT]
        meta[ROW_COUNT] += 1
    spans[row, 0] = key if end == INTEGER else used
    spans[row, 1] = INTEGER if end == INTEGER else used + size
    for i in range(size):
        arena[used + i] = data[key + i]
    insert_reference(slots, compute_tag(key, end, data), make_reference(row, end))
    meta[ARENA_USED] += size
    meta[LIVE_COUNT] += 1
    if is_growing(table):
        move_slots(table, MOVED_PER_ID)
    return row


@allocation_free(inner=True)
def intern_id(table: Table, ids: EncodedIds, i: int, rows: Ints, added: Ints, new: int) -> int:
    """Assign a row to an id that was unknown when its block was searched; return the new number of added ids."""
    keys, ends, data = ids
    find_ids(table, ids, i, i + 1, rows)
    if rows[i] < 0:
        rows[i] = _add_id(table, keys[i], ends[i] if len(ends) else INTEGER, data)
        if rows[i] >= 0:
            added[new] = rows[i]
            new += 1
    return new


@allocation_free(forceinline=True)
def equals_previous(ids: EncodedIds, i: int) -> bool:
    """Return whether an id equals the one before it."""
    keys, ends, data = ids
    if len(ends) == 0:
        return keys[i] == keys[i - 1]
    if ends[i] == INTEGER or ends[i - 1] == INTEGER:
        return keys[i] == keys[i - 1] and ends[i] == ends[i - 1]
    size = ends[i] - keys[i]
    return ends[i - 1] - keys[i - 1] == size and same_bytes(data, keys[i - 1], data, keys[i], size)


@allocation_free
def intern_ids(
    table: Table, src: EncodedIds, dst: EncodedIds, src_rows: Ints, dst_rows: Ints, added: Ints, done: tuple[int, int]
) -> Any:
    """Assign rows to src[0], dst[0], src[1], …, and list the added rows in `added`, until there is no more room.

    `done` is (pairs, added ids) so far; the return value is `done` for the next call. After a few blocks most ids are
    known. So each block is searched at full speed first, and only the ids not found are added one by one, in order.
    """
    pairs, new = done
    while pairs < len(src_rows):
        last = min(pairs + 256, len(src_rows))
        find_ids(table, src, pairs, last, src_rows)
        find_ids(table, dst, pairs, last, dst_rows)
        for i in range(pairs, last):
            if src_rows[i] < 0:
                if i and equals_previous(src, i):  # a new vertex usually arrives with several consecutive edges
                    src_rows[i] = src_rows[i - 1]
                else:
                    new = intern_id(table, src, i, src_rows, added, new)
            if src_rows[i] >= 0 and dst_rows[i] < 0:
                new = intern_id(table, dst, i, dst_rows, added, new)
            if src_rows[i] < 0 or dst_rows[i] < 0:
                return i, new
        pairs = last
    return pairs, new


@allocation_free(inner=True)
def _close_gap(slots: Ints, gap: int) -> None:
    """Empty a slot and move up the entries that were displaced past it, so that searches need no tombstones."""
    mask = len(slots) - 1
    slot = (gap + 1) & mask
    while slots[slot, 1] != EMPTY:
        if (slot - home_slot(slots[slot, 0], mask)) & mask >= (slot - gap) & mask:
            slots[gap, 0], slots[gap, 1] = slots[slot]
            gap = slot
        slot = (slot + 1) & mask
    slots[gap, 1] = EMPTY


@allocation_free(inner=True)
def _find_slot_of_row(slots: Ints, tag: int, row: int) -> Any:
    """Return the slot of a row, given the tag of its id; -1 if it is not in these slots."""
    mask = len(slots) - 1
    slot = home_slot(tag, mask)
    while slots[slot, 1] != EMPTY:
        if referenced_row(slots[slot, 1]) == row:
            return slot
        slot = (slot + 1) & mask
    return np.int64(-1)


@allocation_free
def remove_rows(table: Table, rows: Ints) -> None:
    """Remove the ids of rows and put the rows on the free list, in order; rows without an id are skipped."""
    slots, spans, arena, meta, old_slots = table
    for row in rows:
        if row < 0 or row >= meta[ROW_COUNT] or spans[row, 1] == FREE:
            continue
        key, end = spans[row]
        tag = compute_tag(key, end, arena)
        if is_growing(table):
            slot = _find_slot_of_row(old_slots, tag, row)
            if slot >= 0:
                old_slots[slot, 1] = REMOVED  # closing the gap could move an entry to slots that are copied already
        slot = _find_slot_of_row(slots, tag, row)
        if slot >= 0:
            _close_gap(slots, slot)
        if end != INTEGER:
            meta[ARENA_GARBAGE] += end - key
        spans[row, 0] = meta[FREE_HEAD]
        spans[row, 1] = FREE
        meta[FREE_HEAD] = row
        meta[LIVE_COUNT] -= 1


@allocation_free
def rebuild_slots(table: Table) -> None:
    """Insert every row that has an id into empty slots."""
    spans = table.spans
    for row in range(table.meta[ROW_COUNT]):
        key, end = spans[row]
        if end != FREE:
            insert_reference(table.slots, compute_tag(key, end, table.arena), make_reference(row, end))


@kernel
def gather_ids(table: Table, rows: Ints) -> Any:
    """Return the encoded ids of rows, with their bytes packed in this order; `end` is FREE for a row without an id."""
    spans, arena, meta = table.spans, table.arena, table.meta
    keys, ends = np.full(len(rows), -1, np.int64), np.full(len(rows), FREE, np.int64)
    size = 0
    for i, row in enumerate(rows):
        if 0 <= row < meta[ROW_COUNT]:
            keys[i], ends[i] = spans[row]
            size += ends[i] - keys[i] if ends[i] >= 0 else 0
    data = np.empty(size, np.uint8)
    used = 0
    for i in range(len(rows)):
        if ends[i] >= 0:
            start = used
            for place in range(keys[i], ends[i]):  # assigning a slice compiles the message for slices that do not fit
                data[used] = arena[place]
                used += 1
            keys[i], ends[i] = start, used
    return keys, ends, data


@kernel
def free_rows(table: Table) -> Any:
    """Return the free rows in the order in which they will be reused."""
    spans, meta = table.spans, table.meta
    rows = np.empty(meta[ROW_COUNT] - meta[LIVE_COUNT], np.int64)
    row = meta[FREE_HEAD]
    for i in range(len(rows)):
        rows[i] = row
        row = spans[row, 0]
    return rows
