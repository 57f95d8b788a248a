"""Roofline benchmark: throughput of the engine as a share of what the memory can deliver.

A random growing graph is streamed, with five edges per arrival, until graph and vectors are far larger than any cache.
In the last tenth of the stream, the rows of vectors that must be read and written are counted. The bytes per second
are compared with two bare loops over the same arrays in the same run and on as many threads: a gather-average, which
reads the same rows in the same order from a list and writes the means to the same rows, and a copy. One step of an
anchor is measured in the same way. The memory for all rows is touched beforehand, because on a virtual machine the
first access to a page is slower than everything else. Finally, large batches are applied on one and on two threads in
turn, to compare the time of their parts: ids, edges, vectors, changes.

    python benchmarks/roofline.py --vertices 4000000 --json results/roofline.json
"""

from __future__ import annotations

import gc
import time
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from _report import Stopwatch, best_seconds, run_benchmark
from _thread_gain import measure_thread_gain
from numba import njit
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.batch import Batch
from ripplevec.engine.engine import Engine
from ripplevec.graph.adjacency import RowArray
from ripplevec.rules import _kernels as kernels
from ripplevec.util.numba_intrinsics import as_float, store_float
from ripplevec.util.parallel import for_each_block
from ripplevec.views.operators import Operator

DIM, EDGES_PER_ARRIVAL, START_SIZE, BATCH_ARRIVALS = 128, 5, 10_000, 10_000
MEASURED_SHARE = 0.1  # the end of the stream
BLOCK_ROWS = 1_024  # rows that a thread of the bare loop writes at a time


class RowAccesses(NamedTuple):
    """Rows that were read, grouped by the row written: the size of each group, and the rows written."""

    read: RowArray
    counts: RowArray
    written: RowArray


