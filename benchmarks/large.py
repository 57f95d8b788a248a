"""Benchmark of ten million vertices and a hundred million edges on one machine: time, memory, and cost per edge.

Graphs with text ids and weights are generated while they are streamed. The first tenth is the start; the rest is
streamed in batches, for which time and memory are measured separately; an anchor follows. A graph of a hundredth of
the size is streamed first, to compare the cost per edge.

    python benchmarks/large.py --edges 100000000 --storage float16 --json results/large.json
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

from _graph_generators import GRAPHS, EdgeGenerator, generate_batches
from _report import process_memory_mb, reset_peak_memory, write_record

from ripplevec import Batch, Embedder

DIM, BATCH_SIZE, START_SHARE = 128, 50_000, 0.1
PROGRESS_SECONDS = 10


def process_memory_gib(field: str) -> float:
    """Return the memory of this process in GiB."""
    return process_memory_mb(field) / 1024


def generate_one_batch(generate: EdgeGenerator, edges: int) -> Batch:
    """Return the first edges as one batch."""
    (batch,) = generate_batches(generate, 0, edges, edges)
    return batch


def stream(graph: str, edges: int, **parameters: Any) -> tuple[dict[str, float], Embedder]:
    """Measure a start and a stream: seconds, memory, and microseconds per edge in the last tenth."""
    generate, first = GRAPHS[graph](edges), int(edges * START_SHARE)
    batch_size = min(BATCH_SIZE, edges // 20)
    model = Embedder(dim=DIM, anchor_growth=0, **parameters)
    reset_peak_memory()
    began = time.perf_counter()
    model.fit(generate_one_batch(generate, first))
    metrics = {"start_seconds": time.perf_counter() - began, "start_peak_gib": process_memory_gib("VmHWM")}
    reset_peak_memory()
    total_seconds = late_seconds = 0.0
    last_shown = time.perf_counter()
    for number, batch in enumerate(generate_batches(generate, first, edges, batch_size)):
        began = time.perf_counter()
        model.partial_fit(batch)
        batch_seconds = time.perf_counter() - began
        total_seconds += batch_seconds
        late_seconds += batch_seconds if first + number * batch_size >= 0.9 * edges else 0.0
        if time.perf_counter() - last_shown > PROGRESS_SECONDS:
            last_shown = time.perf_counter()
            print(
                f"  {graph}: {len(model):,} vertices, {total_seconds:.0f} s, {process_memory_gib('VmRSS'):.2f} GiB",
                flush=True,
            )
    metrics |= {
        "vertices": len(model),
        "edges": model.diagnostics()["edges"],
        "stream_seconds": total_seconds,
        "edges_per_second": (edges - first) / total_seconds,
        "resident_gib": process_memory_gib("VmRSS"),
        "stream_peak_gib": process_memory_gib("VmHWM"),
        "us_per_edge_at_the_end": 1e6 * late_seconds / (edges * 0.1),
    }
    return metrics, model


def measure(graph: str, edges: int, **parameters: Any) -> dict[str, float]:
    """Stream a small and a large graph of one kind, and anchor the large one."""
    small = stream(graph, edges // 100, **parameters)[0]
    metrics, model = stream(graph, edges, **parameters)
    reset_peak_memory()
    began = time.perf_counter()
    model.anchor()
    return metrics | {
        "us_per_edge_at_a_hundredth": small["us_per_edge_at_the_end"],
        "cost_over_a_hundredth": metrics["us_per_edge_at_the_end"] / small["us_per_edge_at_the_end"],
        "anchor_seconds": time.perf_counter() - began,
        "anchor_peak_gib": process_memory_gib("VmHWM"),
    }


def main() -> None:
    """Measure the graphs, print the metrics, and write a record if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--graph", choices=[*GRAPHS, "both"], default="both")
    parser.add_argument("--storage", choices=["float32", "float16"], default="float16")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"dim": DIM, "storage": options.storage}
    for graph in GRAPHS if options.graph == "both" else [options.graph]:
        gc.collect()  # otherwise the memory of the previous graph would count
        record[graph] = measure(graph, options.edges, storage=options.storage, threads=options.threads)
        for name, value in record[graph].items():
            print(f"{graph:14} {name:28} {value:16,.3f}", flush=True)
        if options.json:
            write_record(options.json, record)


if __name__ == "__main__":
    main()
