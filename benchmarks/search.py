"""Benchmark of exact search: milliseconds per query at 100,000 × 128, relative to NumPy's product and argpartition."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from ripplevec.search.exact import nearest
from ripplevec.views._kernels import ViewScaling

ROWS, COLUMNS, COUNT, REPEATS = 100_000, 128, 10, 7


def best_milliseconds(function: Callable[[], object]) -> float:
    """Return the shortest of several timings, after one call to warm up."""
    function()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def main() -> None:
    """Time one query and a batch of 32, and compare with NumPy in the same run."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    queries = rng.standard_normal((32, COLUMNS), dtype=np.float32)
    alive, scaling = np.ones(ROWS, np.bool_), ViewScaling(np.array([0, 64, COLUMNS]), np.ones(2), np.full(2, 0.5))
    numpy_ms = best_milliseconds(lambda: np.argpartition(rows @ queries[0], -COUNT)[-COUNT:])
    print(f"NumPy product + argpartition, dot product, one query: {numpy_ms:.2f} ms")
    for threads in (1, 2):
        for size in (1, len(queries)):
            search = partial(nearest, rows, alive, queries[:size], scaling, COUNT, None, threads)
            query_ms = best_milliseconds(search) / size
            ratio = query_ms / numpy_ms
            print(
                f"ripplevec, {threads} thread(s), {size:2d} at once: {query_ms:.2f} ms per query, {ratio:.2f} × NumPy"
            )


if __name__ == "__main__":
    main()
