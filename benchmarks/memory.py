"""Benchmark of the memory of a model with a million vertices and ten million edges, between and during anchors.

    python benchmarks/memory.py [--vertices 1000000] [--json FILE]

The graph is streamed in batches after a start on 1 % of it, and then corrected by `model.anchor()`. A second model,
with default parameters, starts with 57 % of the graph, and has a gradual anchor while the rest arrives, in batches of
1,000 edges: large batches also report many changed vectors at once. Memory is that of the process, in total and in
addition to what it used before.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import process_memory_mb, run_benchmark
from numpy.typing import NDArray

from ripplevec import Embedder

DIM, EDGES_PER_VERTEX, BATCH_SIZE, SMALL_BATCH_SIZE = 128, 10, 50_000, 1_000
GRADUAL_START = 0.57  # the default interval between anchors of such a graph is a growth by 70 %


def random_arrivals(first: int, stop: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return edges from the vertices first … stop−1 to earlier vertices chosen at random."""
    src = np.repeat(np.arange(max(first, 1), stop), EDGES_PER_VERTEX)
    return np.stack([src, (rng.random(src.size) * src).astype(np.int64)], axis=1)


def measure(vertices: int) -> dict[str, Any]:
    """Grow a model and measure the memory of the process."""
    rng, start = np.random.default_rng(0), vertices // 100
    warm_up = Embedder(dim=8, threads=1).fit(random_arrivals(0, 500, rng))
    warm_up.partial_fit(random_arrivals(500, 1000, rng))
    before = process_memory_mb("VmRSS")
    model = Embedder(dim=DIM, anchor_growth=0).fit(random_arrivals(0, start, rng))
    began, step = time.perf_counter(), BATCH_SIZE // EDGES_PER_VERTEX
    for first in range(start, vertices, step):
        model.partial_fit(random_arrivals(first, min(first + step, vertices), rng))
    stream_seconds = time.perf_counter() - began
    resident, stream_peak = process_memory_mb("VmRSS"), process_memory_mb("VmHWM")
    began = time.perf_counter()
    model.anchor()
    anchor_seconds = time.perf_counter() - began
    sizes = model.diagnostics()
    csr_bytes = sizes["edges"] * 2 * 8 + (vertices + 1) * 8
    metrics = {
        "vertices": sizes["vertices"],
        "edges": sizes["edges"],
        "resident_mb": resident,
        "resident_beyond_imports_mb": resident - before,
        "peak_without_anchor_mb": stream_peak,
        "peak_with_anchor_mb": process_memory_mb("VmHWM"),
        "adjacency_over_csr": model._engine.graph.adjacency.nbytes / csr_bytes,
        "stream_seconds": stream_seconds,
        "anchor_seconds": anchor_seconds,
    }
    del model
    return metrics | measure_gradual_anchor(vertices, rng)


def measure_gradual_anchor(vertices: int, rng: np.random.Generator) -> dict[str, float]:
    """Grow a model to this size with a gradual anchor; measure the memory before that begins, and the peak."""
    start, step = int(GRADUAL_START * vertices), SMALL_BATCH_SIZE // EDGES_PER_VERTEX
    model = Embedder(dim=DIM).fit(random_arrivals(0, start, rng))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here on, without the start
    before = 0.0
    for first in range(start, vertices, step):
        if model._engine.correction is None and not model._engine.anchors:
            before = process_memory_mb("VmRSS")
        model.partial_fit(random_arrivals(first, min(first + step, vertices), rng))
    assert model.diagnostics()["anchors"] > 0
    return {"before_gradual_anchor_mb": before, "peak_with_gradual_anchor_mb": process_memory_mb("VmHWM")}


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 1_000_000)
