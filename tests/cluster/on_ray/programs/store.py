"""Apply batches that together exceed the object store several times; print its usage as JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray

from ripplevec import Batch
from ripplevec.cluster import ShardedEmbedder

STORE_BYTES = 80_000_000  # Ray accepts no smaller object store
NEW_PER_BATCH, BATCHES = 15_000, 25
PARAMETERS: dict[str, Any] = {"dim": 128, "anchor_growth": 0, "threads": 1, "depth": 0}


def arrivals(first: int, count: int) -> Batch:
    """Return new vertices, each with two edges to earlier ones."""
    new = np.repeat(np.arange(first, first + count), 2)
    return Batch.of(new, np.random.default_rng(first).integers(0, first, new.size))


def count_references() -> int:
    """Return the number of results that are referenced here."""
    return len(ray._private.worker.global_worker.core_worker.get_all_reference_counts())


def becomes_empty() -> bool:
    """Test whether the store becomes empty after the last reference was dropped."""
    deadline = time.monotonic() + 30
    while ray.available_resources().get("object_store_memory", 0) < STORE_BYTES:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def list_spilled_files() -> list[str]:
    """Return the files with objects that did not fit into the store."""
    session = Path(ray._private.worker.global_worker.node.get_session_dir_path())
    return [str(path) for path in session.glob("ray_spilled_objects*/*")]


if __name__ == "__main__":
    ray.init("local", num_cpus=2, object_store_memory=STORE_BYTES, include_dashboard=False, log_to_driver=False)
    model = ShardedEmbedder(shards=2, **PARAMETERS).fit(arrivals(2, 1_000))
    first, moved, references = 1_002, 0, []
    for _ in range(BATCHES):
        changes = model.partial_fit(arrivals(first, NEW_PER_BATCH))
        references.append(count_references())
        first += NEW_PER_BATCH
        moved += changes.vectors[:, 0].size * 2 * PARAMETERS["dim"]  # bytes, in half precision
    del changes
    sent = sum(traffic["sent"] for traffic in model.engine.query("traffic"))
    result = {
        "stores": (sent + moved) / STORE_BYTES,
        "held_first": references[0],
        "held_last": references[-1],
        "emptied": becomes_empty(),
        "spilled": list_spilled_files(),
    }
    ray.shutdown()
    print("\n" + json.dumps(result))
