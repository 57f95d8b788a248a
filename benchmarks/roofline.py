"""How close the engine comes to what the memory can deliver.

A random growing graph is streamed, five edges an arrival, until graph and vectors are far larger than any cache. Of
the last tenth of the stream the rows of vectors that had to be read and written are counted, and the bytes per second
are compared with two loops that do nothing else, over the same arrays in the same run: a bare gather-average, which
reads the very same rows in the same order from a list and writes the means to the same rows, on as many threads, and a
copy. One step of an anchor is looked at in the same way. The memory that rows will take is touched beforehand: a
virtual machine has to be given it by its host, which would cost more than all the rest.

    python benchmarks/roofline.py --vertices 4000000 --json results/roofline.json
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _report import run, seconds
from numba import njit
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.batch import Batch
from ripplevec.engine.engine import Engine
from ripplevec.rules import _kernels as kernels
from ripplevec.util.numba_intrinsics import as_float, store_float
from ripplevec.util.parallel import for_each_block
from ripplevec.views.operators import Operator

DIM, DEGREE, START, AT_ONCE = 128, 5, 10_000, 10_000
MEASURED = 0.1  # of the stream, its end
BLOCK = 1_024  # rows that a thread of the bare loop writes at a time

Rows = NDArray[np.int64]


class Reads(NamedTuple):
    """Rows that were read, how many of them for each row that was written, and these."""

    rows: Rows
    counts: Rows
    written: Rows


class Stopwatch:
    """A function, and the seconds spent in it."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work, self.spent = work, 0.0

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        began = time.perf_counter()
        answer = self.work(*arguments)
        self.spent += time.perf_counter() - began
        return answer


