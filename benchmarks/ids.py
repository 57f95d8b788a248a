"""Benchmark of the id table: ids to rows and rows to ids on one core, and its memory; compared with dict and pandas.

    python benchmarks/ids.py [--ids 1000000] [--json FILE]

Ids are added in random order and looked up in another, all in one call on one thread; a rate is the best of three.
dict and pandas, which store a Python object per text, look up a million of the ids; the id table is compared with them
on the same ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _report import best_seconds, run_benchmark
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, ids_to_list, take_ids
from ripplevec.graph.id_table import IdTable

COMPARED_IDS = 1_000_000


def measure(n: int) -> dict[str, Any]:
    """Measure integers spread over 63 bits and texts such as user-1234."""
    order = np.random.default_rng(0).permutation(n - n % 2)
    metrics: dict[str, Any] = {"ids": len(order)}
    for kind, create_ids in ("int", create_integers), ("text", create_texts):
        results = measure_ids(create_ids(order, 0), create_ids(order, 1))
        metrics |= {f"{kind}_{name}": value for name, value in results.items()}
    return metrics


def create_integers(order: NDArray[np.int64], shift: int) -> IdColumn:
    """Return an integer for each number; different shifts give different integers."""
    return order * (2**63 // len(order)) + shift


def create_texts(order: NDArray[np.int64], shift: int) -> IdColumn:
    """Return a text for each number as an Arrow array; different shifts give different texts."""
    digits = pa.array(10 * order + shift).cast(pa.large_string())
    return pc.binary_join_element_wise(pa.scalar("user", pa.large_string()), digits, pa.scalar("-", pa.large_string()))


def measure_ids(ids: IdColumn, unknown_ids: IdColumn) -> dict[str, float]:
    """Measure rates in both directions, bytes per id, and lookups relative to dict and pandas."""
    n, rng = len(ids), np.random.default_rng(1)
    rows = rng.permutation(n)
    known, unknown, endpoints = take_ids(ids, rows), take_ids(unknown_ids, rows), split_endpoints(ids)
    table = create_table(*endpoints)  # compiles
    check_table(table, known, unknown, rows)
    compared = take_ids(ids, slice(0, COMPARED_IDS))
    return {
        "look_ups_per_second": n / best_seconds(lambda: table.find_rows(known)),
        "unknown_look_ups_per_second": n / best_seconds(lambda: table.find_rows(unknown)),
        "new_names_per_second": n / best_seconds(lambda: create_table(*endpoints)),
        "rows_to_names_per_second": n / best_seconds(lambda: table.to_column(rows)),
        "bytes_per_id": table.nbytes / n,
        **compare_with_others(compared, take_ids(compared, rng.permutation(len(compared)))),
    }


def split_endpoints(ids: IdColumn) -> tuple[IdColumn, IdColumn]:
    """Return the ids as endpoints of edges, so that they first occur in the given order."""
    return take_ids(ids, np.arange(0, len(ids), 2)), take_ids(ids, np.arange(1, len(ids), 2))


def create_table(src: IdColumn, dst: IdColumn) -> IdTable:
    """Return a new table with these ids."""
    table = IdTable()
    table.intern(src, dst)
    return table


def check_table(table: IdTable, known: IdColumn, unknown: IdColumn, rows: NDArray[np.int64]) -> None:
    """Check that lookups are right in both directions."""
    rows_match = np.array_equal(table.find_rows(known), rows) and (table.find_rows(unknown) == -1).all()
    ids_match = pa.array(table.to_column(rows)).equals(pa.array(known))
    if not (rows_match and ids_match):
        raise RuntimeError("wrong lookup: an id has another row, or a row another id, than was assigned")


def compare_with_others(ids: IdColumn, queries: IdColumn) -> dict[str, float]:
    """Return the time of the same lookups in a dict and in pandas, relative to the id table."""
    table = create_table(*split_endpoints(ids))
    table_seconds = best_seconds(lambda: table.find_rows(queries))
    rows, query_list = {name: row for row, name in enumerate(ids_to_list(ids))}, ids_to_list(queries)
    ratios = {"over_dict": best_seconds(lambda: [rows.get(name, -1) for name in query_list]) / table_seconds}
    try:
        import pandas as pd
    except ImportError:
        return ratios
    index, query_index = pd.Index(ids_to_list(ids)), pd.Index(query_list)
    index.get_indexer(query_index[:1])  # builds its hash table
    return {**ratios, "over_pandas": best_seconds(lambda: index.get_indexer(query_index)) / table_seconds}


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "ids", 1_000_000)
