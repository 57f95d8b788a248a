"""Benchmark of vectors in a memory-mapped file: cost of an arrival, also if memory holds only half of the vectors.

    python benchmarks/mapped.py [--vertices 100000] [--json FILE]

Each arrival has five edges to random vertices: the worst case, because any row may be read next. Each variant runs in
a separate process. Memory is limited by a control group, which requires root on Linux; otherwise that part is skipped.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from _report import process_memory_mb, run_benchmark
from roofline import DIM, EDGES_PER_ARRIVAL, MEASURED_SHARE, START_SIZE, generate_edges

from ripplevec import Embedder

BATCH_ARRIVALS = 1_000
CGROUP_LIMITS = {"memory.limit_in_bytes": Path("/sys/fs/cgroup/memory"), "memory.max": Path("/sys/fs/cgroup")}


def stream(vertices: int, directory: str | None) -> tuple[float, float]:
    """Return microseconds per arrival in the last tenth of a stream, and the megabytes this process grew by."""
    edges, first, memory_before = generate_edges(vertices), START_SIZE * EDGES_PER_ARRIVAL, process_memory_mb("VmRSS")
    model = Embedder(dim=DIM, anchor_growth=0, storage_dir=directory, threads=1).fit(edges[:first])
    measured_from, seconds, step = int(len(edges) * (1 - MEASURED_SHARE)), 0.0, BATCH_ARRIVALS * EDGES_PER_ARRIVAL
    for position in range(first, len(edges), step):
        began = time.perf_counter()
        model.partial_fit(edges[position : position + step])
        seconds += time.perf_counter() - began if position >= measured_from else 0.0
    arrivals = (len(edges) - measured_from) / EDGES_PER_ARRIVAL
    return 1e6 * seconds / arrivals, process_memory_mb("VmRSS") - memory_before


def join_cgroup(group: Path | None) -> None:
    """Move this process into a control group, which counts memory that is allocated from then on."""
    if group is not None:
        (group / "cgroup.procs").write_text(str(os.getpid()))


def stream_in_process(vertices: int, directory: str | None, group: Path | None = None) -> tuple[float, float]:
    """Call `stream` in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=join_cgroup, initargs=(group,)) as pool:
        return pool.submit(stream, vertices, directory).result()


@contextmanager
def limit_memory(megabytes: float) -> Iterator[Path | None]:
    """Create a control group with this memory limit; None if that is not possible."""
    available = [
        (root / f"ripplevec-{os.getpid()}", name)
        for name, root in CGROUP_LIMITS.items()
        if (root / "cgroup.procs").exists()
    ]
    if not available:
        yield None
        return
    group, limit = available[0]
    try:
        group.mkdir()
        (group / limit).write_text(str(int(megabytes * 2**20)))
    except OSError:  # no permission, or no memory limit in this hierarchy
        yield None
    else:
        yield group
    finally:
        with suppress(OSError):
            group.rmdir()


def measure(vertices: int) -> dict[str, Any]:
    """Measure an arrival in memory, in a file, and in a file of which half fits into memory."""
    vectors_mb = vertices * DIM * 4 / 2**20
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
        memory_us, process_mb = stream_in_process(vertices, None)
        file_us, _ = stream_in_process(vertices, directory)
        metrics = {
            "vertices": vertices,
            "vectors_mb": vectors_mb,
            "us_in_memory": memory_us,
            "us_in_a_file": file_us,
            "file_over_memory": file_us / memory_us,
        }
        with limit_memory(process_mb - vectors_mb / 2) as group:
            if group is not None:
                half_us, _ = stream_in_process(vertices, directory, group)
                metrics |= {"limit_mb": process_mb - vectors_mb / 2, "us_with_room_for_half": half_us}
                metrics["half_over_memory"] = half_us / memory_us
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 100_000)
