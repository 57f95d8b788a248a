from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs ripplevec[cluster]")

from ripplevec import Embedder
from ripplevec.cluster import ShardedEmbedder
from ripplevec.cluster.arrival_steps import RemoteAdjacency, RemoteColumn
from ripplevec.cluster.sharded_embedder import IN_PROCESS

EDGES = [(u, (u + step) % 20) for u in range(20) for step in (1, 3)]
PARAMETERS: dict[str, Any] = {"dim": 3, "rule": "paper", "seed": 2}


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_rule_paper_on_shards_equals_one_machine_arrival_by_arrival(shards: int) -> None:
    single = Embedder(**PARAMETERS).fit(EDGES)
    sharded = ShardedEmbedder(shards=shards, address=IN_PROCESS, **PARAMETERS).fit(EDGES)
    for number in range(12):
        for model in (single, sharded):
            model.add_vertex(f"new{number}", [number, (number + 4) % 20])
        assert sharded.digest() == single.digest()


def test_remote_columns_and_neighbors_are_those_of_the_shards() -> None:
    model = ShardedEmbedder(shards=2, address=IN_PROCESS, **PARAMETERS).fit(EDGES)
    engine: Any = model.engine
    rows = engine.rows_by_arrival()
    arrival, placed, adjacency = (
        RemoteColumn(engine, "arrival"),
        RemoteColumn(engine, "placed"),
        RemoteAdjacency(engine),
    )
    np.testing.assert_array_equal(arrival[rows.reshape(4, 5)], np.arange(20).reshape(4, 5))
    assert placed.any()
    row = int(rows[7])
    assert sorted(engine.ids_of(adjacency.neighbors(row))) == sorted(
        {v for u, v in EDGES if u == model.ids[7]} | {u for u, v in EDGES if v == model.ids[7]}
    )
    placed[row] = 0
    assert placed[row] == 0
    assert adjacency.capacity > rows.max()
