"""Exact search: milliseconds per query at 100,000 × 128, and the ratio over NumPy's product and argpartition."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from ripplevec.search.exact import nearest
from ripplevec.views._kernels import ViewScaling

ROWS, COLUMNS, COUNT, REPEATS = 100_000, 128, 10, 7


def milliseconds(work: Callable[[], object]) -> float:
    """The best of some runs, after one to warm up."""
    work()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def main() -> None:
    """Time one query and a batch of 32 against NumPy on the same machine, in the same run."""
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    queries = draw.standard_normal((32, COLUMNS), dtype=np.float32)
    alive, scaling = np.ones(ROWS, np.bool_), ViewScaling(np.array([0, 64, COLUMNS]), np.ones(2), np.full(2, 0.5))
    numpy = milliseconds(lambda: np.argpartition(rows @ queries[0], -COUNT)[-COUNT:])
    print(f"numpy product + argpartition, plain dot, one query: {numpy:.2f} ms")
    for threads in (1, 2):
        for size in (1, len(queries)):
            search = partial(nearest, rows, alive, queries[:size], scaling, COUNT, None, threads)
            each = milliseconds(search) / size
            print(
                f"ripplevec, {threads} thread(s), {size:2d} at once: {each:.2f} ms a query, {each / numpy:.2f} × numpy"
            )


if __name__ == "__main__":
    main()
