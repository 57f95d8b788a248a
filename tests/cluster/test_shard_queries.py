"""What shards say comes together in the order in which it was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.shard_queries import assembled


def test_parts_go_to_their_places() -> None:
    parts = [np.array([10.0, 30.0]), np.empty(0), np.array([20.0])]
    assert assembled(parts, [np.array([0, 2]), np.empty(0, np.int64), np.array([1])]).tolist() == [10, 20, 30]


@pytest.mark.parametrize("shards", [1, 3, 5])
@pytest.mark.parametrize("directed", [False, True])
def test_edges_row_by_row(grown: Any, shards: int, directed: bool) -> None:
    one, other = (model.engine for model in grown(shards, directed=directed))
    names = np.random.default_rng(0).permutation(one.names(one.in_order()))
    here, there = one.rows_of(names), other.rows_of(names)
    links, slots = one.graph.adjacency.links, one.graph.adjacency.slots(here)
    assert other.names(other.edges_of(there, "code")) == one.names(links.neighbor[slots].astype(np.int64))
    for what in ("weight", "outgoing", "incoming"):
        assert np.array_equal(other.edges_of(there, what), getattr(links, what)[slots])
    for what in ("strength", "in_strength", "count"):
        assert np.array_equal(other.of_rows(there, what), getattr(links, what)[here])
    assert other.edges_of(there[:0], "weight").shape == (0,)
    assert other.of_rows(there[:0], "vectors").shape == (0, 4)
