"""Benchmark of a start on large graphs: its cost in anchors, how the cost grows, its memory and its Ritz sums.

    python benchmarks/start.py [--vertices 1000000] [--json FILE]

Graphs have five edges per vertex and 128 columns: one with communities, one of preferential attachment, which has no
structure to find. Each is measured at a tenth of the size, at a third and at full size. Costs are processor seconds,
which depend little on other processes. The reference is the solver that iterates until the eigenvalue sum converges.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from _graph_generators import EDGES_PER_VERTEX, preferential_generator
from _report import process_memory_mb, reset_peak_memory, run_benchmark
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency
from ripplevec.util.parallel import limit_blas_to_one_thread, resolve_threads
from ripplevec.views.recipes import RECIPES
from ripplevec.views.solvers import solve_leading_eigenpairs

DIM, EDGES, COMMUNITIES, INSIDE = 128, 5, 200, 0.7  # edges per vertex; share of edges inside a community
SIZES = (0.1, 0.3, 1.0)


def community_edges(vertices: int) -> NDArray[np.int64]:
    """Return edges of which most connect vertices of the same community: equal remainder by their number."""
    draw, src = np.random.default_rng(0), np.repeat(np.arange(vertices), EDGES)
    inside = draw.random(src.size) < INSIDE
    same = src % COMMUNITIES + COMMUNITIES * draw.integers(0, vertices // COMMUNITIES, src.size)
    return np.stack([src, np.where(inside, same, draw.integers(0, vertices, src.size))], axis=1)


def preferential_edges(vertices: int) -> NDArray[np.int64]:
    """Return the first edges of each vertex under preferential attachment."""
    ends = np.stack(preferential_generator(0)(0, (vertices - 1) * EDGES_PER_VERTEX), axis=1)
    return ends[np.arange(len(ends)) % EDGES_PER_VERTEX < EDGES]


GRAPHS: dict[str, Callable[[int], NDArray[np.int64]]] = {
    "communities": community_edges,
    "preferential": preferential_edges,
}


def build_graph(pairs: NDArray[np.int64], vertices: int) -> Adjacency:
    """Return a graph of these edges without self-loops."""
    adjacency, pairs = Adjacency(), pairs[pairs[:, 0] != pairs[:, 1]]
    adjacency.ensure_rows(vertices)
    adjacency.apply(np.zeros(len(pairs), np.int8), pairs, np.ones(len(pairs), np.float32))
    return adjacency


def measure_cost(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return a result, the processor seconds it took, and the megabytes it needed beside the state."""
    gc.collect()
    before = process_memory_mb("VmRSS")
    reset_peak_memory()
    began = process_time()
    result = function()
    return result, process_time() - began, process_memory_mb("VmHWM") - before


def measure_graph(adjacency: Adjacency, vertices: int) -> dict[str, float]:
    """Measure a start, an anchor after it and the reference solver on one graph."""
    threads, (view,) = resolve_threads(None), RECIPES["sparse"]
    basis, start, start_mb = measure_cost(lambda: view.start(adjacency, vertices, DIM, threads=threads))
    found, mu = float(basis.mu.sum()), basis.mu
    _, anchor, _ = measure_cost(lambda: view.anchor(adjacency, basis.rows, mu, seed=0, threads=threads))
    operator = view._make_operator(adjacency, vertices, threads)
    (values, _), converged, converged_mb = measure_cost(lambda: solve_leading_eigenpairs(operator, DIM))
    return {
        "start_cpu_seconds": start,
        "anchor_cpu_seconds": anchor,
        "start_in_anchors": start / anchor,
        "converged_in_anchors": converged / anchor,
        "ritz_sum_missing_percent": 100 * (1 - found / float(values.sum())),
        "start_mb": start_mb,
        "converged_mb": converged_mb,
    }


def growth_exponent(sizes: list[int], costs: list[float]) -> float:
    """Return the exponent of the power law that fits these costs best."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def measure(vertices: int) -> dict[str, Any]:
    """Measure every graph at every size."""
    metrics: dict[str, Any] = {"vertices": vertices}
    sizes = [int(vertices * share) // COMMUNITIES * COMMUNITIES for share in SIZES]
    with limit_blas_to_one_thread():
        measure_graph(build_graph(community_edges(25_000), 25_000), 25_000)  # compiles
        for name, generate in GRAPHS.items():
            costs = {"start": list[float](), "anchor": list[float]()}
            for size in sizes:
                found = measure_graph(build_graph(generate(size), size), size)
                metrics |= {f"{name}_{size}_{key}": value for key, value in found.items()}
                for step, seconds in costs.items():
                    seconds.append(found[f"{step}_cpu_seconds"])
            metrics |= {f"{name}_{step}_exponent": growth_exponent(sizes, seconds) for step, seconds in costs.items()}
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 1_000_000)
