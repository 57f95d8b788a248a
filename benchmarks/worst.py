"""Benchmark of the worst cases of a stream: arrivals at a hub with a million leaves, and a burst of a million edges.

The star tests whether the cost of an arrival is bounded regardless of its neighbors (`max_reads`). The burst, which
connects each of 1,000 known vertices with each of 1,000 new ones in batches of 1,000 edges, tests whether writes delay
reads of vectors.

    python benchmarks/worst.py [--leaves 1043576] [--json FILE]

The default number of leaves is such that the neighbor list of the hub becomes full, and is moved, halfway through the
arrivals.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from _report import run_benchmark

from ripplevec import Embedder

DIM, ARRIVALS, BATCH_SIZE, SIDE = 128, 10_000, 1_000, 1_000
WARM_UP_ARRIVALS, STAR_BATCH_SIZE = 100, 10_000
READ_INTERVAL_SECONDS = 0.001


def measure_star(leaves: int) -> dict[str, float]:
    """Measure arrivals with an edge to the center of a star and one to a leaf, in milliseconds."""
    model = Embedder(dim=DIM, anchor_growth=0, start_size=2 * DIM)
    spokes = np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)], axis=1)
    model.fit(spokes[: leaves // 100])
    for first in range(leaves // 100, leaves, STAR_BATCH_SIZE):
        model.partial_fit(spokes[first : first + STAR_BATCH_SIZE])
    seconds = []
    for number in range(ARRIVALS + WARM_UP_ARRIVALS):
        began = time.perf_counter()
        model.add_vertex(leaves + 1 + number, [0, 1 + number])
        seconds.append(time.perf_counter() - began)
    p50, p99, p999, longest = np.percentile(seconds[WARM_UP_ARRIVALS:], [50, 99, 99.9, 100]) * 1e3
    return {"star_p50_ms": p50, "star_p99_ms": p99, "star_p999_ms": p999, "star_longest_ms": longest}


def measure_burst(side: int) -> dict[str, float]:
    """Measure reads, in milliseconds, while each of `side` known vertices is connected with each of `side` new ones."""
    edges = np.random.default_rng(0).integers(0, 100_000, (500_000, 2))
    model = Embedder(dim=DIM, anchor_growth=0).fit(edges[edges[:, 0] != edges[:, 1]])
    pairs = np.stack(np.meshgrid(np.arange(side), 200_000 + np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    read_seconds, done = [], threading.Event()

    def read_repeatedly() -> None:
        while not done.is_set():
            began = time.perf_counter()
            model[5]
            read_seconds.append(time.perf_counter() - began)
            time.sleep(READ_INTERVAL_SECONDS)

    model.partial_fit(pairs[:10])
    reader = threading.Thread(target=read_repeatedly)
    reader.start()
    began = time.perf_counter()
    try:
        for first in range(0, len(pairs), BATCH_SIZE):
            model.partial_fit(pairs[first : first + BATCH_SIZE])
        burst_seconds = time.perf_counter() - began
    finally:
        done.set()
        reader.join()
    p50, p99, longest = np.percentile(read_seconds, [50, 99, 100]) * 1e3
    return {
        "burst_edges_per_second": len(pairs) / burst_seconds,
        "burst_read_p50_ms": p50,
        "burst_read_p99_ms": p99,
        "burst_read_longest_ms": longest,
        "burst_batch_ms": 1e3 * burst_seconds / (len(pairs) / BATCH_SIZE),
    }


def measure(leaves: int) -> dict[str, Any]:
    """Measure everything in one run."""
    measure_star(20_000)  # compiles
    return {"leaves": leaves, **measure_star(leaves), **measure_burst(SIDE)}


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "leaves", 2**20 - ARRIVALS // 2)
