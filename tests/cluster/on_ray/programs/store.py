"""Batches that together are several times as large as the object store; what it held meanwhile, as JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray

from ripplevec import Batch
from ripplevec.cluster import ShardedEmbedder

STORE, NEW, BATCHES = 80_000_000, 15_000, 25  # bytes: Ray takes no smaller one
HOW: dict[str, Any] = {"dim": 128, "anchor_growth": 0, "threads": 1, "depth": 0}


def arrivals(first: int, count: int) -> Batch:
    """Newcomers, each with two edges to those before it."""
    new = np.repeat(np.arange(first, first + count), 2)
    return Batch.of(new, np.random.default_rng(first).integers(0, first, new.size))


def held() -> int:
    """Answers of shards that are held on to here."""
    return len(ray._private.worker.global_worker.core_worker.get_all_reference_counts())


def emptied() -> bool:
    """Whether there is nothing in the store, some time after the last answer was let go."""
    deadline = time.monotonic() + 30
    while ray.available_resources().get("object_store_memory", 0) < STORE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def spilled() -> list[str]:
    """What did not fit into the store, and went to disk."""
    session = Path(ray._private.worker.global_worker.node.get_session_dir_path())
    return [str(path) for path in session.glob("ray_spilled_objects*/*")]


if __name__ == "__main__":
    ray.init("local", num_cpus=2, object_store_memory=STORE, include_dashboard=False, log_to_driver=False)
    model = ShardedEmbedder(shards=2, **HOW).fit(arrivals(2, 1_000))
    first, moved, kept = 1_002, 0, []
    for _ in range(BATCHES):
        changes = model.partial_fit(arrivals(first, NEW))
        kept.append(held())
        first, moved = first + NEW, moved + changes.vectors[:, 0].size * 2 * HOW["dim"]  # bytes, in half precision
    del changes
    sent = sum(traffic["sent"] for traffic in model.engine.query("traffic"))
    found = {
        "stores": (sent + moved) / STORE,
        "held_first": kept[0],
        "held_last": kept[-1],
        "emptied": emptied(),
        "spilled": spilled(),
    }
    ray.shutdown()
    print("\n" + json.dumps(found))
