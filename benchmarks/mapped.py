"""Vectors in a file instead of in memory: what an arrival costs then, and what it costs when memory holds half of them.

    python benchmarks/mapped.py [--vertices 100000] [--json FILE]

Five edges an arrival, to anybody: the worst case, because any row may be read next. Each way in a process of its own.
The limit on memory is that of a control group, for which one has to be root on Linux; without, it is left out.
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

from _memory import memory
from _report import run
from roofline import DEGREE, DIM, MEASURED, START, growing_edges

from ripplevec import Embedder

AT_ONCE = 1_000
GROUPS = {"memory.limit_in_bytes": Path("/sys/fs/cgroup/memory"), "memory.max": Path("/sys/fs/cgroup")}


def stream(vertices: int, directory: str | None) -> tuple[float, float]:
    """Microseconds of an arrival in the last tenth of a stream, and the megabytes this process grew by."""
    edges, first, spent, before = growing_edges(vertices), START * DEGREE, 0.0, memory("VmRSS")
    model = Embedder(dim=DIM, anchor_growth=0, storage_dir=directory, threads=1).fit(edges[:first])
    late = int(len(edges) * (1 - MEASURED))
    for place in range(first, len(edges), AT_ONCE * DEGREE):
        began = time.perf_counter()
        model.partial_fit(edges[place : place + AT_ONCE * DEGREE])
        spent += time.perf_counter() - began if place >= late else 0.0
    return 1e6 * spent * DEGREE / (len(edges) - late), memory("VmRSS") - before


def join(group: Path | None) -> None:
    """Make this process one of a control group, which from then on counts what it takes in addition."""
    if group is not None:
        (group / "cgroup.procs").write_text(str(os.getpid()))


def apart(vertices: int, directory: str | None, group: Path | None = None) -> tuple[float, float]:
    """`stream` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=join, initargs=(group,)) as pool:
        return pool.submit(stream, vertices, directory).result()


@contextmanager
def limited(megabytes: float) -> Iterator[Path | None]:
    """A control group that may take so much memory, None where there can be none."""
    there = [
        (root / f"ripplevec-{os.getpid()}", name) for name, root in GROUPS.items() if (root / "cgroup.procs").exists()
    ]
    if not there:
        yield None
        return
    group, limit = there[0]
    try:
        group.mkdir()
        (group / limit).write_text(str(int(megabytes * 2**20)))
    except OSError:  # nobody's to make, or without a limit
        yield None
    else:
        yield group
    finally:
        with suppress(OSError):
            group.rmdir()


def measure(vertices: int) -> dict[str, Any]:
    """An arrival in memory, in a file, and in a file of which half has room."""
    vectors = vertices * DIM * 4 / 2**20
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
        inside, taken = apart(vertices, None)
        cached, _ = apart(vertices, directory)
        figures = {
            "vertices": vertices,
            "vectors_mb": vectors,
            "us_in_memory": inside,
            "us_in_a_file": cached,
            "file_over_memory": cached / inside,
        }
        with limited(taken - vectors / 2) as group:
            if group is not None:
                half, _ = apart(vertices, directory, group)
                figures |= {"limit_mb": taken - vectors / 2, "us_with_room_for_half": half}
                figures["half_over_memory"] = half / inside
    return figures


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 100_000)
