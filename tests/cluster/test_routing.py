"""Tests of routing: vertices and operations reach the shards that store them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Op, id_column, ids_to_list
from ripplevec.cluster.routing import (
    EdgeEndpoints,
    ShardOperations,
    assign_shards,
    intern_endpoints,
    merge_id_columns,
    schedule_waves,
    send_operations,
    split_positions,
    split_rows,
)


class RecordingTransport:
    """Records the arguments of the last call instead of calling shards."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.method, self.columns = "", ()  # type: tuple[str, tuple[Any, ...]]

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        self.method, self.columns = method, columns
        return [None] * self.size

    def get(self, results: Sequence[Any]) -> list[Any]:
        return list(results)

    def reset(self) -> None:
        raise NotImplementedError


def endpoints_of(pairs: Any, op: Any = None, first_new: int = 10**9) -> EdgeEndpoints:
    """Return endpoints whose arrival numbers equal their row codes."""
    codes = np.array(pairs, np.int64).reshape(-1, 2)
    ops = np.zeros(len(codes), np.int8) if op is None else np.array(op, np.int8)
    new = np.unique(codes[codes >= first_new])
    return EdgeEndpoints(ops, codes, codes.copy(), new, new)


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


def test_intern_endpoints_numbers_new_vertices_by_first_occurrence(new_cluster: Any) -> None:
    transport, op = new_cluster(3).transport, np.zeros(3, np.int8)
    src, dst = id_column(["a", "c", "b"]), id_column(["b", "a", "d"])
    endpoints = intern_endpoints(transport, src, dst, op, 100)
    assert endpoints.numbers.tolist() == [[100, 101], [102, 100], [101, 103]]
    assert endpoints.new_numbers.tolist() == [100, 101, 102, 103]
    owners = assign_shards(id_column(["a", "b", "c", "d"]), 3)
    assert (endpoints.new_codes % 3).tolist() == owners.tolist()
    for name, code in zip("abcd", endpoints.new_codes.tolist(), strict=True):
        assert ids_to_list(transport.shards[code % 3].read_ids(np.array([code // 3]))) == [name]


def test_intern_endpoints_of_existing_vertices_keeps_their_numbers(new_cluster: Any) -> None:
    transport, op = new_cluster(2).transport, np.zeros(1, np.int8)
    first = intern_endpoints(transport, id_column([5]), id_column([6]), op, 0)
    send_operations(transport, first, np.ones(1, np.float32))
    again = intern_endpoints(transport, id_column([6]), id_column([7]), op, 2)
    assert again.numbers.tolist() == [[1, 2]]
    assert again.codes[0, 0] == first.codes[0, 1]
    assert again.new_numbers.tolist() == [2]


@settings(max_examples=50)
@given(pairs=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=30), shards=st.integers(1, 4))
def test_send_operations_gives_each_shard_its_endpoints(pairs: list[tuple[int, int]], shards: int) -> None:
    transport, endpoints = RecordingTransport(shards), endpoints_of(pairs, first_new=10)
    weight = np.arange(len(pairs), dtype=np.float32)
    send_operations(transport, endpoints, weight)
    assert transport.method == "apply_operations"
    (by_shard,) = transport.columns
    for shard, operations in enumerate(by_shard):
        assert isinstance(operations, ShardOperations)
        new = [code for code in endpoints.new_codes.tolist() if code % shards == shard]
        assert operations.new_rows.tolist() == [code // shards for code in new]
        assert operations.new_numbers.tolist() == new
        expected = []
        for i, pair in enumerate(pairs):
            for side, (code, other) in enumerate((pair, pair[::-1])):
                if code % shards == shard:
                    neighbor = other // shards if other % shards == shard else -1 - other
                    expected.append([code // shards, neighbor, code, other, side, i])
        columns = operations.endpoints, operations.side, operations.weight
        assert np.column_stack(columns).astype(int).tolist() == expected


def test_schedule_waves_of_chain_depends_on_shards() -> None:
    chain = endpoints_of([(10, 11), (11, 12), (12, 13)])
    wave, step = schedule_waves(chain, 10, 4, 1)
    assert (wave.tolist(), step.tolist()) == ([0, 0, 0, 0], [0, 1, 2, 3])
    wave, step = schedule_waves(chain, 10, 4, 2)
    assert (wave.tolist(), step.tolist()) == ([0, 1, 2, 3], [0, 0, 0, 0])


def test_schedule_waves_ignores_removed_edges() -> None:
    endpoints = endpoints_of([(10, 11), (10, 11)], op=[Op.VERTEX, Op.REMOVE])
    wave, step = schedule_waves(endpoints, 10, 2, 2)
    assert (wave.tolist(), step.tolist()) == ([0, 0], [0, 0])


def test_merge_id_columns_puts_ids_at_their_positions() -> None:
    positions = [np.array([2, 0]), np.empty(0, np.int64), np.array([1])]
    integers = merge_id_columns([np.array([7, 8]), np.empty(0, np.int64), np.array([9])], positions)
    assert isinstance(integers, np.ndarray)
    assert integers.tolist() == [8, 9, 7]
    text = merge_id_columns([pa.array(["a", "b"]), np.empty(0, np.int64), pa.array(["c"])], positions)
    assert isinstance(text, pa.Array)
    assert text.to_pylist() == ["b", "c", "a"]
    mixed = merge_id_columns([np.array([7, 8]), np.empty(0, np.int64), pa.array(["c"])], positions)
    assert mixed == [8, "c", 7]
    assert len(merge_id_columns([], [])) == 0
