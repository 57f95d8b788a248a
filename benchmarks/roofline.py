"""How close the engine comes to what the memory can deliver.

A random growing graph is streamed, five edges an arrival, until graph and vectors are far larger than any cache. Of
the last part of the stream the rows of vectors that had to be read and written are counted, and the bytes per second
are compared with two loops that do nothing else, over the same arrays in the same run: a bare gather-average, which
reads the very same rows in the same order from a list, and a copy. An anchor is looked at in the same way.

    python benchmarks/roofline.py --vertices 2000000 --json results/roofline.json
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplet import Embedder
from ripplet.engine import Engine
from ripplet.events import Batch
from ripplet.rules._kernels import widen

DIM, DEGREE, START, AT_ONCE = 128, 5, 10_000, 10_000
MEASURED = 0.1  # of the stream, its end
REPEATS = 3


def growing_edges(vertices: int, seed: int = 0) -> NDArray[np.int64]:
    """Every vertex comes with five edges to earlier ones chosen at random: nothing is near anything in memory."""
    src = np.repeat(np.arange(1, vertices), DEGREE)
    dst = (np.random.default_rng(seed).random(src.size) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


@njit(cache=True, nogil=True)
def gather_average(vectors: Any, read: Any, ends: Any, out: Any) -> None:
    """The means of some rows: of read[0:ends[0]], read[ends[0]:ends[1]], …"""
    total = np.empty(vectors.shape[1], np.float32)
    row = np.empty(vectors.shape[1], np.float32)
    first = 0
    for i in range(ends.size):
        total[:] = 0
        for place in range(first, ends[i]):
            widen(vectors, read[place], row)
            for j in range(total.size):
                total[j] += row[j]
        over = np.float32(1.0 / max(ends[i] - first, 1))
        for j in range(total.size):
            out[i % len(out), j] = total[j] * over
        first = ends[i]


def seconds(work: Callable[[], Any]) -> float:
    """The least of a few timings."""
    times = []
    for _ in range(REPEATS):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def rows_read(engine: Engine, moved: NDArray[np.int64], first_new: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What a batch had to read: the earlier neighbours of newcomers, then all neighbours of whatever was refreshed."""
    links, arrival = engine.graph.adjacency.links, engine.graph.arrival
    new = moved[arrival[moved] >= first_new]
    parts, counts = [], []
    for rows, earlier in ((new, True), (moved, False)):
        read, count = links.neighbour[engine.graph.adjacency.slots(rows)], links.count[rows].astype(np.int64)
        if earlier:
            owner = np.repeat(np.arange(rows.size), count)
            kept = arrival[read] < arrival[rows][owner]
            read, count = read[kept], np.bincount(owner[kept], minlength=rows.size)
        parts.append(read)
        counts.append(count)
    return np.concatenate(parts).astype(np.int64), np.concatenate(counts)


def stream(vertices: int, **parameters: Any) -> tuple[dict[str, float], Embedder]:
    """Stream a graph; what its end cost, and what it read."""
    edges = growing_edges(vertices)
    first = START * DEGREE
    model = Embedder(dim=DIM, anchor_growth=0, **parameters).fit(edges[:first])
    engine, measured = model._engine, int(len(edges) * (1 - MEASURED))
    spent, arrivals, reads, counts = 0.0, 0, [], []
    for place in range(first, len(edges), AT_ONCE * DEGREE):
        batch = Batch.from_any(edges[place : place + AT_ONCE * DEGREE])
        began = time.thread_time()
        outcome = engine.apply(batch)
        took = time.thread_time() - began
        if place >= measured:
            spent += took
            arrivals += len(batch) // DEGREE
            read, count = rows_read(engine, outcome.moved, outcome.first_new)
            reads.append(read)
            counts.append(count)
    read, count = np.concatenate(reads), np.concatenate(counts)
    out, ends = np.empty((1024, DIM), np.float32), np.cumsum(count)
    cells = engine.field.cells
    gather_average(cells, read[:10], ends[:1], out)
    bare = seconds(lambda: gather_average(cells, read, ends, out))
    row = engine.field.vectors[:1].nbytes
    half = len(engine.field.vectors) // 2
    copied = seconds(lambda: np.copyto(engine.field.vectors[:half], engine.field.vectors[half : 2 * half]))
    found = {
        "edges_per_second": arrivals * DEGREE / spent,
        "us_per_arrival": 1e6 * spent / arrivals,
        "rows_read_per_arrival": read.size / arrivals,
        "rows_written_per_arrival": count.size / arrivals,
        "gigabytes_per_second": read.size * row / spent / 1e9,
        "bare_gigabytes_per_second": read.size * row / bare / 1e9,
        "copy_gigabytes_per_second": 2 * half * row / copied / 1e9,
        "share_of_bare": bare / spent,
    }
    return found, model


def main() -> None:
    """Print, and write a record if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"vertices": options.vertices, "dim": DIM}
    for name, parameters in {
        "one_thread": {"threads": 1},
    }.items():
        record[name], _ = stream(options.vertices, **parameters)
        for figure, value in record[name].items():
            print(f"{name:16} {figure:28} {value:14,.3f}", flush=True)


if __name__ == "__main__":
    main()
