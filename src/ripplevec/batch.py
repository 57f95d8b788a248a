"""The one thing that flows in: a batch of operations on edges and vertices, as columns.

Row i of a batch says: do `op[i]` to the edge `src[i]`–`dst[i]` with `weight[i]`. Operations are applied in the order
given. For the two vertex operations only `src` counts (`dst` repeats it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from os import PathLike
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, shorten

Id: TypeAlias = int | str
"""What names a vertex. 1 and "1" are different vertices."""

IdColumn: TypeAlias = "NDArray[np.int64] | pa.LargeStringArray | list[Id]"
"""Many ids: int64 when all are such integers, an Arrow string array when all are text, else a list."""


SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-30, 1e30
LARGEST_TIME = 1e100  # before or after zero: any two of them can be subtracted, and divided by a half-life
"""What a weight may be: sums of products with it must stay within single precision."""

PAIRS = "pairs (src, dst) or triples (src, dst, weight)"


class Op(IntEnum):
    """What a row of a batch does."""

    ADD = 0
    REMOVE = 1
    VERTEX = 2
    REMOVE_VERTEX = 3


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations that are applied together, in order, or not at all."""

    src: IdColumn
    dst: IdColumn
    weight: NDArray[np.float64] | None = None
    op: NDArray[np.int8] | None = None
    time: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.src)

    @classmethod
    def of(
        cls,
        src: Any,
        dst: Any,
        weight: Any = None,
        op: Any = None,
        time: Any = None,
    ) -> Batch:
        """A checked batch from columns of any kind (lists, arrays, Arrow); the caller's arrays are not kept."""
        source, target = id_column(src, "src"), id_column(dst, "dst")
        length = len(source)
        if len(target) != length:
            raise InvalidValueError.of("dst", f"{length:,} ids, as many as src", f"{len(target):,} ids")
        operations = None if op is None else _operations(op, length)
        return cls(
            source,
            target if operations is None else _repeat_source(source, target, operations),
            None if weight is None else weight_column(weight, length),
            operations,
            None if time is None else time_column(time, length),
        )

    @classmethod
    def from_any(cls, edges: Any, *, op: Op = Op.ADD, directed: bool = False) -> Batch:
        """A batch from what people have: pairs or triples, arrays, sparse matrices, graphs of other libraries, frames.

        The graphs are those of NetworkX, igraph (by `name` where vertices have one) and PyTorch Geometric.
        """
        if isinstance(edges, Batch):  # perhaps not made by `of`, and kernels do not look at bounds
            return cls.of(edges.src, edges.dst, edges.weight, edges.op, edges.time)
        if hasattr(edges, "tocoo"):
            return _from_sparse(edges, op, directed)
        if hasattr(edges, "adj") and hasattr(edges, "nodes"):
            return _from_networkx(edges, op)
        if hasattr(edges, "vs") and hasattr(edges, "es"):
            return _from_igraph(edges, op)
        if hasattr(edges, "edge_index") and hasattr(edges, "num_nodes"):
            return _from_sparse(_matrix(edges), op, directed)
        if hasattr(edges, "columns") or isinstance(edges, pa.Table | pa.RecordBatch):
            return _from_frame(edges, op)
        if isinstance(edges, np.ndarray):
            return _from_array(edges, op)
        return _from_rows(edges, op)

    @classmethod
    def arrival(cls, vertex: Id, neighbors: Sequence[Id], weights: Any = None, time: float | None = None) -> Batch:
        """One vertex with its edges (perhaps none)."""
        column = id_column(neighbors, "neighbors")
        shares = None if weights is None else weight_column(weights, len(column))
        rows = max(len(column), 1)
        times = None if time is None else time_column([time] * rows, rows)
        if not len(column):
            return replace(cls.vertices([vertex]), time=times)
        return cls(id_column([vertex] * len(column), "vertex"), column, shares, time=times)

    @classmethod
    def vertices(cls, ids: Any, op: Op = Op.VERTEX) -> Batch:
        """Vertices without edges, or vertices to remove."""
        column = id_column(ids, "ids")
        return cls(column, column, op=np.full(len(column), op, np.int8))


