"""Damage is found out, wherever it is: on one shard, between two, or here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.errors import RipplevecError

FAULTS: dict[str, Any] = {
    "shard 1: .*strengths are not the sums": lambda shard: shard.graph.adjacency.links.strength.__setitem__(
        _edged(shard), 77.0
    ),
    "shard 1: .*names and rows do not match": lambda shard: shard.graph.arrival.__setitem__(_edged(shard), -1),
    "shards . and 1: an edge is known to one end only, or differs": lambda shard: _heavier(shard),
    "the number of edges is off": lambda shard: shard.graph.adjacency.set_edge_count(0),
    "an arrival number stands twice": lambda shard: shard.graph.arrival.__setitem__(
        shard.graph.rows_by_arrival()[:2], shard.graph.arrival.max()
    ),
    "has not been given out": lambda shard: shard.graph.arrival.__setitem__(_edged(shard), 10**6),
}


def _edged(shard: ShardGraph) -> int:
    return int(np.flatnonzero(shard.graph.adjacency.links.degree)[0])


def _heavier(shard: ShardGraph) -> None:
    """Another weight at one end, and sums that agree with it."""
    row, links = _edged(shard), shard.graph.adjacency.links
    links.weight[links.begin[row]] += 4.0
    links.strength[row] += 4.0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_shard_is_found_out(grown: Any, fault: str) -> None:
    _, other = grown(seed=1)
    other.check()
    FAULTS[fault](other.engine.transport.shards[1])
    with pytest.raises(RipplevecError, match=f"the cluster is damaged: .*{fault}"):
        other.check()


def test_the_driver_is_found_out_too(grown: Any) -> None:
    _, other = grown()
    for name in ("_edges", "_vertices"):
        setattr(other.engine, name, getattr(other.engine, name) + 1)
        with pytest.raises(RipplevecError, match="the driver knows another number"):
            other.check()
        setattr(other.engine, name, getattr(other.engine, name) - 1)
    other.check()
