"""A model on shards against one on one machine, all of them here: what it costs to be in several processes.

    python benchmarks/cluster.py [--vertices 200000] [--json results/cluster.json] [--figure FILE.svg]

Streams of arrivals with five edges, 128 columns, in batches from a single arrival to 100,000 edges, through `Embedder`
with as many threads as there are cores and through `ShardedEmbedder` with 1, 2 and 4 shards on as many cores. What goes
from shard to shard is counted, and beside it the rows that no way of sharing could do without: those of other shards
that are read. `_cluster_model.py` says what follows from these figures, and those of `driver.py`, for many machines.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import ray
from _cluster_figure import save_figure
from _report import run

from ripplevec import Batch, Embedder
from ripplevec.cluster import ShardedEmbedder

DIM, EDGES, START = 128, 5, 20_000
SHARDS = (1, 2, 4)
BATCHES = {1: 40, 200: 20, 20_000: 6}  # arrivals in a batch, and how many such batches are timed
STORE = 1_000_000_000  # bytes of Ray's object store


def arrivals(first: int, last: int) -> Batch:
    """Vertices that come with edges to any of those before."""
    src = np.repeat(np.arange(first, last), EDGES)
    share = np.random.Generator(np.random.Philox(first)).random(src.size)
    return Batch.of(src, (share * src).astype(np.int64))


def grown(model: Embedder, vertices: int) -> Embedder:
    """A model of so many vertices."""
    model.fit(arrivals(1, START))
    for first in range(START, vertices, 20_000):
        model.partial_fit(arrivals(first, min(first + 20_000, vertices)))
    return model


def timed(model: Embedder, vertices: int) -> dict[int, float]:
    """Seconds of a batch, by the arrivals it has: the median, after one that is not counted."""
    found, place = {}, vertices
    for size, times in BATCHES.items():
        seconds = []
        for number in range(times + 1):
            batch, place = arrivals(place, place + size), place + size
            began = time.perf_counter()
            model.partial_fit(batch)
            if number:
                seconds.append(time.perf_counter() - began)
        found[size] = float(np.median(seconds))
    return found


def traffic(model: ShardedEmbedder) -> dict[str, int]:
    """What the shards have sent each other so far, and what of it were rows that had to be read."""
    parts = model.engine.query("traffic")
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def sharded(shards: int, vertices: int, alone: str) -> dict[str, float]:
    """The figures of one number of shards."""
    model = ShardedEmbedder(shards=shards, dim=DIM, anchor_growth=0)
    try:
        grown(model, vertices)
        before, first = traffic(model), model.engine.next_arrival
        seconds = timed(model, vertices)
        after, arrived = traffic(model), model.engine.next_arrival - first
        sent, needed = (after[name] - before[name] for name in ("sent", "needed"))
        return {
            **{f"seconds_{size}": value for size, value in seconds.items()},
            "bytes_per_arrival": sent / arrived,
            "needed_per_arrival": needed / arrived,
            "sent_over_needed": sent / needed if needed else 1.0,
            "same": float(model.digest() == alone),
        }
    finally:
        model.close()


def measure(vertices: int) -> dict[str, Any]:
    """One machine, then shards."""
    ray.init("local", num_cpus=os.cpu_count(), include_dashboard=False, object_store_memory=STORE, log_to_driver=False)
    single = grown(Embedder(dim=DIM, anchor_growth=0), vertices)
    seconds = timed(single, vertices)
    figures: dict[str, Any] = {"vertices": vertices, "cores": os.cpu_count()}
    figures |= {f"single_seconds_{size}": value for size, value in seconds.items()}
    for shards in SHARDS:
        found = sharded(shards, vertices, single.digest())
        found |= {f"of_single_{size}": seconds[size] / found[f"seconds_{size}"] for size in BATCHES}
        figures |= {f"shards_{shards}_{name}": value for name, value in found.items()}
    ray.shutdown()
    return figures


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 200_000, save_figure)
