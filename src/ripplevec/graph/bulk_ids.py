"""Assignment of rows to the ids of a large batch on several threads; the rows are those that one thread would assign.

All scratch memory is proportional to the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ripplevec.graph import _bulk_id_kernels as kernels
from ripplevec.graph._id_kernels import MOVED_PER_ID, EncodedIds, Ints, Table, move_slots
from ripplevec.util.parallel import for_each_block

LINES_PER_TASK = 8_192


class UnknownIds(NamedTuple):
    """Mentions of ids that are not in the table, in order."""

    mentions: Ints  # see `_bulk_id_kernels`
    tags: Ints
    first_mentions: Ints  # position of the first mention of the same id
    new_ids: int  # number of different ids
    new_bytes: int  # number of bytes that the table stores of them

    @classmethod
    def find(cls, table: Table, src: EncodedIds, dst: EncodedIds, rows: Ints, threads: int) -> UnknownIds:
        """Look up all ids; fill in the rows of known ids, and return the others."""
        found: dict[int, tuple[Ints, Ints]] = {}
        totals = np.zeros((threads, 2), np.int64)

        def find_lines(first: int, last: int) -> None:
            found[first] = kernels.find_unknown(table, src, dst, rows, first, last)

        def find_part(part: int, _: int) -> None:
            totals[part] = kernels.find_first_mentions(src, dst, mentions, tags, part, threads, first_mentions)

        for_each_block(find_lines, rows.shape[1], size=LINES_PER_TASK, threads=threads)
        mentions, tags = (np.concatenate(part) for part in zip(*(found[first] for first in sorted(found)), strict=True))
        first_mentions = np.empty_like(mentions)
        for_each_block(find_part, threads, size=1, threads=threads)
        return cls(mentions, tags, first_mentions, *totals.sum(axis=0).tolist())


def enter_ids(table: Table, src: EncodedIds, dst: EncodedIds, rows: Ints, unknown: UnknownIds, threads: int) -> Ints:
    """Enter new ids into a table that has room for them; fill in their rows, and return these in order."""
    mentions, tags, first_mentions, new_ids, new_bytes = unknown
    added, remaining = np.empty((2, new_ids), np.int64), [mentions[:0]] * threads
    kernels.assign_rows(table, src, dst, mentions, first_mentions, rows, added)

    def enter_part(part: int, _: int) -> None:
        remaining[part] = kernels.enter_slots(table, tags, added, part, threads)

    def copy_bytes(first: int, last: int) -> None:
        kernels.copy_bytes(table, src, dst, mentions, added, first, last)

    def fill_later_mentions(first: int, last: int) -> None:
        kernels.fill_later_mentions(mentions, first_mentions, rows, first, last)

    def fill_repeated_sources(first: int, last: int) -> None:
        kernels.fill_repeated_sources(rows[0], first, last)

    for_each_block(enter_part, threads, size=1, threads=threads)
    kernels.enter_remaining(table, tags, added, np.concatenate(remaining))
    move_slots(table, MOVED_PER_ID * new_ids)
    for_each_block(copy_bytes, new_ids if new_bytes else 0, size=LINES_PER_TASK, threads=threads)
    for_each_block(fill_later_mentions, len(mentions), size=LINES_PER_TASK, threads=threads)
    for_each_block(fill_repeated_sources, rows.shape[1], size=LINES_PER_TASK, threads=threads)
    return added[0].copy()
