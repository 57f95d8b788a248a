"""Kernels of the entry of ids in bulk compared with plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Id, id_column
from ripplevec.graph import _bulk_id_kernels as kernels
from ripplevec.graph._id_kernels import EMPTY, home_slot
from ripplevec.graph.id_table import IdTable, encode_ids

ids = st.integers(0, 12) | st.sampled_from(["", "0", "1", "a", "ab"])
pairs = st.lists(st.tuples(ids, ids), min_size=1, max_size=50)


def encode(rows: list[tuple[Id, Id]]) -> tuple[Any, Any]:
    src, dst = ([row[end] for row in rows] for end in range(2))
    return encode_ids(id_column(src)), encode_ids(id_column(dst))


@given(known=pairs, rows=pairs)
def test_find_unknown_random_ids_returns_them_without_repeated_sources(
    known: list[tuple[Id, Id]], rows: list[tuple[Id, Id]]
) -> None:
    table = IdTable()
    table.intern(*(id_column([row[end] for row in known]) for end in range(2)))
    found = np.empty((2, len(rows)), np.int64)
    mentions, tags = kernels.find_unknown(table.table, *encode(rows), found, 0, len(rows))
    expected = [
        2 * i + end
        for i, row in enumerate(rows)
        for end in range(2)
        if row[end] not in table and not (end == 0 and i and rows[i - 1][0] == row[0])
    ]
    assert mentions.tolist() == expected
    assert len(tags) == len(expected)
    for i, row in enumerate(rows):
        for end in range(2):
            known_row = table.find_row(row[end])
            assert found[end, i] == known_row or (known_row < 0 and found[end, i] in (-1, kernels.AS_PREVIOUS))


@given(rows=pairs, parts=st.integers(1, 4))
def test_find_first_mentions_random_ids_match_list_index(rows: list[tuple[Id, Id]], parts: int) -> None:
    src, dst = encode(rows)
    found = np.empty((2, len(rows)), np.int64)
    mentions, tags = kernels.find_unknown(IdTable().table, src, dst, found, 0, len(rows))
    first_mentions = np.full(len(mentions), -1)
    totals = [kernels.find_first_mentions(src, dst, mentions, tags, k, parts, first_mentions) for k in range(parts)]
    mentioned = [(type(row), row) for row in (rows[mention >> 1][mention & 1] for mention in mentions.tolist())]
    assert first_mentions.tolist() == [mentioned.index(name) for name in mentioned]
    texts = {name for kind, name in mentioned if kind is str}
    assert [sum(part) for part in zip(*totals, strict=True)] == [len(set(mentioned)), sum(len(text) for text in texts)]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_enter_slots_full_part_returns_the_rest(parts: int) -> None:
    """All ids have their home slot at the end of a part; those that do not fit are entered afterward."""
    table = IdTable().table
    size = len(table[0])
    home = size // parts - 1
    tags = np.array([tag for tag in range(400) if home_slot(tag, size - 1) == home][:3])
    assert len(tags) == 3
    table[1][:3] = np.stack([tags, np.full(3, -1)], axis=1)
    added = np.stack([np.arange(3), np.arange(3)])
    remaining = np.concatenate([kernels.enter_slots(table, tags, added, part, parts) for part in range(parts)])
    assert remaining.tolist() == [1, 2]
    kernels.enter_remaining(table, tags, added, remaining)
    slots = [(home + i) % size for i in range(3)]
    assert table[0][slots].tolist() == [[tag, 2 * row + 2] for row, tag in enumerate(tags.tolist())]
    assert (np.delete(table[0], slots, axis=0)[:, 1] == EMPTY).all()


def test_fill_later_mentions_and_repeated_sources_copy_rows() -> None:
    rows = np.array([[5, kernels.AS_PREVIOUS, -1, kernels.AS_PREVIOUS], [6, -1, 5, 7]])
    kernels.fill_later_mentions(np.array([1, 3, 4]), np.array([0, 0, 0]), rows, 0, 3)
    kernels.fill_repeated_sources(rows[0], 0, 4)
    assert rows.tolist() == [[5, 5, 6, 6], [6, 6, 5, 7]]