def arrival_columns(
    vertex: Id, neighbors: Sequence[Id], weights: Any
) -> tuple[Sequence[Id], IdColumn, NDArray[np.float64] | None]:
    """The neighbors of a newcomer as a sequence, the ids of all of them as a column, itself first, and the weights."""
    if not isinstance(neighbors, list | tuple):
        neighbors = ids_to_list(id_column(neighbors, "neighbors"))
    column = id_column([vertex, *neighbors], "vertex and neighbors")
    return neighbors, column, None if weights is None else weight_column(weights, len(neighbors))


def id_column(values: Any, name: str = "ids") -> IdColumn:
    """Ids as a column, or an error that names the first value that cannot be an id."""
    if type(values) is list:
        return _id_list(values, name)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidValueError.of(name, "a one-dimensional column of ids", f"an array of shape {values.shape}")
        return _id_array(values, name)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _id_arrow(values, name)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidValueError.of(name, "a list or column of ids", values)
    return _id_list(list(values), name)


def _id_array(values: NDArray[Any], name: str) -> IdColumn:
    if values.dtype.kind == "i" or (values.dtype.kind == "u" and (not values.size or int(values.max()) < 2**63)):
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) <= 2.0**53)
        if whole.all():
            return values.astype(np.int64)
        raise InvalidValueError.of(name, "ids that are int or str", float(values[~whole][0]))
    if values.dtype.kind in "mM":  # as a list, nanoseconds would pass for integers
        raise InvalidValueError.of(name, "ids that are int or str", f"an array of {values.dtype}")
    return _id_list(values.tolist(), name)


def _id_arrow(values: pa.Array | pa.ChunkedArray, name: str) -> IdColumn:
    if not len(values):
        return np.empty(0, np.int64)
    if values.null_count:
        raise InvalidValueError.of(name, "an id in every row", f"{values.null_count:,} empty values")
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return _id_array(values.to_numpy(zero_copy_only=False), name)
    raise InvalidValueError.of(name, "ids that are int or str", f"a column of type {values.type}")


def _id_list(values: list[Any], name: str) -> IdColumn:
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:  # beyond 64 bits
            return list(values)
    if kinds == {str}:
        try:
            return pa.array(values, pa.large_string())
        except UnicodeEncodeError as error:
            raise InvalidValueError.of(name, "text that can be written as UTF-8", error.object) from None
    if not values:
        return np.empty(0, np.int64)
    plain: list[Id] = [normalize_id(value, name) for value in values]
    return plain if kinds <= {int, str} else _id_list(plain, name)


def normalize_id(value: Any, name: str) -> Id:
    """One id as a plain int or str, or an error that says why it cannot be one."""
    if isinstance(value, str):
        plain = str.__str__(value)  # the text itself, where a subclass would show another
        try:
            plain.encode()
        except UnicodeEncodeError:
            raise InvalidValueError.of(name, "text that can be written as UTF-8", plain) from None
        return plain
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_):
        return int(value)
    raise InvalidValueError.of(name, "ids that are int or str", f"{shorten(value)} of type {type(value).__name__}")


def _numbers(name: str, values: Any, length: int) -> NDArray[np.float64]:
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        expected = "numbers, or dates as datetime64" if name == "time" else "numbers"
        raise InvalidValueError.of(name, expected, values) from error
    if column.shape != (length,):
        raise InvalidValueError.of(name, f"{length:,} values, one per row", f"shape {column.shape}")
    return column


def weight_column(values: Any, length: int) -> NDArray[np.float64]:
    """Weights as a column, or an error that names the first one that cannot be a weight."""
    column = _numbers("weight", values, length)
    with np.errstate(over="ignore", under="ignore"):
        stored = column.astype(np.float32)
    bad = ~((stored >= SMALLEST_WEIGHT) & (stored <= LARGEST_WEIGHT))
    if bad.any():
        row = int(bad.argmax())
        limits = f" from {SMALLEST_WEIGHT:g} to {LARGEST_WEIGHT:g}" if 0 < stored[row] < np.inf else ""
        raise InvalidValueError.of("weight", f"positive finite numbers{limits}", f"{column[row]} in row {row}")
    return column


