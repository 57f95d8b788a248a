"""While an anchor is worked out slots point to rows of matrices; who reads meanwhile does not notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), shards=st.integers(1, 4), vertices=st.integers(1, 40), edges=st.integers(0, 90))
@example(seed=0, shards=4, vertices=1, edges=0)
def test_slots_point_to_rows_and_back(pair_of: Any, seed: int, shards: int, vertices: int, edges: int) -> None:
    pair = pair_of(seed, shards, vertices, edges)
    before = pair.slots()
    with pair.workspace():
        for shard, then in zip(pair.shards, before, strict=True):
            sheets, adjacency = shard.matrices, shard.graph.adjacency
            used = adjacency.slots()
            now = adjacency.links.neighbor[used].astype(np.int64)
            assert now.min(initial=0) >= 0
            assert now.max(initial=0) < sheets.rows + sheets.codes.size
            assert np.array_equal(sheets.original_neighbors(now), then[used])
            assert np.unique(sheets.codes).size == sheets.codes.size
            assert not (sheets.codes % shards == shard.index).any()
    for shard, then in zip(pair.shards, before, strict=True):
        assert np.array_equal(shard.graph.adjacency.links.neighbor, then)


def test_neighbors_can_be_read_meanwhile(pair_of: Any) -> None:
    pair = pair_of(0, 3)
    cluster, digest = pair.cluster, pair.cluster.digest()
    before = [cluster.neighbors(row)[0].tolist() for row in cluster.rows_by_arrival().tolist()]
    with pair.workspace():
        assert [cluster.neighbors(row)[0].tolist() for row in cluster.rows_by_arrival().tolist()] == before
        assert cluster.digest() == digest


@pytest.mark.parametrize("in_files", [False, True])
def test_what_is_to_last_lies_where_vectors_do(pair_of: Any, tmp_path: Any, in_files: bool) -> None:
    pair = pair_of(0, 2, storage_dir=tmp_path if in_files else None)
    with pair.workspace() as workspace:
        sheet = workspace.vectors.copy()
        expected = pair.one._engine.store.vectors[:40]
        assert np.array_equal(pair.read(sheet), expected)
        for shard in pair.shards:
            memory = shard.matrices.select(sheet.columns).base
            while isinstance(memory, np.ndarray) and memory.base is not None:
                memory = memory.base
            assert isinstance(memory, np.ndarray) is not in_files


def test_rows_that_shards_lend_are_counted(pair_of: Any) -> None:
    pair = pair_of(0, 2)
    sent = [shard.sent for shard in pair.shards]
    with pair.workspace() as workspace:
        workspace.operator(1.0).step(workspace.vectors.copy()[:, :3])
        lent = [sum(rows.size for rows in shard.matrices._lent_rows) for shard in pair.shards]
    assert [shard.sent - then for shard, then in zip(pair.shards, sent, strict=True)] == [12 * rows for rows in lent]
    assert all(lent)
