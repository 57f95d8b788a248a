"""How fast names become rows and rows names, on one core, and what they take; beside a dict and beside pandas.

    python benchmarks/ids.py [--ids 1000000] [--json FILE]

Names arrive in random order and are asked for in another, all in one call, on one thread; a rate is the best of three.
A dict and pandas, which have a Python object per text, are asked for a million of the names, and so are we beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _report import run, seconds
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, ids_to_list, take_ids
from ripplevec.graph.id_table import IdTable

COMPARED = 1_000_000


def measure(n: int) -> dict[str, Any]:
    """All figures, for integers spread over 63 bits and for texts such as user-1234."""
    order = np.random.default_rng(0).permutation(n - n % 2)
    figures: dict[str, Any] = {"ids": len(order)}
    for kind, named in ("int", integers), ("text", texts):
        found = one_kind(named(order, 0), named(order, 1))
        figures |= {f"{kind}_{name}": value for name, value in found.items()}
    return figures


def integers(order: NDArray[np.int64], shift: int) -> IdColumn:
    """An integer for each number; other shifts give other integers."""
    return order * (2**63 // len(order)) + shift


def texts(order: NDArray[np.int64], shift: int) -> IdColumn:
    """A text for each number, without a Python object each; other shifts give other texts."""
    digits = pa.array(10 * order + shift).cast(pa.large_string())
    return pc.binary_join_element_wise(pa.scalar("user", pa.large_string()), digits, pa.scalar("-", pa.large_string()))


def one_kind(names: IdColumn, others: IdColumn) -> dict[str, float]:
    """Rates both ways, bytes per name, and how many times as fast as others look-ups are."""
    n, rng = len(names), np.random.default_rng(1)
    rows = rng.permutation(n)
    known, unknown, pairs = take_ids(names, rows), take_ids(others, rows), in_pairs(names)
    ids = grown(*pairs)  # compiles what has not been compiled yet
    check(ids, known, unknown, rows)
    few = take_ids(names, slice(0, COMPARED))
    return {
        "look_ups_per_second": n / seconds(lambda: ids.find_rows(known)),
        "unknown_look_ups_per_second": n / seconds(lambda: ids.find_rows(unknown)),
        "new_names_per_second": n / seconds(lambda: grown(*pairs)),
        "rows_to_names_per_second": n / seconds(lambda: ids.to_column(rows)),
        "bytes_per_id": ids.nbytes / n,
        **beside_others(few, take_ids(few, rng.permutation(len(few)))),
    }


def in_pairs(names: IdColumn) -> tuple[IdColumn, IdColumn]:
    """Names as the ends of edges, so that the first mention of each is in the order given."""
    return take_ids(names, np.arange(0, len(names), 2)), take_ids(names, np.arange(1, len(names), 2))


def grown(src: IdColumn, dst: IdColumn) -> IdTable:
    """A table that began empty and has been given these names."""
    ids = IdTable()
    ids.intern(src, dst)
    return ids


def check(ids: IdTable, known: IdColumn, unknown: IdColumn, rows: NDArray[np.int64]) -> None:
    """Rates of wrong answers are worth nothing."""
    found = np.array_equal(ids.find_rows(known), rows) and (ids.find_rows(unknown) == -1).all()
    named = pa.array(ids.to_column(rows)).equals(pa.array(known))
    if not (found and named):
        raise RuntimeError("a name has another row, or a row another name, than it was given")


def beside_others(names: IdColumn, queries: IdColumn) -> dict[str, float]:
    """How many times as long a dict and pandas take for the same look-ups."""
    ids = grown(*in_pairs(names))
    ours = seconds(lambda: ids.find_rows(queries))
    plain, wanted = {name: row for row, name in enumerate(ids_to_list(names))}, ids_to_list(queries)
    ratios = {"over_dict": seconds(lambda: [plain.get(name, -1) for name in wanted]) / ours}
    try:
        import pandas as pd
    except ImportError:
        return ratios
    index, asked = pd.Index(ids_to_list(names)), pd.Index(wanted)
    index.get_indexer(asked[:1])  # builds its hash table
    return {**ratios, "over_pandas": seconds(lambda: index.get_indexer(asked)) / ours}


if __name__ == "__main__":
    run(__doc__, measure, "ids", 1_000_000)
