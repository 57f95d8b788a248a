"""What an arrival costs: against a bare loop over the same rows, as the graph grows, from Python, and in bulk.

    python benchmarks/arrival.py [--large 1000000] [--json FILE]

Everything is measured in one run and printed as ratios; times on a shared machine mean little by themselves.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _report import run
from numba import njit
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.graph._block_kernels import ARENA_TOP
from ripplevec.graph._edge_kernels import apply_edges
from ripplevec.influence._kernels import derive_key, spread_round
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import UNLIMITED, BatchContext, apply_batch

DIM, EDGES, SMALL, ARRIVALS = 128, 5, 10_000, 20_000
START = 5_000  # vertices of the start; the rest is streamed in bulk, without anchors

Rows = NDArray[np.int64]


def growing_edges(vertices: int, seed: int = 0) -> Rows:
    """Every vertex comes with five edges to earlier ones chosen at random: mean degree ten."""
    src = np.repeat(np.arange(1, vertices), EDGES)
    dst = (np.random.default_rng(seed).random(src.size) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


def grown_model(edges: Rows, vertices: int, batch: int = 100_000) -> tuple[Embedder, float]:
    """A model grown to this many vertices, and the edges it took in per second on the way."""
    cut, end = (START - 1) * EDGES, (vertices - 1) * EDGES
    model = Embedder(dim=DIM, anchor_growth=0, threads=1).fit(edges[:cut])
    began = time.perf_counter()
    for first in range(cut, end, batch):
        model.partial_fit(edges[first : min(first + batch, end)])
    return model, (end - cut) / (time.perf_counter() - began)


@njit(cache=True, nogil=True)
def run_kernel(
    state: KernelState, rows: Rows, ends: Rows, seen: Rows, seed: int, sequence: int, first_new: int
) -> None:
    """Arrivals one after the other through graph and rule, ids already rows."""
    weight, op = np.ones(EDGES, np.float32), np.zeros(EDGES, np.int8)
    chance, pairs, numbers = np.empty((EDGES, 2)), np.empty((EDGES, 2), np.int64), np.empty((EDGES, 2), np.int64)
    for i in range(rows.size):
        for j in range(EDGES):
            pairs[j, 0], pairs[j, 1] = rows[i], ends[i, j]
            numbers[j, 0], numbers[j, 1] = first_new + i, state.arrival[ends[i, j]]
        apply_edges(state.links, op, pairs, weight, chance, 0, 0, False)
        context = BatchContext(seed, sequence + i, 1, 4096, first_new + i)
        apply_batch(state, rows[i : i + 1], pairs, numbers, chance, seen, context)


@njit(cache=True, nogil=True)
def run_bare(vectors: NDArray[np.float32], reads: Rows, ends: Rows, out: NDArray[np.float32]) -> None:
    """The same rows, gathered and averaged, and nothing else."""
    for i in range(ends.size - 1):
        out[:] = 0
        for at in range(ends[i], ends[i + 1]):
            for j in range(out.size):
                out[j] += vectors[reads[at], j]
        for j in range(out.size):
            out[j] /= ends[i + 1] - ends[i]


def recorded_reads(state: KernelState, rows: Rows, seed: int, sequence: int) -> tuple[Rows, Rows]:
    """The rows that arrivals read, per arrival: own neighbors twice, and the neighbors of whom they influence."""
    links, seen = state.links, np.zeros_like(state.arrival)
    reads: list[Rows] = []
    ends = [0]
    for i, row in enumerate(rows):
        own = links.neighbor[links.begin[row] : links.begin[row] + links.degree[row]].astype(np.int64)
        reached = np.empty(own.size, np.int64)
        key = np.uint64(derive_key(seed, sequence + i, 1))
        count = spread_round(links, state.arrival, rows[i : i + 1], seen, 1, key, UNLIMITED, reached)
        others = [links.neighbor[links.begin[u] : links.begin[u] + links.degree[u]] for u in np.unique(reached[:count])]
        reads.append(np.concatenate([own, own, *others]).astype(np.int64))
        ends.append(ends[-1] + reads[-1].size)
    return np.concatenate(reads), np.array(ends)


def kernel_and_bare(model: Embedder, vertices: int, seed: int = 1) -> tuple[float, float, float]:
    """Seconds per arrival in the kernel and in the bare loop, and rows read per arrival."""
    engine = model._engine
    graph, store = engine.graph, engine.store
    ids = np.arange(vertices, vertices + ARRIVALS)
    rows, _, _ = graph.ids.intern(ids, ids)
    first_new = graph.next_arrival
    graph._assign_arrival_numbers(rows)
    store.grow()
    graph.adjacency._grow_arena(int(graph.adjacency.links.allocator[ARENA_TOP]) + ARRIVALS * EDGES * 16)
    ends = np.random.default_rng(seed).integers(0, vertices, (ARRIVALS, EDGES))
    state = engine.rule.kernel_state(store)
    run_kernel(state, rows[:1], ends[:1], store.seen, 0, 10**6, first_new)  # compiles
    began = time.perf_counter()
    run_kernel(state, rows[1:], ends[1:], store.seen, 0, 10**6 + 1, first_new + 1)
    kernel = (time.perf_counter() - began) / (ARRIVALS - 1)
    sample = rows[1 : 1 + ARRIVALS // 4]
    reads, bounds = recorded_reads(state, sample, 0, 10**6 + 1)
    out = np.empty(DIM, np.float32)
    run_bare(store.vectors, reads[: bounds[1]], bounds[:2], out)
    np.sum(np.ones(8_000_000))  # what the kernel left in the cache should not help the bare loop
    began = time.perf_counter()
    run_bare(store.vectors, reads, bounds, out)
    return kernel, (time.perf_counter() - began) / sample.size, reads.size / sample.size


def python_call(model: Embedder, vertices: int, text: bool = False) -> float:
    """Seconds per `add_vertex` from Python."""
    name = (lambda number: f"v{number}") if text else int
    ends = np.random.default_rng(2).integers(0, vertices, (ARRIVALS, EDGES)).tolist()
    calls = [(name(10**9 + i), [name(end) for end in row]) for i, row in enumerate(ends)]
    model.add_vertex(*calls[0])
    began = time.perf_counter()
    for vertex, neighbors in calls[1:]:
        model.add_vertex(vertex, neighbors)
    return (time.perf_counter() - began) / (len(calls) - 1)


def bulk_text(edges: Rows, vertices: int) -> float:
    """Edges per second through `partial_fit` with text ids."""
    cut, end = (START - 1) * EDGES, (vertices - 1) * EDGES
    names = np.char.add("user-", edges[:end].astype(str))
    src, dst = names[:, 0].tolist(), names[:, 1].tolist()
    model = Embedder(dim=DIM, anchor_growth=0, threads=1).fit(Batch.of(src[:cut], dst[:cut]))
    began = time.perf_counter()
    for first in range(cut, end, 50_000):
        last = min(first + 50_000, end)
        model.partial_fit(Batch.of(src[first:last], dst[first:last]))
    return (end - cut) / (time.perf_counter() - began)


def measure(large: int) -> dict[str, Any]:
    """All figures, in one run."""
    edges = growing_edges(large + 1)
    small_model, _ = grown_model(edges, SMALL)
    call_ints = python_call(small_model, SMALL)
    small_kernel, small_bare, _ = kernel_and_bare(small_model, SMALL)
    model, bulk = grown_model(edges, large)
    kernel, bare, reads = kernel_and_bare(model, large)
    return {
        "vertices": large,
        "rows_read_per_arrival": reads,
        "kernel_us": kernel * 1e6,
        "bare_us": bare * 1e6,
        "kernel_over_bare": kernel / bare,
        "kernel_us_small": small_kernel * 1e6,
        "kernel_over_bare_small": small_kernel / small_bare,
        "large_over_small": kernel / small_kernel,
        "add_vertex_us_small": call_ints * 1e6,
        "python_overhead_us": (call_ints - small_kernel) * 1e6,
        "bulk_edges_per_second_int": bulk,
        "bulk_edges_per_second_text": bulk_text(edges, min(large, 200_000)),
    }


if __name__ == "__main__":
    run(__doc__, measure, "large", 1_000_000)
