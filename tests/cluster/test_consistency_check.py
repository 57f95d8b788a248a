"""Tests of `check`: it finds damage on one shard, between two shards, and on the driver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.errors import RipplevecError

FAULTS: dict[str, Any] = {
    "shard 1: .*strengths are not the sums": lambda shard: shard.graph.adjacency.links.strength.__setitem__(
        _first_connected_row(shard), 77.0
    ),
    "shard 1: .*ids and rows do not match": lambda shard: shard.graph.arrival.__setitem__(
        _first_connected_row(shard), -1
    ),
    "shards . and 1 have different records of an edge": lambda shard: _change_one_weight(shard),
    "edge and endpoint counts disagree": lambda shard: shard.graph.adjacency.set_edge_count(0),
    "an arrival number occurs twice": lambda shard: shard.graph.arrival.__setitem__(
        shard.graph.rows_by_arrival()[:2], shard.graph.arrival.max()
    ),
    "an arrival number was never assigned": lambda shard: shard.graph.arrival.__setitem__(
        _first_connected_row(shard), 10**6
    ),
}


def _first_connected_row(shard: ShardGraph) -> int:
    return int(np.flatnonzero(shard.graph.adjacency.links.degree)[0])


def _change_one_weight(shard: ShardGraph) -> None:
    """Change a weight at one endpoint, with sums that agree with it."""
    row, links = _first_connected_row(shard), shard.graph.adjacency.links
    links.weight[links.begin[row]] += 4.0
    links.strength[row] += 4.0


@pytest.mark.parametrize("fault", FAULTS)
def test_check_with_damaged_shard_raises(grown_models: Any, fault: str) -> None:
    _, sharded = grown_models(seed=1)
    sharded.check()
    FAULTS[fault](sharded.engine.transport.shards[1])
    with pytest.raises(RipplevecError, match=f"Cluster state is inconsistent: .*{fault}"):
        sharded.check()


def test_check_with_wrong_driver_count_raises(grown_models: Any) -> None:
    _, sharded = grown_models()
    for name in ("edges", "vertices"):
        setattr(sharded.engine, name, getattr(sharded.engine, name) + 1)
        with pytest.raises(RipplevecError, match="driver and shards count different"):
            sharded.check()
        setattr(sharded.engine, name, getattr(sharded.engine, name) - 1)
    sharded.check()