def generate_edges(vertices: int, seed: int = 0) -> RowArray:
    """Generate five edges per vertex to random earlier vertices, so that memory accesses have no locality."""
    src = np.repeat(np.arange(1, vertices), EDGES_PER_ARRIVAL)
    dst = (np.random.default_rng(seed).random(src.size) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


@njit(cache=True, nogil=True)
def gather_average(vectors: Any, accesses: Any, begin: int, end: int) -> None:
    """Write the means of the groups read[0:ends[0]], read[ends[0]:ends[1]], … from `begin` to before `end`."""
    read, ends, written = accesses
    total = np.empty(vectors.shape[1], np.float32)
    for i in range(begin, end):
        first = ends[i - 1] if i else 0
        total[:] = 0
        for position in range(first, ends[i]):
            row = vectors[read[position]]
            for j in range(total.size):
                total[j] += as_float(row[j])
        factor = np.float32(1.0 / max(ends[i] - first, 1))
        target = vectors[written[i]]
        for j in range(total.size):
            store_float(target, j, total[j] * factor)


def accesses_of_placement(engine: Engine, new: RowArray) -> RowAccesses:
    """Return the accesses that place new vertices: each reads its earlier neighbors."""
    arrival, neighbors = engine.graph.arrival, accesses_of_refresh(engine, new)
    owner = np.repeat(np.arange(new.size), neighbors.counts)
    earlier = arrival[neighbors.read] < arrival[new][owner]
    return RowAccesses(neighbors.read[earlier], np.bincount(owner[earlier], minlength=new.size), new)


def accesses_of_refresh(engine: Engine, rows: RowArray) -> RowAccesses:
    """Return the accesses that refresh vertices: each reads all its neighbors."""
    adjacency = engine.graph.adjacency
    read = adjacency.links.neighbor[adjacency.slots(rows)].astype(np.int64)
    return RowAccesses(read, adjacency.links.degree[rows].astype(np.int64), rows)


def accesses_of_batch(engine: Engine, moved: RowArray, first_new: int) -> tuple[RowAccesses, RowAccesses]:
    """Return the accesses that placed the new vertices, and those that refreshed them and the influenced vertices."""
    is_new = engine.graph.arrival[moved] >= first_new
    new, influenced = moved[is_new], moved[~is_new]
    state = engine.rule.kernel_state(engine.store)  # type: ignore[attr-defined]
    refreshed = kernels.find_second_refresh_rows(state, new, engine.store.seen, 2 * engine.sequence, first_new)
    return accesses_of_placement(engine, new), accesses_of_refresh(engine, np.concatenate([influenced, refreshed]))


def touch_memory(engine: Engine, vertices: int) -> None:
    """Allocate and touch the memory for this number of vertices."""
    engine.graph.adjacency.ensure_rows(vertices)
    engine.store.grow()
    engine.store.vectors[engine.graph.row_count :] = 0


def time_bare_loop(vectors: NDArray[Any], accesses: list[RowAccesses], threads: int) -> float:
    """Return the seconds to read and write the same rows in the same order, and nothing else."""
    read, counts, written = (np.concatenate(part) for part in zip(*accesses, strict=True))
    average = partial(gather_average, vectors, (read, np.cumsum(counts), written))
    average(0, 1)  # compiles
    return best_seconds(lambda: for_each_block(average, written.size, size=BLOCK_ROWS, threads=threads))


def stream(vertices: int, storage: Literal["float32", "float16"], threads: int) -> tuple[dict[str, float], Engine]:
    """Stream a graph; compare the cost of its last tenth with the bare loops."""
    edges, first = generate_edges(vertices), START_SIZE * EDGES_PER_ARRIVAL
    engine = Embedder(dim=DIM, anchor_growth=0, storage=storage, threads=threads).fit(edges[:first]).engine
    touch_memory(engine, vertices)
    seconds, arrivals, batches, rule_stopwatch = 0.0, 0, [], Stopwatch(engine.rule.apply)
    engine.rule.apply = rule_stopwatch  # type: ignore[method-assign, assignment]
    for position in range(first, len(edges), BATCH_ARRIVALS * EDGES_PER_ARRIVAL):
        batch = Batch.from_any(edges[position : position + BATCH_ARRIVALS * EDGES_PER_ARRIVAL])
        measured = position >= len(edges) * (1 - MEASURED_SHARE)
        rule_stopwatch.seconds = rule_stopwatch.seconds if measured else 0.0
        began = time.perf_counter()
        outcome = engine.apply(batch)
        if measured:
            seconds += time.perf_counter() - began
            arrivals += len(batch) // EDGES_PER_ARRIVAL
            batches.append(accesses_of_batch(engine, outcome.moved, outcome.first_new))
    accesses = [part for batch_accesses in batches for part in batch_accesses]
    row_bytes, vectors = engine.store.vectors[:1].nbytes, engine.store.vectors
    moved_bytes = row_bytes * sum(part.read.size + part.counts.size for part in accesses)
    half, bare_seconds = len(vectors) // 2, time_bare_loop(engine.store.kernel_array, accesses, threads)
    copy_seconds = best_seconds(lambda: np.copyto(vectors[:half], vectors[half : 2 * half]))
    return {
        "edges_per_second": arrivals * EDGES_PER_ARRIVAL / seconds,
        "us_per_arrival": 1e6 * seconds / arrivals,
        "admit_reads_per_arrival": sum(placement.read.size for placement, _ in batches) / arrivals,
        "ripple_reads_per_arrival": sum(refresh.read.size for _, refresh in batches) / arrivals,
        "writes_per_arrival": sum(part.counts.size for part in accesses) / arrivals,
        "gigabytes_per_second": moved_bytes / seconds / 1e9,
        "bare_gigabytes_per_second": moved_bytes / bare_seconds / 1e9,
        "copy_gigabytes_per_second": 2 * half * row_bytes / copy_seconds / 1e9,
        "share_of_bare": bare_seconds / seconds,
        "ripple_share_of_bare": bare_seconds / rule_stopwatch.seconds,
    }, engine


def measure_anchor_step(engine: Engine, threads: int) -> dict[str, float]:
    """Compare one matrix product of an anchor over all rows with the bare loop on the same rows."""
    rows = engine.graph.row_count
    block = engine.store.vectors[:rows].astype(np.float32)
    operator = Operator(engine.graph.adjacency, rows, 0.25, threads)
    workspace = operator.allocate_workspace(block)
    parts = [(part, workspace[:, : part.stop - part.start]) for part in operator.column_chunks(block)]

    def multiply(parts: list[tuple[slice, NDArray[Any]]]) -> None:
        for part, into in parts:
            operator.combine(block[:, part], into, (1.0, 0.0, 0.0))

    multiply(parts[:1])  # compiles
    seconds = best_seconds(lambda: multiply(parts))
    accesses = accesses_of_refresh(engine, np.arange(rows))
    moved_bytes = block[:1].nbytes * (accesses.read.size + rows)
    return {
        "anchor_step_seconds": seconds,
        "anchor_step_rows_read": accesses.read.size,
        "anchor_step_rows_written": rows,
        "anchor_step_gigabytes_per_second": moved_bytes / seconds / 1e9,
        "anchor_step_share_of_bare": time_bare_loop(block, [accesses], threads) / seconds,
    }


def measure(vertices: int) -> dict[str, Any]:
    """Measure everything in one run."""
    metrics: dict[str, Any] = {"vertices": vertices, "dim": DIM}
    storages: tuple[Literal["float32", "float16"], ...] = ("float32", "float16")
    for storage in storages:
        for threads in (1, 2):
            results, engine = stream(vertices, storage, threads)
            if storage == "float32":
                results |= measure_anchor_step(engine, threads)
            del engine
            gc.collect()  # otherwise its memory would still be allocated while the next engine runs
            metrics |= {f"{storage}_{threads}_{name}": value for name, value in results.items()}
        one, two = (metrics[f"{storage}_{threads}_edges_per_second"] for threads in (1, 2))
        metrics[f"{storage}_two_over_one"] = two / one
    steps = [metrics[f"float32_{threads}_anchor_step_seconds"] for threads in (1, 2)]
    gain = {f"batch_{name}": value for name, value in measure_thread_gain(generate_edges, EDGES_PER_ARRIVAL).items()}
    return metrics | {"anchor_step_two_over_one": steps[0] / steps[1]} | gain


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 1_000_000)
