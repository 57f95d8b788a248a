"""The worst that a stream can do: a hub with a million leaves that everybody joins, and a burst of a million edges.

The star shows whether an arrival has a bound, whatever it touches (`max_reads`); the burst, every vertex of one side
to every vertex of the other in batches of 1,000, whether readers of vectors are kept waiting meanwhile.

    python benchmarks/worst.py [--leaves 1043576] [--json FILE]

By default there are so many leaves that the hub's list of neighbors is full, and moves, half-way through the arrivals.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from _report import run

from ripplevec import Embedder

DIM, ARRIVALS, AT_ONCE, SIDE = 128, 10_000, 1_000, 1_000
READ_EVERY = 0.001  # seconds


def star(leaves: int) -> dict[str, float]:
    """Arrivals on the center of a star, each with one more edge to a leaf: milliseconds each."""
    model = Embedder(dim=DIM, anchor_growth=0, start_size=2 * DIM)
    spokes = np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)], axis=1)
    model.fit(spokes[: leaves // 100])
    for first in range(leaves // 100, leaves, 10_000):
        model.partial_fit(spokes[first : first + 10_000])
    taken = []
    for number in range(ARRIVALS + 100):
        began = time.perf_counter()
        model.add_vertex(leaves + 1 + number, [0, 1 + number])
        taken.append(time.perf_counter() - began)
    p50, p99, p999, most = np.percentile(taken[100:], [50, 99, 99.9, 100]) * 1e3
    return {"star_p50_ms": p50, "star_p99_ms": p99, "star_p999_ms": p999, "star_longest_ms": most}


def burst(side: int) -> dict[str, float]:
    """Every vertex of one side joined to every one of the other, while vectors are read: milliseconds of a read."""
    grown = np.random.default_rng(0).integers(0, 100_000, (500_000, 2))
    model = Embedder(dim=DIM, anchor_growth=0).fit(grown[grown[:, 0] != grown[:, 1]])
    pairs = np.stack(np.meshgrid(np.arange(side), 200_000 + np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    taken, over = [], threading.Event()

    def read() -> None:
        while not over.is_set():
            began = time.perf_counter()
            model[5]
            taken.append(time.perf_counter() - began)
            time.sleep(READ_EVERY)

    model.partial_fit(pairs[:10])
    reader = threading.Thread(target=read)
    reader.start()
    began = time.perf_counter()
    try:
        for first in range(0, len(pairs), AT_ONCE):
            model.partial_fit(pairs[first : first + AT_ONCE])
        spent = time.perf_counter() - began
    finally:
        over.set()
        reader.join()
    p50, p99, most = np.percentile(taken, [50, 99, 100]) * 1e3
    return {
        "burst_edges_per_second": len(pairs) / spent,
        "burst_read_p50_ms": p50,
        "burst_read_p99_ms": p99,
        "burst_read_longest_ms": most,
        "burst_batch_ms": 1e3 * spent / (len(pairs) / AT_ONCE),
    }


def measure(leaves: int) -> dict[str, Any]:
    """All figures, in one run."""
    star(20_000)  # compiles
    return {"leaves": leaves, **star(leaves), **burst(SIDE)}


if __name__ == "__main__":
    run(__doc__, measure, "leaves", 2**20 - ARRIVALS // 2)
