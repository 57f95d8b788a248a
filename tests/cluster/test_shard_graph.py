"""Tests of a shard's part of the graph: reads, consistency checks and saved state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.distributed_matrix import DistributedGraph
from ripplevec.search.searcher import query_from_vector


@pytest.mark.parametrize("directed", [False, True])
def test_edge_reads_during_an_anchor_are_unchanged(grown_models: Any, directed: bool) -> None:
    _, sharded = grown_models(directed=directed)
    engine = sharded.engine
    rows = engine.rows_by_arrival()
    src, dst = (grid.ravel() for grid in np.meshgrid(rows, rows))
    exists, codes = engine.has_edges(src, dst), engine.read_edges(rows, "code")
    assert exists.sum() == (1 if directed else 2) * engine.edges
    with DistributedGraph(engine.transport, sharded.dim, engine.rule.precision):
        assert np.array_equal(engine.has_edges(src, dst), exists)
        assert np.array_equal(engine.read_edges(rows, "code"), codes)
    assert np.array_equal(engine.has_edges(src, dst), exists)


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


def test_find_mismatched_shards_reports_missing_endpoint(grown_models: Any) -> None:
    shards = grown_models(3, directed=True)[1].engine.transport.shards
    endpoints = [shard.list_endpoints() for shard in shards]
    total = sum(int(shard.graph.adjacency.links.degree.sum()) for shard in shards)
    assert sum(part.size for parts in endpoints for part in parts) == total
    for index, shard in enumerate(shards):
        received = [parts[index] for parts in endpoints]
        assert shard.find_mismatched_shards(*received) == []
        other = (index + 1) % 3
        received[other] = received[other][:-1]
        assert shard.find_mismatched_shards(*received) == [other]


def test_restore_preserves_edge_count(grown_models: Any) -> None:
    """An edge between two shards is counted on one of them, so the count does not follow from the adjacency."""
    shards = grown_models(3)[1].engine.transport.shards
    counts = [shard.graph.adjacency.edge_count for shard in shards]
    for shard in shards:
        shard.restore(shard.state())
    assert [shard.graph.adjacency.edge_count for shard in shards] == counts
    assert any(2 * count != shard.graph.adjacency.endpoint_count for count, shard in zip(counts, shards, strict=True))
