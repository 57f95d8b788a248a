"""Benchmark of durability: throughput of a session relative to a model in memory, in batches of 1,000 edges.

    python benchmarks/durable.py [--edges 200000] [--json FILE]

"One by one" means that each batch is on disk before the next one starts; in groups, as `Session.run` applies them,
sixteen batches share a flush. Anchors take much of the time, so the cost is also measured without them.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import run_benchmark
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.durability.session import GROUP_SIZE, Session

BATCH, EDGES = 1_000, 5


def make_stream(edges: int) -> list[Batch]:
    """Return batches in which every vertex arrives with five edges to random earlier ones."""
    src: NDArray[np.int64] = np.repeat(np.arange(1, edges // EDGES + 1), EDGES)
    dst = (np.random.default_rng(0).random(src.size) * src).astype(np.int64)
    return [Batch.of(src[first : first + BATCH], dst[first : first + BATCH]) for first in range(0, src.size, BATCH)]


def measure_model_rate(batches: list[Batch], **parameters: Any) -> float:
    """Return the edges per second of a model in memory."""
    model = Embedder(**parameters)
    started = time.perf_counter()
    for batch in batches:
        model.partial_fit(batch)
    return len(batches) * BATCH / (time.perf_counter() - started)


def measure_session_rate(batches: list[Batch], group: int, **parameters: Any) -> float:
    """Return the edges per second of a session with `group` batches per flush."""
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        Session(Path(folder) / "state", **parameters) as session,
    ):
        started = time.perf_counter()
        for first in range(0, len(batches), group):
            session.apply_many(batches[first : first + group])
        return len(batches) * BATCH / (time.perf_counter() - started)


def warm_up(batches: list[Batch]) -> None:
    """Load the kernels of batches and snapshots."""
    with tempfile.TemporaryDirectory() as folder, Session(Path(folder) / "state") as session:
        session.apply_many(batches)
        session.snapshot()


def measure_flush(times: int = 50) -> float:
    """Return the seconds that one small durable write takes."""
    with tempfile.NamedTemporaryFile(dir=Path.cwd()) as file:
        started = time.perf_counter()
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - started) / times


def measure(edges: int) -> dict[str, Any]:
    """Measure all metrics in one run."""
    batches = make_stream(edges)
    warm_up(batches[:40])
    metrics = {"edges": edges, "flush_ms": measure_flush() * 1e3}
    for growth, name in ((0, "no_anchors"), ("auto", "anchors")):
        memory_rate = measure_model_rate(batches, anchor_growth=growth)
        metrics[f"{name}_memory_per_second"] = memory_rate
        for group, label in ((1, "one_by_one"), (GROUP_SIZE, "grouped")):
            metrics[f"{name}_{label}_over_memory"] = (
                measure_session_rate(batches, group, anchor_growth=growth) / memory_rate
            )
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "edges", 200_000)
