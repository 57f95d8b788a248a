"""Benchmark of models on shards against a model without shards, all on this machine: the cost of distribution.

    python benchmarks/cluster.py [--vertices 200000] [--json results/cluster.json] [--figure FILE.svg]

Streams of arrivals with five edges and 128 columns, in batches from a single arrival to 100,000 edges, are applied to
`Embedder` with one thread per core and to `ShardedEmbedder` with 1, 2, 4 and 8 shards on the same cores. The bytes sent
between shards are counted, and so is the necessary part of them: the remote rows that are read. `_cluster_model.py`
extrapolates these metrics, and those of `cluster_messages.py`, to many machines.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import ray
from _cluster_figure import save_figure
from _graph_generators import make_arrivals
from _report import run_benchmark

from ripplevec import Embedder
from ripplevec.cluster import ShardedEmbedder

DIM, START = 128, 20_000
SHARDS = (1, 2, 4, 8)
BATCHES = {1: 40, 200: 20, 20_000: 6}  # arrivals in a batch, and the number of such batches that are timed
STORE = 1_000_000_000  # bytes of Ray's object store


def grow_model(model: Embedder, vertices: int) -> Embedder:
    """Grow a model to a number of vertices."""
    model.fit(make_arrivals(1, START))
    for first in range(START, vertices, 20_000):
        model.partial_fit(make_arrivals(first, min(first + 20_000, vertices)))
    return model


def time_batches(model: Embedder, vertices: int) -> dict[int, float]:
    """Return the median seconds of a batch by its number of arrivals; the first batch is not counted."""
    results, next_vertex = {}, vertices
    for size, times in BATCHES.items():
        seconds = []
        for number in range(times + 1):
            batch, next_vertex = make_arrivals(next_vertex, next_vertex + size), next_vertex + size
            began = time.perf_counter()
            model.partial_fit(batch)
            if number:
                seconds.append(time.perf_counter() - began)
        results[size] = float(np.median(seconds))
    return results


def count_traffic(model: ShardedEmbedder) -> dict[str, int]:
    """Return the bytes that shards have sent each other so far, and those of rows that had to be read."""
    parts = model.engine.query("traffic")  # type: ignore[attr-defined]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def measure_shards(shards: int, vertices: int, expected_digest: str) -> dict[str, float]:
    """Measure one number of shards."""
    model = ShardedEmbedder(shards=shards, dim=DIM, anchor_growth=0)
    try:
        grow_model(model, vertices)
        before, first = count_traffic(model), model.engine.next_arrival
        seconds = time_batches(model, vertices)
        after, arrived = count_traffic(model), model.engine.next_arrival - first
        sent, needed = (after[name] - before[name] for name in ("sent", "needed"))
        return {
            **{f"seconds_{size}": value for size, value in seconds.items()},
            "bytes_per_arrival": sent / arrived,
            "needed_per_arrival": needed / arrived,
            "sent_over_needed": sent / needed if needed else 1.0,
            "same": float(model.digest() == expected_digest),
        }
    finally:
        model.close()


def measure(vertices: int) -> dict[str, Any]:
    """Measure one machine without shards, then shards."""
    ray.init("local", num_cpus=os.cpu_count(), include_dashboard=False, object_store_memory=STORE, log_to_driver=False)
    single = grow_model(Embedder(dim=DIM, anchor_growth=0), vertices)
    seconds = time_batches(single, vertices)
    metrics: dict[str, Any] = {"vertices": vertices, "cores": os.cpu_count()}
    metrics |= {f"single_seconds_{size}": value for size, value in seconds.items()}
    for shards in SHARDS:
        results = measure_shards(shards, vertices, single.digest())
        results |= {f"of_single_{size}": seconds[size] / results[f"seconds_{size}"] for size in BATCHES}
        metrics |= {f"shards_{shards}_{name}": value for name, value in results.items()}
    ray.shutdown()
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 200_000, save_figure)
