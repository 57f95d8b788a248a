"""Tests of routing: row codes, and the division of rows and ids among shards."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.cluster.routing import scatter_id_columns, split_positions, split_rows


@settings(max_examples=50)
@given(owner=st.lists(st.integers(0, 6), max_size=40))
@pytest.mark.parametrize("shards", [7, 70_000])
def test_split_positions_matches_reference(owner: list[int], shards: int) -> None:
    owners = np.array(owner, np.int64) * (shards // 7)
    parts = split_positions(owners, shards)
    assert len(parts) == shards
    for shard in np.unique(owners).tolist():
        assert parts[shard].tolist() == np.flatnonzero(owners == shard).tolist()
    assert sum(part.size for part in parts) == owners.size


def test_split_rows_decodes_row_codes() -> None:
    codes = np.array([7, 3, 4, 9, 0])
    assert [part.tolist() for part in split_rows(codes, 3)] == [[1, 3, 0], [2, 1], []]


def test_scatter_id_columns_puts_ids_at_their_positions() -> None:
    positions = [np.array([2, 0]), np.empty(0, np.int64), np.array([1])]
    integers = scatter_id_columns([np.array([7, 8]), np.empty(0, np.int64), np.array([9])], positions)
    assert isinstance(integers, np.ndarray)
    assert integers.tolist() == [8, 9, 7]
    text = scatter_id_columns([pa.array(["a", "b"]), np.empty(0, np.int64), pa.array(["c"])], positions)
    assert isinstance(text, pa.Array)
    assert text.to_pylist() == ["b", "c", "a"]
    mixed = scatter_id_columns([np.array([7, 8]), np.empty(0, np.int64), pa.array(["c"])], positions)
    assert mixed == [8, "c", 7]
    assert len(scatter_id_columns([], [])) == 0