def time_column(values: Any, length: int) -> NDArray[np.float64]:
    """Times as a column, NaN where an event has none, or an error that names the first one that is too far away."""
    column = _numbers("time", _seconds(values), length)
    far = np.abs(column) > LARGEST_TIME
    if far.any():
        row, expected = int(far.argmax()), f"finite numbers up to {LARGEST_TIME:g}, or NaN for no time"
        raise InvalidValueError.of("time", expected, f"{column[row]} in row {row}")
    return column


def _seconds(values: Any) -> Any:
    """Dates as seconds, whatever they are counted in, as they are read from files; NaN for none. Others stay."""
    try:
        dates = np.asarray(values)
    except ValueError:  # no column at all
        return values
    if dates.dtype.kind != "M":
        return values
    return np.where(np.isnat(dates), np.nan, dates.astype("M8[us]").astype(np.int64) / 1e6)


def times_to_json(column: NDArray[np.float64]) -> list[float | None]:
    """Times as JSON has them: None where an event has none."""
    return [None if np.isnan(time) else time for time in column.tolist()]


def _operations(values: Any, length: int) -> NDArray[np.int8]:
    column = _numbers("op", values, length)
    bad = ~np.isin(column, [op.value for op in Op])
    if bad.any():
        choices = ", ".join(f"{op.value} ({op.name})" for op in Op)
        raise InvalidValueError.of("op", f"one of {choices}", float(column[int(bad.argmax())]))
    return column.astype(np.int8)


def _repeat_source(src: IdColumn, dst: IdColumn, op: NDArray[np.int8]) -> IdColumn:
    """The targets, but for the operations on vertices, of which only the source counts."""
    alone = op >= Op.VERTEX
    if not alone.any():
        return dst
    return take_ids(concat_ids(dst, src), np.arange(len(op)) + np.where(alone, len(op), 0))


def _fill(op: Op, length: int) -> NDArray[np.int8] | None:
    return None if op == Op.ADD else np.full(length, op, np.int8)


def _from_rows(rows: Any, op: Op) -> Batch:
    if isinstance(rows, str | bytes | dict) or not isinstance(rows, Iterable):
        file = "; a file is read with ripplevec.io.open_edges" if isinstance(rows, str | PathLike) else ""
        raise InvalidValueError(f"{InvalidValueError.of('edges', PAIRS, rows)}{file}")
    rows = list(rows)
    if not rows:
        return Batch.of([], [])
    for number, row in enumerate(rows):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray) or len(row) not in (2, 3):
            timed = isinstance(row, list | tuple) and len(row) == 4
            times = "; times go with Batch.of(src, dst, weight, time=…)" if timed else ""
            raise InvalidValueError(f"{InvalidValueError.of('edges', PAIRS, f'{shorten(row)} in row {number}')}{times}")
    src, dst = [row[0] for row in rows], [row[1] for row in rows]
    weighted = op == Op.ADD and any(len(row) == 3 for row in rows)
    weights = [row[2] if len(row) == 3 else 1.0 for row in rows] if weighted else None
    return Batch.of(src, dst, weights, _fill(op, len(rows)))


def _from_array(edges: NDArray[Any], op: Op) -> Batch:
    if edges.ndim != 2 or edges.shape[1] not in (2, 3):
        raise InvalidValueError.of("edges", "an array of shape (m, 2) or (m, 3)", f"shape {edges.shape}")
    weights = edges[:, 2] if edges.shape[1] == 3 and op == Op.ADD else None
    return Batch.of(edges[:, 0], edges[:, 1], weights, _fill(op, len(edges)))


def _from_frame(frame: Any, op: Op) -> Batch:
    table = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
    names = list(table.column_names if isinstance(table, pa.Table | pa.RecordBatch) else table.columns)
    if "src" not in names or "dst" not in names:
        raise InvalidValueError.of("edges", "columns src, dst[, weight, op, time]", f"columns {names}")
    columns: dict[str, Any] = {name: _column(table[name]) for name in Batch.__slots__ if name in names}
    return Batch.of(**{"op": _fill(op, len(table)), **columns})


