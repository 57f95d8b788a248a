"""Kernels that assign rows to the ids of a large batch on several threads.

All ids are looked up first. Of those that are unknown, each thread finds the first mentions of some, by hash. Then one
thread assigns rows to the first mentions, in order, and all threads enter them into the slots of the table, each into
its own range of slots.

A *mention* is 2·i + end: the i-th id of the source column (`end` 0) or of the target column (`end` 1). Mentions are
ordered like the integers.
"""

from __future__ import annotations

import numpy as np

from ripplevec.graph._id_kernels import (
    ARENA_USED,
    EMPTY,
    FREE_HEAD,
    INTEGER,
    LIVE_COUNT,
    ROW_COUNT,
    EncodedIds,
    Ints,
    Table,
    compute_tag,
    equals_previous,
    find_ids,
    home_slot,
    insert_reference,
    make_reference,
    same_bytes,
)
from ripplevec.util.numba_intrinsics import kernel, prefetch

NO_MENTION = -1  # in an empty cell
UNKNOWN, AS_PREVIOUS = -1, -2  # rows of ids that are not in the table; AS_PREVIOUS: the same as in the line before
HASH_MASK = (1 << 62) - 1  # a mask that keeps almost all bits of a hash
PART_SHIFT = 32  # the bits of a hash that select a thread are not those that select a slot


@kernel
def find_unknown(
    table: Table, src: EncodedIds, dst: EncodedIds, rows: Ints, first: int, last: int
) -> tuple[Ints, Ints]:
    """Fill in the rows of the mentions in lines `first` to `last`; return the unknown mentions and their tags.

    `rows` has two lines, for sources and targets. Of consecutive equal sources, only the first is returned.
    """
    src_rows, dst_rows = rows[0], rows[1]
    find_ids(table, src, first, last, src_rows)
    find_ids(table, dst, first, last, dst_rows)
    unknown = 0
    for i in range(first, last):
        if src_rows[i] == UNKNOWN:
            if i > first and equals_previous(src, i):  # a new vertex usually arrives with several consecutive edges
                src_rows[i] = AS_PREVIOUS
            else:
                unknown += 1
        unknown += dst_rows[i] == UNKNOWN
    mentions, tags = np.empty(unknown, np.int64), np.empty(unknown, np.int64)
    unknown = 0
    for i in range(first, last):
        if src_rows[i] == UNKNOWN:
            mentions[unknown] = 2 * i
            tags[unknown] = compute_tag(src[0][i], src[1][i] if len(src[1]) else INTEGER, src[2])
            unknown += 1
        if dst_rows[i] == UNKNOWN:
            mentions[unknown] = 2 * i + 1
            tags[unknown] = compute_tag(dst[0][i], dst[1][i] if len(dst[1]) else INTEGER, dst[2])
            unknown += 1
    return mentions, tags


@kernel(forceinline=True)
def _are_equal(src: EncodedIds, dst: EncodedIds, one: int, other: int) -> bool:
    """Return whether two mentions with the same tag mention the same id."""
    ids, other_ids = dst if one & 1 else src, dst if other & 1 else src
    i, j = one >> 1, other >> 1
    end = ids[1][i] if len(ids[1]) else INTEGER
    other_end = other_ids[1][j] if len(other_ids[1]) else INTEGER
    if end == INTEGER or other_end == INTEGER:
        return end == other_end  # the tag is the integer
    size = end - ids[0][i]
    return other_end - other_ids[0][j] == size and same_bytes(ids[2], ids[0][i], other_ids[2], other_ids[0][j], size)


@kernel(forceinline=True)
def _count_bytes(src: EncodedIds, dst: EncodedIds, mention: int) -> int:
    """Return the number of bytes that the table stores of an id: none of an integer."""
    keys, ends, _ = dst if mention & 1 else src
    return 0 if len(ends) == 0 or ends[mention >> 1] == INTEGER else ends[mention >> 1] - keys[mention >> 1]


@kernel
def find_first_mentions(
    src: EncodedIds, dst: EncodedIds, mentions: Ints, tags: Ints, part: int, parts: int, first_mentions: Ints
) -> tuple[int, int]:
    """Fill in the position of the first mention of the same id, for the mentions whose hash belongs to a part.

    Returns the number of different ids among them, and the number of bytes that the table stores of these.
    """
    own = np.empty(len(mentions), np.int64)
    count = 0
    for i in range(len(mentions)):
        own[count] = i
        count += (home_slot(tags[i], HASH_MASK) >> PART_SHIFT) % parts == part
    size = 16
    while size < 2 * count:
        size *= 2
    cells, mask = np.full((size, 2), NO_MENTION, np.int64), size - 1  # one line per cell: tag, position or NO_MENTION
    new_ids, new_bytes = 0, 0
    for position in range(count):
        if position + 8 < count:
            prefetch(cells, home_slot(tags[own[position + 8]], mask), 0)
        i = own[position]
        tag = tags[i]
        cell = home_slot(tag, mask)
        while cells[cell, 1] != NO_MENTION:
            if cells[cell, 0] == tag and _are_equal(src, dst, mentions[cells[cell, 1]], mentions[i]):
                break
            cell = (cell + 1) & mask
        if cells[cell, 1] == NO_MENTION:
            cells[cell, 0], cells[cell, 1] = tag, i
            new_ids += 1
            new_bytes += _count_bytes(src, dst, mentions[i])
        first_mentions[i] = cells[cell, 1]
    return new_ids, new_bytes


