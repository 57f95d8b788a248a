"""Entry of the ids of large batches compared with the entry id by id, for any number of threads."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Id, IdColumn, id_column
from ripplevec.graph import bulk_ids, id_table
from ripplevec.graph._id_kernels import MOVED_SLOTS
from ripplevec.graph.id_table import IdTable

THREADS = (1, 2, 4)
ALWAYS, NEVER = 1, 1 << 40  # values of MIN_BULK_PAIRS
EDGE_CASES: list[Id] = [1, "1", 0, "", -1, "\0", "a\0", 2**63 - 1, -(2**63), 2**63, 2**70, "x" * 300, "é"]
names = st.sampled_from(EDGE_CASES) | st.integers(0, 30) | st.text("ab", max_size=3)
columns = (
    st.lists(names, min_size=1, max_size=60)
    | st.lists(st.integers(0, 40), min_size=1, max_size=60)
    | st.lists(st.text("abc", max_size=4), min_size=1, max_size=60)
)


def intern(table: IdTable, src: IdColumn, dst: IdColumn, threads: int | None) -> Any:
    """Enter ids in bulk on a number of threads, or id by id if None."""
    with patch.object(id_table, "MIN_BULK_PAIRS", NEVER if threads is None else ALWAYS):
        return table.intern(src, dst, threads or 1)


def check_equal(one: IdTable, other: IdTable) -> None:
    """Check that two tables have the same ids in the same rows, the same sizes, and that all ids are found.

    One table may have moved more entries to new slots than the other.
    """
    expected, state = one.state(), other.state()
    for name, array in expected.items():
        np.testing.assert_array_equal(array, state[name], err_msg=name)
    for name in ("slots", "spans"):
        assert getattr(one.table, name).shape == getattr(other.table, name).shape
    np.testing.assert_array_equal(one.table.meta[:MOVED_SLOTS], other.table.meta[:MOVED_SLOTS])
    alive = np.flatnonzero(expected["end"] != -2)
    np.testing.assert_array_equal(other.find_rows(other.to_column(alive)), alive)


@settings(max_examples=150)
@given(
    batches=st.lists(st.tuples(columns, columns), min_size=1, max_size=5),
    lines=st.sampled_from([1, 7, 8192]),
    data=st.data(),
)
def test_intern_in_bulk_random_history_matches_id_by_id(
    batches: list[tuple[list[Id], list[Id]]], lines: int, data: st.DataObject
) -> None:
    """Batches alternate with removals, so that rows are reused."""
    one_by_one, *bulk = (IdTable() for _ in (None, *THREADS))
    with patch.object(bulk_ids, "LINES_PER_TASK", lines):
        for src, dst in batches:
            length = min(len(src), len(dst))
            pair = id_column(src[:length]), id_column(dst[:length])
            expected = intern(one_by_one, *pair, None)
            for table, threads in zip(bulk, THREADS, strict=True):
                for rows, expected_rows in zip(intern(table, *pair, threads), expected, strict=True):
                    np.testing.assert_array_equal(rows, expected_rows)
            removed = np.array(data.draw(st.lists(st.integers(0, one_by_one.row_count - 1), max_size=8)), np.int64)
            for table in (one_by_one, *bulk):
                table.remove(removed)
    for table in bulk:
        check_equal(one_by_one, table)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("text", [False, True])
def test_intern_in_bulk_many_ids_grow_the_table_alike(threads: int, text: bool) -> None:
    """Repeated sources, unknown targets, and parts of the slots that overflow into the next one."""
    one_by_one, bulk = IdTable(), IdTable()
    rng = np.random.default_rng(4)
    for first in (0, 3_000, 9_000):
        src, dst = np.repeat(np.arange(first, first + 4_000), 3), rng.integers(0, first + 12_000, 12_000)
        pair = (pa.array([f"v{x}" for x in column], pa.large_string()) for column in (src, dst)) if text else (src, dst)
        src_ids, dst_ids = pair
        for rows, expected in zip(
            intern(bulk, src_ids, dst_ids, threads), intern(one_by_one, src_ids, dst_ids, None), strict=True
        ):
            np.testing.assert_array_equal(rows, expected)
        check_equal(one_by_one, bulk)


def test_intern_in_bulk_columns_of_different_types_are_combined() -> None:
    one_by_one, bulk = IdTable(), IdTable()
    src, dst = np.array([1, 2, 2, 3]), pa.array(["1", "a", "a", "2"], pa.large_string())
    expected = intern(one_by_one, src, dst, None)
    assert [part.tolist() for part in intern(bulk, src, dst, 2)] == [part.tolist() for part in expected]
    check_equal(one_by_one, bulk)
