"""Tests of a shard's part of the graph: reads, consistency checks and saved state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.search.searcher import query_from_vector


def test_search_nearest_with_ties_returns_all_equal_rows(new_models: Any) -> None:
    _, sharded = new_models(1)
    sharded.fit([(vertex, (vertex + step) % 20) for vertex in range(20) for step in (1, 2)])
    sharded.partial_fit([(0, f"leaf {leaf}") for leaf in range(30)])
    shard = sharded.engine.transport.shards[0]
    query = query_from_vector(sharded.engine.rule, sharded["leaf 0"].astype(np.float64))
    rows, cosines, numbers = shard.search_nearest(-1, query, 3, 1, 0)
    leaves = sharded.engine.rows_of([f"leaf {leaf}" for leaf in range(30)])
    assert set(leaves.tolist()) <= set(rows.tolist())  # all of them have the cosine of the third
    assert np.array_equal(numbers, shard.graph.arrival[rows])
    assert (np.diff(cosines) <= 0).all()


def test_find_mismatched_shards_reports_missing_endpoint(grown_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = grown_models(3, directed=True)[1].engine.transport
    assert transport.run("find_mismatched_shards") == [[], [], []]
    list_endpoints = ShardGraph.list_endpoints

    def drop_last_of_first_shard(shard: ShardGraph) -> Any:
        endpoints = list_endpoints(shard)
        return [part[:-1] if (shard.index, other) == (0, 1) else part for other, part in enumerate(endpoints)]

    monkeypatch.setattr(ShardGraph, "list_endpoints", drop_last_of_first_shard)
    assert transport.run("find_mismatched_shards") == [[1], [0], []]


def test_restore_preserves_edge_count(grown_models: Any) -> None:
    """An edge between two shards is counted on one of them, so the count does not follow from the adjacency."""
    shards = grown_models(3)[1].engine.transport.shards
    counts = [shard.graph.adjacency.edge_count for shard in shards]
    for shard in shards:
        shard.restore(shard.state())
    assert [shard.graph.adjacency.edge_count for shard in shards] == counts
    assert any(2 * count != shard.graph.adjacency.endpoint_count for count, shard in zip(counts, shards, strict=True))
