"""What a shard says of itself, also while an anchor has its slots point elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.distributed_matrix import DistributedGraph
from ripplevec.search.query import query_from_vector


@pytest.mark.parametrize("directed", [False, True])
def test_edges_can_be_asked_for_while_an_anchor_is_worked_out(grown: Any, directed: bool) -> None:
    _, other = grown(directed=directed)
    engine = other.engine
    rows = engine.rows_by_arrival()
    src, dst = (grid.ravel() for grid in np.meshgrid(rows, rows))
    before, around = engine.has_edges(src, dst), engine.read_edges(rows, "code")
    assert before.sum() == (1 if directed else 2) * engine.edges
    with DistributedGraph(engine.transport, other.dim, engine.rule.precision):
        assert np.array_equal(engine.has_edges(src, dst), before)
        assert np.array_equal(engine.read_edges(rows, "code"), around)
    assert np.array_equal(engine.has_edges(src, dst), before)


def test_equals_are_not_cut_off_by_row(new: Any) -> None:
    _, other = new(1)
    other.fit([(number, (number + step) % 20) for number in range(20) for step in (1, 2)])
    other.partial_fit([(0, f"leaf {number}") for number in range(30)])
    shard = other.engine.transport.shards[0]
    query = query_from_vector(other.engine.rule, other["leaf 0"].astype(np.float64))
    rows, cosines, numbers = shard.search_nearest(-1, query, 3, 1, 0)
    leaves = other.engine.rows_of([f"leaf {number}" for number in range(30)])
    assert set(leaves.tolist()) <= set(rows.tolist())  # all of them are as near as the third
    assert np.array_equal(numbers, shard.graph.arrival[rows])
    assert (np.diff(cosines) <= 0).all()


def test_both_ends_of_an_edge_say_the_same(grown: Any) -> None:
    shards = grown(3, directed=True)[1].engine.transport.shards
    ends = [shard.list_endpoints() for shard in shards]
    assert sum(part.size for parts in ends for part in parts) == sum(int(shard._links.degree.sum()) for shard in shards)
    for number, shard in enumerate(shards):
        received = [parts[number] for parts in ends]
        assert shard.find_mismatched_shards(*received) == []
        other = (number + 1) % 3
        received[other] = received[other][:-1]
        assert shard.find_mismatched_shards(*received) == [other]


def test_a_part_restores_what_it_counts(grown: Any) -> None:
    """The edges that a shard counts do not follow from what it holds."""
    shards = grown(3)[1].engine.transport.shards
    counted = [shard.graph.adjacency.edge_count for shard in shards]
    for shard in shards:
        shard.restore(shard.state())
    assert [shard.graph.adjacency.edge_count for shard in shards] == counted
    assert any(2 * edges != shard.graph.adjacency.endpoint_count for edges, shard in zip(counted, shards, strict=True))
