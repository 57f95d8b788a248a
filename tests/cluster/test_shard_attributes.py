"""Tests of the attribute parts on one shard: latest edges, writes by the driver, and copies."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from ripplevec import Batch
from ripplevec.attributes._kernels import OWN
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport


@pytest.fixture
def shard(new_models: Any) -> Shard:
    """The only shard of a star around vertex 0, with 6 leaves."""
    _, model = new_models(1, attribute_dim=2)
    model.partial_fit(Batch.of(np.zeros(6, np.int64), np.arange(1, 7), weight=np.arange(1.0, 7)))
    return cast(LocalTransport, model.engine.transport).shards[0]


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (2, [5, 6]), (9, [1, 2, 3, 4, 5, 6])])
def test_latest_edges_are_the_last_ones_of_each_row(shard: Shard, limit: int, expected: list[int]) -> None:
    rows = shard.find_rows(np.array([0, 3]))
    counts, neighbors, weights = shard.list_edges(rows, ("neighbor", "weight"), limit)
    assert counts.tolist() == [len(expected), min(limit, 1)]
    assert shard.id_column_of(neighbors).tolist() == expected + [0] * min(limit, 1)
    assert weights.tolist() == expected + [3] * min(limit, 1)


def test_written_attributes_are_read_saved_and_copied(shard: Shard) -> None:
    rows, parts = shard.find_rows(np.array([2, 5])), np.array([[1, 2], [3, 4]], np.float32)
    kept = {
        "begin": np.array([0, 2, 3]),
        "columns": np.array([0, 3, 1], np.int32),
        "values": np.array([1, 2, 3], np.float32),
    }
    shard.create_read_snapshot(1)
    shard.write_attributes(rows, parts, np.full(2, OWN, np.uint8), kept)
    assert sorted(shard.list_attributed_rows().tolist()) == sorted(rows.tolist())
    np.testing.assert_array_equal(shard.read_rows(rows, "attribute_parts"), parts)
    for name, array in shard.read_kept(rows).items():
        np.testing.assert_array_equal(array, kept[name])
    assert shard.search_parts(-1, parts[0], 1)[0].tolist() == [rows[0]]
    assert shard.search_parts(int(rows[0]), parts[0], 1)[0].tolist() == [rows[1]]
    assert not shard.snapshots[1].list_attributed_rows().size
    state = shard.state()
    shard.write_attributes(rows, 0 * parts, np.zeros(2, np.uint8), {**kept, "begin": np.zeros(3, np.int64)})
    assert not shard.read_kept(rows)["values"].size
    shard.restore(state)
    np.testing.assert_array_equal(shard.read_rows(rows, "attribute_parts"), parts)


def test_arrivals_are_found_by_number(shard: Shard) -> None:
    assert shard.id_column_of(shard.list_arrivals(2, 4)).tolist() == [2, 3]
    assert not shard.list_arrivals(7, 9).size
