"""Tests of the matrices on one shard: slots are remapped while they are open, and readers do not notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), shards=st.integers(1, 4), vertices=st.integers(1, 40), edges=st.integers(0, 90))
@example(seed=0, shards=4, vertices=1, edges=0)
def test_slots_are_mapped_to_rows_and_restored(
    graph_pair: Any, seed: int, shards: int, vertices: int, edges: int
) -> None:
    pair = graph_pair(seed, shards, vertices, edges)
    slots_before = pair.slots()
    with pair.open_graph():
        for shard, before in zip(pair.shards, slots_before, strict=True):
            matrices, adjacency = shard.matrices, shard.graph.adjacency
            used = adjacency.slots()
            mapped = adjacency.links.neighbor[used].astype(np.int64)
            assert mapped.min(initial=0) >= 0
            assert mapped.max(initial=0) < matrices.rows + matrices.codes.size
            assert np.array_equal(matrices.original_neighbors(mapped), before[used])
            assert np.unique(matrices.codes).size == matrices.codes.size
            assert not (matrices.codes % shards == shard.index).any()
    for shard, before in zip(pair.shards, slots_before, strict=True):
        assert np.array_equal(shard.graph.adjacency.links.neighbor, before)


def test_neighbors_and_digest_with_open_matrices_are_unchanged(graph_pair: Any) -> None:
    pair = graph_pair(0, 3)
    cluster, digest = pair.cluster, pair.cluster.digest()
    before = [cluster.neighbors(row)[0].tolist() for row in cluster.rows_by_arrival().tolist()]
    with pair.open_graph():
        assert [cluster.neighbors(row)[0].tolist() for row in cluster.rows_by_arrival().tolist()] == before
        assert cluster.digest() == digest


@pytest.mark.parametrize("in_files", [False, True])
def test_persistent_matrix_is_stored_where_vectors_are(graph_pair: Any, tmp_path: Any, in_files: bool) -> None:
    pair = graph_pair(0, 2, storage_dir=tmp_path if in_files else None)
    with pair.open_graph() as graph:
        handle = graph.vectors.copy()
        expected = pair.one._engine.store.vectors[:40]
        assert np.array_equal(pair.read(handle), expected)
        for shard in pair.shards:
            memory = shard.matrices.select(handle.columns).base
            while isinstance(memory, np.ndarray) and memory.base is not None:
                memory = memory.base
            assert isinstance(memory, np.ndarray) is not in_files


def test_lent_rows_are_counted_as_sent(graph_pair: Any) -> None:
    pair = graph_pair(0, 2)
    sent_before = [shard.sent for shard in pair.shards]
    with pair.open_graph() as graph:
        graph.operator(1.0).apply(graph.vectors.copy()[:, :3])
        lent = [sum(reader.matrices.requested[index].size for reader in pair.shards) for index in range(2)]
    sent = [shard.sent - before for shard, before in zip(pair.shards, sent_before, strict=True)]
    assert sent == [12 * rows for rows in lent]  # three columns of float32
    assert all(lent)