@kernel
def assign_rows(
    table: Table, src: EncodedIds, dst: EncodedIds, mentions: Ints, first_mentions: Ints, rows: Ints, added: Ints
) -> None:
    """Assign rows to the first mentions, in order. The table must have room.

    Writes the spans of the new rows; their bytes and slots remain to be entered. `added` has two lines: the new rows,
    and the positions of their first mentions.
    """
    spans, meta = table.spans, table.meta
    src_keys, src_ends, dst_keys, dst_ends = src[0], src[1], dst[0], dst[1]
    new, used, free_row, row_count = 0, meta[ARENA_USED], meta[FREE_HEAD], meta[ROW_COUNT]
    for i in range(len(mentions)):
        if first_mentions[i] < i:
            continue
        if free_row >= 0:
            row, free_row = free_row, spans[free_row, 0]
        else:
            row, row_count = row_count, row_count + 1
        line = mentions[i] >> 1
        if mentions[i] & 1:
            key, end = dst_keys[line], dst_ends[line] if len(dst_ends) else INTEGER
            rows[1, line] = row
        else:
            key, end = src_keys[line], src_ends[line] if len(src_ends) else INTEGER
            rows[0, line] = row
        if end != INTEGER:
            key, end = used, used + end - key
            used = end
        spans[row, 0], spans[row, 1] = key, end
        added[0, new], added[1, new] = row, i
        new += 1
    meta[ARENA_USED], meta[FREE_HEAD], meta[ROW_COUNT] = used, free_row, row_count
    meta[LIVE_COUNT] += new


@kernel
def enter_slots(table: Table, tags: Ints, added: Ints, part: int, parts: int) -> Ints:
    """Write new rows into the slots of one part of the table; return, as positions in `added`, those that do not fit.

    These found only used slots from their home slot to the end of the part.
    """
    slots, spans = table.slots, table.spans
    mask = len(slots) - 1
    begin, end = part * len(slots) // parts, (part + 1) * len(slots) // parts
    own = np.empty(added.shape[1], np.int64)
    count, left = 0, 0
    for i in range(added.shape[1]):
        home = home_slot(tags[added[1, i]], mask)
        own[count] = i
        count += begin <= home < end
    for position in range(count):
        if position + 8 < count:
            prefetch(slots, home_slot(tags[added[1, own[position + 8]]], mask), 0)
            prefetch(spans, added[0, own[position + 8]], 0)
        i = own[position]
        row, tag = added[0, i], tags[added[1, i]]
        slot = home_slot(tag, mask)
        while slot < end and slots[slot, 1] != EMPTY:
            slot += 1
        if slot == end:
            own[left] = i
            left += 1
        else:
            slots[slot, 0] = tag
            slots[slot, 1] = make_reference(row, spans[row, 1])
    return own[:left].copy()


@kernel
def enter_remaining(table: Table, tags: Ints, added: Ints, remaining: Ints) -> None:
    """Write the new rows that did not fit into their part of the slots."""
    for i in remaining:
        row = added[0, i]
        insert_reference(table.slots, tags[added[1, i]], make_reference(row, table.spans[row, 1]))


@kernel
def copy_bytes(
    table: Table, src: EncodedIds, dst: EncodedIds, mentions: Ints, added: Ints, first: int, last: int
) -> None:
    """Copy the bytes of the new ids `first` to `last` into the arena."""
    spans, arena = table.spans, table.arena
    for i in range(first, last):
        row, mention = added[0, i], mentions[added[1, i]]
        if spans[row, 1] != INTEGER:
            keys, _, data = dst if mention & 1 else src
            key = keys[mention >> 1]
            for offset in range(spans[row, 1] - spans[row, 0]):
                arena[spans[row, 0] + offset] = data[key + offset]


@kernel
def fill_later_mentions(mentions: Ints, first_mentions: Ints, rows: Ints, first: int, last: int) -> None:
    """Fill in the rows of the mentions `first` to `last` that are not the first ones of their id."""
    for i in range(first, last):
        if first_mentions[i] < i:
            mention = mentions[first_mentions[i]]
            rows[mentions[i] & 1, mentions[i] >> 1] = rows[mention & 1, mention >> 1]


@kernel
def fill_repeated_sources(src_rows: Ints, first: int, last: int) -> None:
    """Fill in the rows of sources that are the same as in the line before."""
    for i in range(first, last):
        if src_rows[i] == AS_PREVIOUS:
            src_rows[i] = src_rows[i - 1]
