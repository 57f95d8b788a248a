"""Benchmark of an arrival: compared with a bare loop over the same rows, by graph size, from Python, and in bulk.

    python benchmarks/arrival.py [--large 1000000] [--json FILE]

Everything is measured in one run and reported as ratios, because absolute times on a shared machine vary.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _report import run_benchmark
from numba import njit
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.graph._block_kernels import ARENA_TOP
from ripplevec.graph._edge_kernels import apply_edges
from ripplevec.influence._kernels import derive_key, spread_round
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import UNLIMITED, BatchContext, apply_batch

DIM, EDGES_PER_ARRIVAL, SMALL, ARRIVALS = 128, 5, 10_000, 20_000
START_SIZE = 5_000  # vertices of the start; the rest is streamed in batches, without anchors
TEXT_BATCH_SIZE = 50_000

IntArray = NDArray[np.int64]


def generate_edges(vertices: int, seed: int = 0) -> IntArray:
    """Generate five edges per vertex to random earlier vertices: mean degree ten."""
    src = np.repeat(np.arange(1, vertices), EDGES_PER_ARRIVAL)
    dst = (np.random.default_rng(seed).random(src.size) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


def grow_model(edges: IntArray, vertices: int, batch_size: int = 100_000) -> tuple[Embedder, float]:
    """Grow a model to this number of vertices; return it and the edges it processed per second."""
    start_edges, stop = (START_SIZE - 1) * EDGES_PER_ARRIVAL, (vertices - 1) * EDGES_PER_ARRIVAL
    model = Embedder(dim=DIM, anchor_growth=0, threads=1).fit(edges[:start_edges])
    began = time.perf_counter()
    for first in range(start_edges, stop, batch_size):
        model.partial_fit(edges[first : min(first + batch_size, stop)])
    return model, (stop - start_edges) / (time.perf_counter() - began)


@njit(cache=True, nogil=True)
def run_kernel(
    state: KernelState, rows: IntArray, neighbors: IntArray, seen: IntArray, seed: int, sequence: int, first_new: int
) -> None:
    """Apply arrivals one by one to graph and vectors; ids are already translated to rows."""
    weight, op = np.ones(EDGES_PER_ARRIVAL, np.float32), np.zeros(EDGES_PER_ARRIVAL, np.int8)
    shape = (EDGES_PER_ARRIVAL, 2)
    chance, pairs, arrival_numbers = np.empty(shape), np.empty(shape, np.int64), np.empty(shape, np.int64)
    for i in range(rows.size):
        for j in range(EDGES_PER_ARRIVAL):
            pairs[j, 0], pairs[j, 1] = rows[i], neighbors[i, j]
            arrival_numbers[j, 0], arrival_numbers[j, 1] = first_new + i, state.arrival[neighbors[i, j]]
        apply_edges(state.links, op, pairs, weight, chance, 0, 0, False)
        context = BatchContext(seed, sequence + i, 1, 4096, first_new + i)
        apply_batch(state, rows[i : i + 1], pairs, arrival_numbers, chance, seen, context)


@njit(cache=True, nogil=True)
def run_bare_loop(vectors: NDArray[np.float32], reads: IntArray, bounds: IntArray, out: NDArray[np.float32]) -> None:
    """Gather and average the same rows, and nothing else."""
    for i in range(bounds.size - 1):
        out[:] = 0
        for position in range(bounds[i], bounds[i + 1]):
            for j in range(out.size):
                out[j] += vectors[reads[position], j]
        for j in range(out.size):
            out[j] /= bounds[i + 1] - bounds[i]


def list_reads(state: KernelState, rows: IntArray, seed: int, sequence: int) -> tuple[IntArray, IntArray]:
    """List the rows that each arrival reads: its neighbors twice, and the neighbors of the vertices it influences."""
    links, seen = state.links, np.zeros_like(state.arrival)
    reads: list[IntArray] = []
    bounds = [0]
    for i, row in enumerate(rows):
        neighbors = links.neighbor[links.begin[row] : links.begin[row] + links.degree[row]].astype(np.int64)
        reached = np.empty(neighbors.size, np.int64)
        key = np.uint64(derive_key(seed, sequence + i, 1))
        count = spread_round(links, state.arrival, rows[i : i + 1], seen, 1, key, UNLIMITED, reached)
        others = [links.neighbor[links.begin[u] : links.begin[u] + links.degree[u]] for u in np.unique(reached[:count])]
        reads.append(np.concatenate([neighbors, neighbors, *others]).astype(np.int64))
        bounds.append(bounds[-1] + reads[-1].size)
    return np.concatenate(reads), np.array(bounds)


def time_kernel_and_bare_loop(model: Embedder, vertices: int, seed: int = 1) -> tuple[float, float, float]:
    """Return seconds per arrival in the kernel and in the bare loop, and rows read per arrival."""
    engine = model._engine
    graph, store = engine.graph, engine.store
    ids = np.arange(vertices, vertices + ARRIVALS)
    rows, _, _ = graph.ids.intern(ids, ids)
    first_new = graph.next_arrival
    graph._assign_arrival_numbers(rows)
    store.grow()
    graph.adjacency._grow_arena(int(graph.adjacency.links.allocator[ARENA_TOP]) + ARRIVALS * EDGES_PER_ARRIVAL * 16)
    neighbors = np.random.default_rng(seed).integers(0, vertices, (ARRIVALS, EDGES_PER_ARRIVAL))
    state = engine.rule.kernel_state(store)  # type: ignore[attr-defined]
    run_kernel(state, rows[:1], neighbors[:1], store.seen, 0, 10**6, first_new)  # compiles
    began = time.perf_counter()
    run_kernel(state, rows[1:], neighbors[1:], store.seen, 0, 10**6 + 1, first_new + 1)
    kernel = (time.perf_counter() - began) / (ARRIVALS - 1)
    sample = rows[1 : 1 + ARRIVALS // 4]
    reads, bounds = list_reads(state, sample, 0, 10**6 + 1)
    out = np.empty(DIM, np.float32)
    run_bare_loop(store.vectors, reads[: bounds[1]], bounds[:2], out)
    np.sum(np.ones(8_000_000))  # evicts what the kernel left in the cache, which would help the bare loop
    began = time.perf_counter()
    run_bare_loop(store.vectors, reads, bounds, out)
    return kernel, (time.perf_counter() - began) / sample.size, reads.size / sample.size


def time_python_call(model: Embedder, vertices: int, text: bool = False) -> float:
    """Return seconds per call of `add_vertex` from Python."""
    to_id = (lambda number: f"v{number}") if text else int
    neighbor_rows = np.random.default_rng(2).integers(0, vertices, (ARRIVALS, EDGES_PER_ARRIVAL)).tolist()
    calls = [(to_id(10**9 + i), [to_id(row) for row in rows]) for i, rows in enumerate(neighbor_rows)]
    model.add_vertex(*calls[0])
    began = time.perf_counter()
    for vertex, neighbors in calls[1:]:
        model.add_vertex(vertex, neighbors)
    return (time.perf_counter() - began) / (len(calls) - 1)


def time_text_batches(edges: IntArray, vertices: int) -> float:
    """Return edges per second through `partial_fit` with text ids."""
    start_edges, stop = (START_SIZE - 1) * EDGES_PER_ARRIVAL, (vertices - 1) * EDGES_PER_ARRIVAL
    names = np.char.add("user-", edges[:stop].astype(str))
    src, dst = names[:, 0].tolist(), names[:, 1].tolist()
    model = Embedder(dim=DIM, anchor_growth=0, threads=1).fit(Batch.of(src[:start_edges], dst[:start_edges]))
    began = time.perf_counter()
    for first in range(start_edges, stop, TEXT_BATCH_SIZE):
        last = min(first + TEXT_BATCH_SIZE, stop)
        model.partial_fit(Batch.of(src[first:last], dst[first:last]))
    return (stop - start_edges) / (time.perf_counter() - began)


def measure(large: int) -> dict[str, Any]:
    """Measure everything in one run."""
    edges = generate_edges(large + 1)
    small_model, _ = grow_model(edges, SMALL)
    call_seconds = time_python_call(small_model, SMALL)
    small_kernel, small_bare, _ = time_kernel_and_bare_loop(small_model, SMALL)
    model, bulk = grow_model(edges, large)
    kernel, bare, reads = time_kernel_and_bare_loop(model, large)
    return {
        "vertices": large,
        "rows_read_per_arrival": reads,
        "kernel_us": kernel * 1e6,
        "bare_us": bare * 1e6,
        "kernel_over_bare": kernel / bare,
        "kernel_us_small": small_kernel * 1e6,
        "kernel_over_bare_small": small_kernel / small_bare,
        "large_over_small": kernel / small_kernel,
        "add_vertex_us_small": call_seconds * 1e6,
        "python_overhead_us": (call_seconds - small_kernel) * 1e6,
        "bulk_edges_per_second_int": bulk,
        "bulk_edges_per_second_text": time_text_batches(edges, min(large, 200_000)),
    }


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "large", 1_000_000)
