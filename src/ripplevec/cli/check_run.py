"""The work of `ripplevec check`: read an edge file, describe its graph, and give advice."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ripplevec.batch import Batch, IdColumn, Op, concat_ids, select_rows
from ripplevec.cli.console import format_count
from ripplevec.edge_lists import POSITIONAL_COLUMNS
from ripplevec.errors import HeaderWarning
from ripplevec.io.readers.edge_files import open_edges
from ripplevec.io.readers.edge_rows import FileColumns
from ripplevec.io.readers.option_syntax import as_flags
from ripplevec.io.rebatch import concatenate
from ripplevec.parameter_docs import describe_parameters

START_SHARE = 0.3  # of `ripplevec embed`


def describe_file(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return what a file contains, as JSON data; rows that cannot be read are counted."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HeaderWarning)
        reader = open_edges(path, on_error="skip", syntax=as_flags, **options)
        rows = concatenate(list(reader))
    added = rows if rows.op is None else select_rows(rows, np.flatnonzero(rows.op == Op.ADD))
    report = {
        "rows": len(rows) + reader.skipped,
        "skipped": reader.skipped,
        "skipped_rows": reader.skipped_rows,
        "first_problem": reader.first_problem,
        "columns": [name for name in ("src", "dst", "weight", "op", "time") if getattr(rows, name) is not None],
        "column_names": _name_columns(rows, reader.columns),
        "ignored_columns": reader.columns.ignored,
        "ids": _describe_ids(concat_ids(rows.src, rows.dst)),
        "weights": _range(rows.weight),
        "times": _range(rows.time),
        "sorted_by_time": rows.time is None or bool((np.diff(rows.time) >= 0).all()),
        **describe_graph(added),
    }
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, HeaderWarning)]
    return report | {"advice": notes + _advise(report)}


def _name_columns(rows: Batch, columns: FileColumns) -> dict[str, str]:
    """Return the file's name of each column. JSON lists have none, so their columns are called `field 1` and so on."""
    fields = {column: f"field {number}" for number, column in enumerate(POSITIONAL_COLUMNS, 1)} | columns.used
    return {column: name for column, name in fields.items() if getattr(rows, column) is not None}


def describe_graph(edges: Batch) -> dict[str, Any]:
    """Return the sizes of the undirected graph: vertices, edges, repeated edges, self-loops, components, sides."""
    count = len(edges)
    codes = _encode(concat_ids(edges.src, edges.dst))
    src, dst = codes[:count], codes[count:]
    vertices = int(codes.max()) + 1 if count else 0
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    is_loop = low == high
    pairs = np.unique(low[~is_loop] * np.int64(vertices) + high[~is_loop])
    left, right = np.divmod(pairs, max(vertices, 1))
    components, labels = _find_components(left, right, vertices)
    # The double cover of a component has two components if and only if the component is bipartite.
    cover, _ = _find_components(np.append(left, left + vertices), np.append(right + vertices, right), 2 * vertices)
    return {
        "vertices": vertices,
        "edges": int(pairs.size),
        "repeated": int(count - is_loop.sum() - pairs.size),
        "self_loops": int(is_loop.sum()),
        "components": components,
        "largest": int(np.bincount(labels).max()) if vertices else 0,
        "bipartite": cover == 2 * components,
        "sides_are_columns": count > 0 and not np.intersect1d(src, dst).size,
    }


def _find_components(src: NDArray[np.int64], dst: NDArray[np.int64], vertices: int) -> tuple[int, NDArray[np.int32]]:
    matrix = coo_array((np.ones(src.size, np.int8), (src, dst)), shape=(vertices, vertices))
    count, labels = connected_components(matrix, directed=False)
    return int(count), labels


def _encode(ids: IdColumn) -> NDArray[np.int64]:
    """Return a number from 0 for every id; equal ids have equal numbers."""
    if isinstance(ids, np.ndarray):
        return np.unique(ids, return_inverse=True)[1].astype(np.int64)
    if isinstance(ids, pa.Array):
        return np.asarray(ids.dictionary_encode().indices.to_numpy(), np.int64)
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(vertex, len(numbers)) for vertex in ids], np.int64)


def _describe_ids(ids: IdColumn) -> str:
    if isinstance(ids, np.ndarray):
        return "integers"
    if not isinstance(ids, list):
        return "text"
    return "integers and text" if any(isinstance(vertex, str) for vertex in ids) else "integers"


def _range(column: NDArray[np.float64] | None) -> list[float] | None:
    known = None if column is None else column[~np.isnan(column)]
    return None if known is None or not known.size else [float(known.min()), float(known.max())]


def _advise(report: dict[str, Any]) -> list[str]:
    """Return what to know or to change before embedding the file."""
    dim = int(describe_parameters()["dim"].default or 0)
    start = round(START_SHARE * (report["rows"] - report["skipped"]))
    first = "row" if start == 1 else format_count(start, "row")
    streams = f"starts with the first {first} and streams the others" if start else "streams all rows"
    advice = [f"`ripplevec embed` {streams} (--start)."]
    if report["skipped"]:
        rows = ", ".join(f"{row:,}" for row in report["skipped_rows"])
        advice.append(f"Correct the rows that cannot be read, the first: {rows}; or skip them with --on-error skip.")
        advice.append(f"The first row that cannot be read is {report['first_problem']}.")
    if report["repeated"]:
        advice.append("Weights of repeated edges are added; --duplicates ignore or replace does not add them.")
    if report["self_loops"]:
        advice.append("Self-loops are ignored.")
    if not report["sorted_by_time"]:
        advice.append("Times are not in order: name their column with --time, and edges are sorted by it.")
    if report["sides_are_columns"]:
        advice.append("No id is in both columns, as for users and items; see the page on bipartite graphs.")
    if report["vertices"] < 2 * dim:
        advice.append(f"The graph is small for {dim} dimensions: use --dim {max(2, report['vertices'] // 4)}.")
    return advice