def _column(column: Any) -> Any:
    """A column of pandas as an array, which may hold ids of both kinds; one of Arrow as it is."""
    return column if isinstance(column, pa.Array | pa.ChunkedArray) else column.to_numpy()


def _from_sparse(matrix: Any, op: Op, directed: bool) -> Batch:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError.of("edges", "a square sparse matrix", f"shape {matrix.shape}")
    matrix = matrix.tocsr().copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not directed and (matrix != matrix.T).nnz == 0:  # each undirected edge stands in it twice
        matrix = _upper(matrix)
    entries = matrix.tocoo()
    weights = None if (entries.data == 1).all() else entries.data
    edges = Batch.of(entries.row, entries.col, weights, _fill(op, entries.nnz))
    return _after_vertices(np.arange(matrix.shape[0]), edges) if op == Op.ADD else edges


def _upper(matrix: Any) -> Any:
    from scipy.sparse import triu

    return triu(matrix, format="csr")


def _from_networkx(graph: Any, op: Op) -> Batch:
    rows = list(graph.edges(data="weight", default=1.0))
    edges = Batch.of([u for u, _, _ in rows], [v for _, v, _ in rows], [w for _, _, w in rows], _fill(op, len(rows)))
    return _after_vertices(list(graph.nodes), edges) if op == Op.ADD else edges


def _from_igraph(graph: Any, op: Op) -> Batch:
    names = list(graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount()))
    ends = [(names[source], names[target]) for source, target in graph.get_edgelist()]
    weights = list(graph.es["weight"]) if "weight" in graph.es.attributes() else None
    edges = Batch.of([u for u, _ in ends], [v for _, v in ends], weights, _fill(op, len(ends)))
    return _after_vertices(names, edges) if op == Op.ADD else edges


def _matrix(data: Any) -> Any:
    """The graph of PyTorch Geometric, where an undirected edge stands in both directions, as a sparse matrix."""
    from scipy.sparse import coo_array

    source, target = data.edge_index.cpu().numpy()
    weight = getattr(data, "edge_weight", None)
    weights = np.ones(len(source)) if weight is None else weight.detach().cpu().numpy().astype(np.float64)
    return coo_array((weights, (source, target)), shape=(data.num_nodes, data.num_nodes))


def _after_vertices(names: Any, edges: Batch) -> Batch:
    """The edges behind a mention of every vertex, so that those without edges exist and the order is kept."""
    vertices = Batch.vertices(names)
    weight = None if edges.weight is None else np.concatenate([np.ones(len(vertices)), edges.weight])
    op = np.repeat(np.array([Op.VERTEX, Op.ADD], np.int8), [len(vertices), len(edges)])
    return Batch(concat_ids(vertices.src, edges.src), concat_ids(vertices.dst, edges.dst), weight, op)


def concat_ids(first: IdColumn, second: IdColumn) -> IdColumn:
    """Two columns of ids, one after the other."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    if isinstance(first, pa.Array) and isinstance(second, pa.Array):
        return pa.concat_arrays([first, second])
    if not len(first):
        return second
    if not len(second):
        return first
    return ids_to_list(first) + ids_to_list(second)


def ids_to_list(column: IdColumn) -> list[Id]:
    """A column of ids as plain Python ints and strs."""
    return list(column) if isinstance(column, list) else cast(list[Id], column.tolist())


def take_ids(column: IdColumn, rows: NDArray[np.int64] | slice) -> IdColumn:
    """Some rows of a column of ids."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, pa.Array):
        return column[rows] if isinstance(rows, slice) else column.take(pa.array(rows))
    return column[rows] if isinstance(rows, slice) else [column[row] for row in rows]


def select_rows(batch: Batch, rows: NDArray[np.int64] | slice) -> Batch:
    """Some rows of a batch, in the order given."""
    extra = (None if column is None else column[rows] for column in (batch.weight, batch.op, batch.time))
    return Batch(take_ids(batch.src, rows), take_ids(batch.dst, rows), *extra)  # type: ignore[arg-type]