def growing_edges(vertices: int, seed: int = 0) -> Rows:
    """Every vertex comes with five edges to earlier ones chosen at random: nothing is near anything in memory."""
    src = np.repeat(np.arange(1, vertices), DEGREE)
    dst = (np.random.default_rng(seed).random(src.size) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


@njit(cache=True, nogil=True)
def gather_average(vectors: Any, reads: Any, begin: int, end: int) -> None:
    """Write the means of some rows, of read[0:ends[0]], read[ends[0]:ends[1]], …, to others, from `begin` to `end`."""
    read, ends, written = reads
    total = np.empty(vectors.shape[1], np.float32)
    for i in range(begin, end):
        first = ends[i - 1] if i else 0
        total[:] = 0
        for place in range(first, ends[i]):
            row = vectors[read[place]]
            for j in range(total.size):
                total[j] += as_float(row[j])
        over = np.float32(1.0 / max(ends[i] - first, 1))
        target = vectors[written[i]]
        for j in range(total.size):
            store_float(target, j, total[j] * over)


def admitted(engine: Engine, new: Rows) -> Reads:
    """What newcomers were placed by: their neighbors that came before them."""
    arrival, around = engine.graph.arrival, refreshed(engine, new)
    owner = np.repeat(np.arange(new.size), around.counts)
    kept = arrival[around.rows] < arrival[new][owner]
    return Reads(around.rows[kept], np.bincount(owner[kept], minlength=new.size), new)


def refreshed(engine: Engine, rows: Rows) -> Reads:
    """What a refresh reads: all neighbors."""
    adjacency = engine.graph.adjacency
    read = adjacency.links.neighbor[adjacency.slots(rows)].astype(np.int64)
    return Reads(read, adjacency.links.degree[rows].astype(np.int64), rows)


def reads_of(engine: Engine, moved: Rows, first_new: int) -> tuple[Reads, Reads]:
    """What a batch has read: to admit its newcomers, and to refresh them and whomever they influenced."""
    fresh = engine.graph.arrival[moved] >= first_new
    new, touched = moved[fresh], moved[~fresh]
    state = engine.rule.kernel_state(engine.store)  # type: ignore[attr-defined]
    again = kernels.find_second_refresh_rows(state, new, engine.store.seen, 2 * engine.sequence, first_new)
    return admitted(engine, new), refreshed(engine, np.concatenate([touched, again]))


def touch(engine: Engine, vertices: int) -> None:
    """Have the memory for so many vertices."""
    engine.graph.adjacency.ensure_rows(vertices)
    engine.store.grow()
    engine.store.vectors[engine.graph.row_count :] = 0


def bare_seconds(cells: NDArray[Any], reads: list[Reads], threads: int) -> float:
    """What it takes to read and write the same rows in the same order, and nothing else, on as many threads."""
    rows, counts, written = (np.concatenate(part) for part in zip(*reads, strict=True))
    work = partial(gather_average, cells, (rows, np.cumsum(counts), written))
    work(0, 1)  # compiles
    return seconds(lambda: for_each_block(work, written.size, size=BLOCK, threads=threads))


def stream(vertices: int, storage: str, threads: int) -> tuple[dict[str, float], Engine]:
    """Stream a graph; what its end cost, over what the bare loops cost."""
    edges, first = growing_edges(vertices), START * DEGREE
    engine = Embedder(dim=DIM, anchor_growth=0, storage=storage, threads=threads).fit(edges[:first]).engine
    touch(engine, vertices)
    spent, arrivals, reads, moving = 0.0, 0, [], Stopwatch(engine.rule.apply)
    engine.rule.apply = moving  # type: ignore[method-assign]
    for place in range(first, len(edges), AT_ONCE * DEGREE):
        batch = Batch.from_any(edges[place : place + AT_ONCE * DEGREE])
        measured = place >= len(edges) * (1 - MEASURED)
        moving.spent = moving.spent if measured else 0.0
        began = time.perf_counter()
        outcome = engine.apply(batch)
        if measured:
            spent += time.perf_counter() - began
            arrivals += len(batch) // DEGREE
            reads.append(reads_of(engine, outcome.moved, outcome.first_new))
    both = [each for pair in reads for each in pair]
    row, vectors = engine.store.vectors[:1].nbytes, engine.store.vectors
    moved_bytes = row * sum(each.rows.size + each.counts.size for each in both)
    half, bare = len(vectors) // 2, bare_seconds(engine.store.kernel_array, both, threads)
    copied = seconds(lambda: np.copyto(vectors[:half], vectors[half : 2 * half]))
    return {
        "edges_per_second": arrivals * DEGREE / spent,
        "us_per_arrival": 1e6 * spent / arrivals,
        "admit_reads_per_arrival": sum(admit.rows.size for admit, _ in reads) / arrivals,
        "ripple_reads_per_arrival": sum(ripple.rows.size for _, ripple in reads) / arrivals,
        "writes_per_arrival": sum(each.counts.size for each in both) / arrivals,
        "gigabytes_per_second": moved_bytes / spent / 1e9,
        "bare_gigabytes_per_second": moved_bytes / bare / 1e9,
        "copy_gigabytes_per_second": 2 * half * row / copied / 1e9,
        "share_of_bare": bare / spent,
        "ripple_share_of_bare": bare / moving.spent,
    }, engine


def anchor_step(engine: Engine, threads: int) -> dict[str, float]:
    """One product of an anchor's filter with all rows, over the bare loop on the same rows."""
    rows = engine.graph.row_count
    block = engine.store.vectors[:rows].astype(np.float32)
    operator = Operator(engine.graph.adjacency, rows, 0.25, threads)
    spare = operator.allocate_workspace(block)
    parts = [(part, spare[:, : part.stop - part.start]) for part in operator.column_chunks(block)]
    operator.combine(block[:, parts[0][0]], parts[0][1], (1.0, 0.0, 0.0))  # compiles
    spent = seconds(lambda: [operator.combine(block[:, part], into, (1.0, 0.0, 0.0)) for part, into in parts])
    around = refreshed(engine, np.arange(rows))
    moved_bytes = block[:1].nbytes * (around.rows.size + rows)
    return {
        "anchor_step_seconds": spent,
        "anchor_step_rows_read": around.rows.size,
        "anchor_step_rows_written": rows,
        "anchor_step_gigabytes_per_second": moved_bytes / spent / 1e9,
        "anchor_step_share_of_bare": bare_seconds(block, [around], threads) / spent,
    }


def measure(vertices: int) -> dict[str, Any]:
    """All figures, in one run."""
    figures: dict[str, Any] = {"vertices": vertices, "dim": DIM}
    for storage in ("float32", "float16"):
        for threads in (1, 2):
            found, engine = stream(vertices, storage, threads)
            if storage == "float32":
                found |= anchor_step(engine, threads)
            del engine
            gc.collect()  # or its memory would be there beside the next one's
            figures |= {f"{storage}_{threads}_{name}": value for name, value in found.items()}
        one, two = (figures[f"{storage}_{threads}_edges_per_second"] for threads in (1, 2))
        figures[f"{storage}_two_over_one"] = two / one
    steps = [figures[f"float32_{threads}_anchor_step_seconds"] for threads in (1, 2)]
    return figures | {"anchor_step_two_over_one": steps[0] / steps[1]}


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 1_000_000)
