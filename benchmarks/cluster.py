"""Benchmark of models on shards against a model without shards, all on this machine: the cost of distribution.

    python benchmarks/cluster.py [--vertices 200000] [--json results/cluster.json] [--figure FILE.svg]

Streams of arrivals with five edges and 128 columns, in batches from a single arrival to 100,000 edges, are applied to
`Embedder` with one thread per core and to `ShardedEmbedder` with 1, 2, 4 and 8 shards on the same cores. For each size
of batches, the median of the elapsed time is recorded, and that of the processor time of the driver and of all shards
together. Their ratio to that of `Embedder` (`processor_of_single`) depends less on the load of the machine than elapsed
time: it is the share of the throughput that shards would reach if they never waited for each other. The bytes sent
between shards are counted, and so is the necessary part of them: the remote rows that are read. `_cluster_model.py`
extrapolates these metrics, and those of `cluster_messages.py`, to many machines. `load` is the median load average of
the machine, which other programs and this benchmark cause: with more than its cores, elapsed times say little.
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
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.cluster import ShardedEmbedder
from ripplevec.util.parallel import resolve_threads

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


def time_batches(model: Embedder, vertices: int) -> dict[str, float]:
    """Return, by number of arrivals, medians of the seconds of a batch; the first batch is not counted.

    These are the elapsed seconds, and the processor time of this process (the driver) and of the shards, if any.
    """
    results, next_vertex, shards = {}, vertices, find_shard_processes(model)
    for size, times in BATCHES.items():
        seconds = []
        for _ in range(times + 1):
            batch, next_vertex = make_arrivals(next_vertex, next_vertex + size), next_vertex + size
            before = read_clocks(shards)
            model.partial_fit(batch)
            seconds.append(read_clocks(shards) - before)
        for name, value in zip(("seconds", "driver", "processor"), np.median(seconds[1:], axis=0), strict=True):
            results[f"{name}_{size}"] = float(value)
    return results


def find_shard_processes(model: Embedder) -> list[int]:
    """Return the process numbers of the shards, if any."""
    if not isinstance(model, ShardedEmbedder) or model._actors is None:
        return []
    return ray.get([actor.__ray_call__.remote(lambda _: os.getpid()) for actor in model._actors.handles])


def read_clocks(shards: list[int]) -> NDArray[np.float64]:
    """Return the clock of this machine, and the processor time of this process and of the processes of shards.

    The kernel is asked, and not the shards: their answers would take as much processor time as a small batch.
    """
    return np.array([time.perf_counter(), time.process_time(), sum(map(read_process_time, shards))])


def read_process_time(process: int) -> float:
    """Return the processor time of a process of this machine, as Linux encodes it in the number of a clock."""
    return time.clock_gettime((~process << 3) | 2)


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
            **seconds,
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
    seconds, loads = time_batches(single, vertices), [os.getloadavg()[0]]
    metrics: dict[str, Any] = {"vertices": vertices, "cores": resolve_threads(None)}
    metrics |= {f"single_{name}": value for name, value in seconds.items() if not name.startswith("processor")}
    for shards in SHARDS:
        results = measure_shards(shards, vertices, single.digest())
        for size in BATCHES:
            results[f"of_single_{size}"] = seconds[f"seconds_{size}"] / results[f"seconds_{size}"]
            processor = results[f"driver_{size}"] + results[f"processor_{size}"]
            results[f"processor_of_single_{size}"] = seconds[f"driver_{size}"] / processor
        metrics |= {f"shards_{shards}_{name}": value for name, value in results.items()}
        loads.append(os.getloadavg()[0])
    ray.shutdown()
    return metrics | {"load": float(np.median(loads))}


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 200_000, save_figure)
