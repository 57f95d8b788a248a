"""Benchmark of one anchor on a large graph: seconds on one and two threads, memory, and the quality of the result.

    python benchmarks/anchor.py [--vertices 1000000] [--json FILE]

The graph has ten edges per vertex; the embedding has 128 columns and the two views of a dense graph. The first anchor
corrects a graph that has grown a hundredfold since its start, far more than between the anchors of a stream. The
quality of an anchor is the sum of its Ritz values, relative to that after further anchors.
"""

from __future__ import annotations

from typing import Any

from _anchors import compute_anchor, grow_graph
from _report import process_memory_mb, reset_peak_memory, run_benchmark

from ripplevec.views.base import Basis

FURTHER_ANCHORS = 2  # enough to converge


def sum_ritz_values(bases: list[Basis]) -> float:
    """Return the sum of the Ritz values of all views."""
    return sum(float(basis.mu.sum()) for basis in bases)


def measure(vertices: int) -> dict[str, Any]:
    """Grow a graph, compute an anchor, then the next one on one and on two threads."""
    compute_anchor(grow_graph(1_000, 2), 2)  # compiles
    grown = grow_graph(vertices, 2)
    state_mb = process_memory_mb("VmRSS")
    reset_peak_memory()
    bases, first_seconds = compute_anchor(grown, 2)
    ritz_sums, additional_mb = [sum_ritz_values(bases)], process_memory_mb("VmHWM") - state_mb
    grown = grown.with_bases(bases)
    bases.clear()
    (bases, one_thread), (repeated, two_threads) = compute_anchor(grown, 1), compute_anchor(grown, 2)
    same = all(a.rows.tobytes() == b.rows.tobytes() for a, b in zip(bases, repeated, strict=True))
    repeated.clear()
    for _ in range(FURTHER_ANCHORS):
        ritz_sums.append(sum_ritz_values(bases))
        grown = grown.with_bases(bases)
        bases.clear()
        bases, _ = compute_anchor(grown, 2)
    converged = sum_ritz_values(bases)
    return {
        "vertices": vertices,
        "edges": grown.adjacency.edge_count,
        "first_seconds": first_seconds,
        "one_thread_seconds": one_thread,
        "two_threads_seconds": two_threads,
        "two_over_one": one_thread / two_threads,
        "same_bits": float(same),
        "state_mb": state_mb,
        "beside_the_state_mb": additional_mb,
        "found_by_the_first": ritz_sums[0] / converged,
        "found_by_the_second": ritz_sums[1] / converged,
    }


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 1_000_000)
