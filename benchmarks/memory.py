"""What a model of a million vertices and ten million edges takes: bytes resident between anchors, and at an anchor.

    python benchmarks/memory.py [--vertices 1000000] [--json FILE]

The graph is streamed in bulk from a start of 1 % of it; memory is what the process holds beyond what it held before.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _memory import memory
from _report import run
from numpy.typing import NDArray

from ripplevec import Embedder

DIM, EDGES, BATCH = 128, 10, 50_000


def arrivals(first: int, last: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The edges of vertices first … last−1, to earlier vertices chosen at random."""
    src = np.repeat(np.arange(max(first, 1), last), EDGES)
    return np.stack([src, (rng.random(src.size) * src).astype(np.int64)], axis=1)


def measure(vertices: int) -> dict[str, Any]:
    """Grow a model and look at the process."""
    rng, start = np.random.default_rng(0), vertices // 100
    warm = Embedder(dim=8, threads=1).fit(arrivals(0, 500, rng))
    warm.partial_fit(arrivals(500, 1000, rng))
    before = memory("VmRSS")
    model = Embedder(dim=DIM, anchor_growth=0).fit(arrivals(0, start, rng))
    began, step = time.perf_counter(), BATCH // EDGES
    for first in range(start, vertices, step):
        model.partial_fit(arrivals(first, min(first + step, vertices), rng))
    streamed, grown, most = time.perf_counter() - began, memory("VmRSS"), memory("VmHWM")
    began = time.perf_counter()
    model.anchor()
    anchored = time.perf_counter() - began
    sizes = model.diagnostics()
    csr = sizes["edges"] * 2 * 8 + (vertices + 1) * 8
    return {
        "vertices": sizes["vertices"],
        "edges": sizes["edges"],
        "resident_mb": grown,
        "resident_beyond_imports_mb": grown - before,
        "peak_without_anchor_mb": most,
        "peak_with_anchor_mb": memory("VmHWM"),
        "adjacency_over_csr": model._engine.graph.adjacency.nbytes / csr,
        "stream_seconds": streamed,
        "anchor_seconds": anchored,
    }


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 1_000_000)
