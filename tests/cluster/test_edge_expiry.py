from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs ripplevec[cluster]")

from ripplevec import Batch, Embedder
from ripplevec.cluster import ShardedEmbedder
from ripplevec.cluster.sharded_embedder import IN_PROCESS


def stream(count: int = 40) -> list[Batch]:
    """Return timed batches with repeated edges, so that some edges expire and others stay."""
    rng = np.random.default_rng(3)
    ends = [rng.integers(0, 30, (6, 2)) for _ in range(count)]
    kept = [part[part[:, 0] != part[:, 1]] for part in ends]
    return [Batch.of(*part.T, time=np.full(len(part), float(number))) for number, part in enumerate(kept)]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_expired_edges_are_those_of_one_machine(shards: int, directed: bool) -> None:
    parameters: dict[str, Any] = {"dim": 4, "anchor_growth": 0, "expire_after": 5.0, "directed": directed}
    single, sharded = Embedder(**parameters), ShardedEmbedder(shards=shards, address=IN_PROCESS, **parameters)
    expired = 0
    for batch in stream():
        before = single.engine.edges + len(batch)
        for model in (single, sharded):
            model.partial_fit(batch)
        expired += before - single.engine.edges
        assert sharded.engine.edges == single.engine.edges
    assert expired > 50
    assert sharded.digest() == single.digest()
