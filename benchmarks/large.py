"""Ten million vertices and a hundred million edges on one machine: time, memory, and whether the cost stays flat.

Graphs are made up while they are streamed, with text ids and weights. The first tenth is the start; the rest is
streamed in batches, its time and memory on their own; then comes an anchor. A graph of a hundredth of the size is
streamed first, to compare the cost of an edge with.

    python benchmarks/large.py --edges 100000000 --storage float16 --json results/large.json
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

from _generated import GRAPHS, batches
from _memory import forget, memory
from _report import write

from ripplevec import Batch, Embedder

DIM, AT_ONCE, START = 128, 50_000, 0.1


def gib(what: str) -> float:
    """Memory in GiB."""
    return memory(what) / 1024


def all_of(make: Any, last: int) -> Batch:
    """Edges as one batch."""
    (batch,) = batches(make, 0, last, last)
    return batch


def stream(graph: str, edges: int, **parameters: Any) -> tuple[dict[str, float], Embedder]:
    """A start and a stream; seconds, memory, and the microseconds of an edge in the last tenth."""
    make, first, at_once = GRAPHS[graph](edges), int(edges * START), min(AT_ONCE, edges // 20)
    model = Embedder(dim=DIM, anchor_growth=0, **parameters)
    forget()
    began = time.perf_counter()
    model.fit(all_of(make, first))
    found = {"start_seconds": time.perf_counter() - began, "start_peak_gib": gib("VmHWM")}
    forget()
    spent = late = 0.0
    shown = time.perf_counter()
    for number, batch in enumerate(batches(make, first, edges, at_once)):
        began = time.perf_counter()
        model.partial_fit(batch)
        took = time.perf_counter() - began
        spent += took
        late += took if first + number * at_once >= 0.9 * edges else 0.0
        if time.perf_counter() - shown > 10:
            shown = time.perf_counter()
            print(f"  {graph}: {len(model):,} vertices, {spent:.0f} s, {gib('VmRSS'):.2f} GiB", flush=True)
    found |= {
        "vertices": len(model),
        "edges": model.diagnostics()["edges"],
        "stream_seconds": spent,
        "edges_per_second": (edges - first) / spent,
        "resident_gib": gib("VmRSS"),
        "stream_peak_gib": gib("VmHWM"),
        "us_per_edge_at_the_end": 1e6 * late / (edges * 0.1),
    }
    return found, model


def measure(graph: str, edges: int, **parameters: Any) -> dict[str, float]:
    """One graph, small and large, and an anchor of the large one."""
    small = stream(graph, edges // 100, **parameters)[0]
    found, model = stream(graph, edges, **parameters)
    forget()
    began = time.perf_counter()
    model.anchor()
    return found | {
        "us_per_edge_at_a_hundredth": small["us_per_edge_at_the_end"],
        "cost_over_a_hundredth": found["us_per_edge_at_the_end"] / small["us_per_edge_at_the_end"],
        "anchor_seconds": time.perf_counter() - began,
        "anchor_peak_gib": gib("VmHWM"),
    }


def main() -> None:
    """Print, and write a record if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--graph", choices=[*GRAPHS, "both"], default="both")
    parser.add_argument("--storage", choices=["float32", "float16"], default="float16")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"dim": DIM, "storage": options.storage}
    for graph in GRAPHS if options.graph == "both" else [options.graph]:
        gc.collect()  # or the memory of the graph before would count
        record[graph] = measure(graph, options.edges, storage=options.storage, threads=options.threads)
        for name, value in record[graph].items():
            print(f"{graph:14} {name:28} {value:16,.3f}", flush=True)
        if options.json:
            write(options.json, record)


if __name__ == "__main__":
    main()
