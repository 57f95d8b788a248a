"""Kill an actor during several batches, then drop all references; print the number of recoveries as JSON."""

from __future__ import annotations

import gc
import json
import os
from tempfile import mkdtemp
from typing import Any

import numpy as np
import ray

from ripplevec import Session
from ripplevec.cluster import Sharded


def edges(seed: int) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, 80, (60, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


def exit_in(actor: Any, method: str) -> None:
    """Make the process of an actor end in an operation of the next batch."""
    from ripplevec.cluster.shard_step import ShardBackend

    setattr(ShardBackend, method, lambda *_: os._exit(1))


if __name__ == "__main__":
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
    session: Any = Session(mkdtemp(), model=Sharded(2), dim=8, anchor_growth=0, threads=1)
    session.apply(edges(0))
    for seed, method in enumerate(("admit", "refresh_frontier", "refresh_newcomers"), 1):
        ray.get(session.model._actors.handles[1].__ray_call__.remote(exit_in, method))
        session.apply(edges(seed))
        gc.collect()
    recovered = session.recoveries
    session.close()
    session.model.close()
    del session
    gc.collect()
    ray.shutdown()
    print(json.dumps({"recovered": recovered}))
