"""How fast names become rows: look-ups per second of `Ids`, and the ratio over a dict and over pandas."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ripplet.events import IdColumn, as_list, id_column, take
from ripplet.graph.ids import Ids


def main(n: int = 1_000_000) -> None:
    """Print one line per kind of name."""
    numbers = np.random.default_rng(0).permutation(10 * n)[:n]
    print(f"{'names':8}{'look-ups/s':>14}{'intern/s':>14}{'over dict':>12}{'over pandas':>14}{'bytes/name':>12}")
    for kind, names in ("int", id_column(numbers)), ("str", id_column([f"user-{number}" for number in numbers])):
        print(f"{kind:8}" + _line(names))


def _line(names: IdColumn) -> str:
    n = len(names)
    queries = take(names, np.random.default_rng(1).permutation(n))
    _grown(take(names, slice(0, 100))).find(take(queries, slice(0, 100)))  # compiles
    interning = _seconds(lambda: _grown(names))
    ids = _grown(names)
    finding = _seconds(lambda: ids.find(queries))
    plain = dict(zip(as_list(names), range(n), strict=True))
    wanted = as_list(queries)
    by_dict = _seconds(lambda: [plain.get(name, -1) for name in wanted])
    by_pandas = _pandas_seconds(names, queries)
    over_pandas = f"{by_pandas / finding:.1f}" if by_pandas else "-"
    rates = f"{n / finding:14,.0f}{n / interning:14,.0f}"
    return f"{rates}{by_dict / finding:12.1f}{over_pandas:>14}{ids.nbytes / n:12.0f}"


def _grown(names: IdColumn) -> Ids:
    ids, half = Ids(), len(names) // 2
    ids.intern(take(names, slice(0, half)), take(names, slice(half, 2 * half)))
    return ids


def _pandas_seconds(names: IdColumn, queries: IdColumn) -> float | None:
    try:
        import pandas as pd
    except ImportError:
        return None
    index, wanted = pd.Index(as_list(names)), pd.Index(as_list(queries))
    index.get_indexer(wanted[:1])  # builds its hash table
    return _seconds(lambda: index.get_indexer(wanted))


def _seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least of a few timings: what the work takes when nothing else does."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
