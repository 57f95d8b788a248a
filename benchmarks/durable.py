"""What it costs to keep everything: a session against a model in memory, batches of 1,000 edges, the same stream.

    python benchmarks/durable.py [--edges 200000] [--json FILE]

One by one, a batch is on disk before the next is begun; in groups, as a loop over a source takes them, sixteen share a
flush. Anchors take most of the time where there are any, so it is measured without them too. With the lag that is a
session's default, anchors are worked out beside the batches, and there are fewer of them while a graph grows fast.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import run
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.durability.session import GROUP_SIZE, Session

BATCH, EDGES = 1_000, 5


def stream(edges: int) -> list[Batch]:
    """Every vertex comes with five edges to earlier ones chosen at random."""
    src: NDArray[np.int64] = np.repeat(np.arange(1, edges // EDGES + 1), EDGES)
    dst = (np.random.default_rng(0).random(src.size) * src).astype(np.int64)
    return [Batch.of(src[first : first + BATCH], dst[first : first + BATCH]) for first in range(0, src.size, BATCH)]


def in_memory(batches: list[Batch], **parameters: Any) -> float:
    """Edges per second of a model alone."""
    model = Embedder(**parameters)
    began = time.perf_counter()
    for batch in batches:
        model.partial_fit(batch)
    return len(batches) * BATCH / (time.perf_counter() - began)


def durable(batches: list[Batch], group: int, **parameters: Any) -> float:
    """Edges per second of a session, so many batches to a flush."""
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        Session(Path(folder) / "state", **parameters) as session,
    ):
        began = time.perf_counter()
        for first in range(0, len(batches), group):
            session.apply_many(batches[first : first + group])
        return len(batches) * BATCH / (time.perf_counter() - began)


def compile_all(batches: list[Batch]) -> None:
    """Have every kernel loaded: of batches, and of snapshots, of which a session takes one now and then."""
    with tempfile.TemporaryDirectory() as folder, Session(Path(folder) / "state") as session:
        session.apply_many(batches)
        session.snapshot()


def flush(times: int = 50) -> float:
    """Seconds that the disk takes for one small write to be safe."""
    with tempfile.NamedTemporaryFile(dir=Path.cwd()) as file:
        began = time.perf_counter()
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - began) / times


def measure(edges: int) -> dict[str, Any]:
    """All figures, in one run."""
    batches = stream(edges)
    compile_all(batches[:40])
    figures = {"edges": edges, "flush_ms": flush() * 1e3}
    for growth, name in ((0, "no_anchors"), ("auto", "anchors")):
        alone = in_memory(batches, anchor_growth=growth)
        figures[f"{name}_memory_per_second"] = alone
        for group, what in ((1, "one_by_one"), (GROUP_SIZE, "grouped")):
            figures[f"{name}_{what}_over_memory"] = durable(batches, group, anchor_growth=growth, anchor_lag=0) / alone
    figures["anchors_behind_over_memory"] = durable(batches, GROUP_SIZE) / alone
    return figures


if __name__ == "__main__":
    run(__doc__, measure, "edges", 200_000)
