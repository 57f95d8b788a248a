"""Benchmark of one anchor on a GPU compared with all CPU cores: seconds, and the difference of the results.

    python benchmarks/anchor_gpu.py [--vertices 10000000] [--json FILE]

The graph and the rows are those of benchmarks/anchor.py. Seconds on the GPU include the transfer of the graph and of
the rows in both directions. Without a GPU nothing is measured.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
from _anchors import compute_anchor, grow_graph
from _report import run_benchmark
from numpy.typing import NDArray

from ripplevec.errors import RipplevecError
from ripplevec.util.parallel import resolve_threads
from ripplevec.views.base import Basis
from ripplevec.views.gpu import usable_cupy

SAMPLED_VERTICES = 4_000


def inner_products(basis: Basis) -> NDArray[Any]:
    """Return the inner products between sampled vertices, which do not depend on a rotation of the columns."""
    rows = basis.rows[:: max(len(basis.rows) // SAMPLED_VERTICES, 1)].astype(np.float64)
    return rows @ rows.T


def relative_difference(left: list[NDArray[Any]], right: list[NDArray[Any]]) -> float:
    """Return the largest difference, relative to the largest entry."""
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(left, right, strict=True))


def measure(vertices: int) -> dict[str, Any]:
    """Compute the same anchor twice on the CPU and twice on the GPU."""
    threads = resolve_threads(None)
    for device in ("cpu", "cuda"):
        compute_anchor(grow_graph(1_000, threads), threads, device)  # compiles
    grown = grow_graph(vertices, threads)
    cpu, cpu_seconds = min((compute_anchor(grown, threads) for _ in range(2)), key=itemgetter(1))
    (gpu, first), (repeated, second) = (compute_anchor(grown, threads, "cuda") for _ in range(2))
    gpu_seconds = min(first, second)
    same = all(a.rows.tobytes() == b.rows.tobytes() for a, b in zip(gpu, repeated, strict=True))
    return {
        "vertices": vertices,
        "edges": grown.adjacency.edge_count,
        "threads": threads,
        "cpu_seconds": cpu_seconds,
        "gpu_seconds": gpu_seconds,
        "cpu_over_gpu": cpu_seconds / gpu_seconds,
        "values_apart": relative_difference([basis.mu for basis in cpu], [basis.mu for basis in gpu]),
        "inner_products_apart": relative_difference(
            [inner_products(basis) for basis in cpu], [inner_products(basis) for basis in gpu]
        ),
        "same_bits_twice": float(same),
    }


if __name__ == "__main__":
    try:
        usable_cupy()
    except RipplevecError as reason:
        print(f"skipped: {reason}")
    else:
        run_benchmark(__doc__, measure, "vertices", 10_000_000)
