"""Batches of graph operations, and the checks of their columns: ids, weights, operations and times.

Row i of a batch applies the operation `op[i]` to the edge `src[i]`–`dst[i]` with weight `weight[i]`. Operations are
applied in the order given. The two vertex operations use `src` only (`dst` repeats it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, TypeAlias, cast
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ripplevec.edge_lists import (
    ArrowColumnLike,
    GeometricDataLike,
    IGraphLike,
    NetworkXGraphLike,
    SparseMatrixLike,
    TableColumns,
    TableLike,
    read_edge_list,
)
from ripplevec.errors import InvalidValueError, shorten
from ripplevec.times import EXPECTED_TIMES, TimeLike, times_to_numbers

Id: TypeAlias = int | str
"""The id of a vertex. The integer 1 and the string "1" are different ids."""

IdColumn: TypeAlias = "NDArray[np.int64] | pa.LargeStringArray | list[Id]"
"""A checked column of ids: an int64 array, an Arrow array of strings, or a list of mixed or very large ids."""

MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e30
"""Bounds of an edge weight: sums of products of weights must stay within single precision."""

MAX_TIME = 1e100
"""Bound of the absolute value of a time: differences of times, and their quotients by a half-life, must be finite."""

NO_NEIGHBORS: tuple[Id, ...] = ()  # default of parameters called `neighbors`

IdsLike: TypeAlias = Iterable[Id] | NDArray[Any] | ArrowColumnLike
"""Anything that is a column of ids: a list, a NumPy array, a pandas series, an Arrow array."""

EdgeListLike: TypeAlias = (
    "Batch | Iterable[Sequence[Any] | NDArray[Any]] | NDArray[Any] | SparseMatrixLike | TableLike "
    "| NetworkXGraphLike | IGraphLike | GeometricDataLike"
)
"""Anything that is a list of edges; see `Batch.from_any`."""


class Op(IntEnum):
    """Operation that a row of a `Batch` applies.

    Attributes
    ----------
    ADD
        Add the edge `src`–`dst`. Unknown vertices are created.
    REMOVE
        Remove the edge `src`–`dst`.
    VERTEX
        Create the vertex `src` without edges. A known vertex stays as it is.
    REMOVE_VERTEX
        Remove the vertex `src` with all its edges.

    Examples
    --------
    >>> from ripplevec import Op
    >>> [op.name for op in Op]
    ['ADD', 'REMOVE', 'VERTEX', 'REMOVE_VERTEX']
    """

    ADD = 0
    REMOVE = 1
    VERTEX = 2
    REMOVE_VERTEX = 3


@dataclass(frozen=True, slots=True, eq=False)
class AttributeRows:
    """Checked attributes of vertices, one row per vertex. `ripplevec.attributes.input` creates them."""

    ids: IdColumn  # every vertex once
    values: NDArray[np.float32]  # dense: one line of numbers per vertex; sparse: the non-zero values of all rows
    begin: NDArray[np.int64]  # first value of each row, and the number of all values
    columns: NDArray[np.int32]  # sparse: for each value, the position of its name
    names: IdColumn | None = None  # sparse: the names of attributes, each once; None: dense
    labels: list[str] = field(default_factory=list)  # dense: the names of columns, if they have names

    @property
    def kind(self) -> Literal["sparse", "dense"]:
        """Whether rows have named values or all the same number of values."""
        return "dense" if self.names is None else "sparse"

    @property
    def width(self) -> int | None:
        """Number of values of each dense row; None for sparse rows."""
        return None if self.names is not None else int(self.values.shape[1])

    def check_like(self, kind: str, width: int | None, labels: list[str]) -> None:
        """Raise `InvalidValueError` if these rows do not fit earlier ones of this kind, width and labels."""
        if self.kind != kind:
            raise InvalidValueError.of("attributes", f"{kind} rows, as the rows before", f"{self.kind} rows")
        if self.width != width:
            raise InvalidValueError.of("attributes", f"rows of {width} numbers, as the rows before", self.width)
        if labels and self.labels and self.labels != labels:
            raise InvalidValueError.of("attributes", f"columns {labels}, as the rows before", self.labels)

    def entries(self, row: int, columns: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the attributes and values of one row; `columns` are the attributes of all values, or of a line."""
        if self.names is None:
            return columns, self.values[row]
        part = slice(self.begin[row], self.begin[row + 1])
        return columns[part], self.values[part]


@dataclass(frozen=True, slots=True, init=False)
class Batch:
    """Operations that are applied together, in order: all of them or none.

    The constructor checks its input, so every batch is valid, and code that receives a batch does not check it again.
    Whether the vertices and edges that a batch removes exist depends on the model, which checks it.

    Parameters
    ----------
    src, dst : list, array, series or Arrow array of int or str
        Ids of the two vertices of each row. Rows with a vertex operation use `src` only.
    weight : array_like of float, optional
        Positive finite edge weights, from 1e-30 to 1e30. By default 1.
    op : array_like of Op, optional
        Operations. By default `Op.ADD`.
    time : array_like of float, datetime, datetime64, pandas.Timestamp or str, optional
        Times as numbers in any unit, or dates, also as ISO 8601 text. Dates are converted to seconds since 1970; one
        without a time zone is in UTC. None, NaN or NaT: the row has no time.

    Attributes
    ----------
    src : column of ids
        Source vertex of each row. The columns are copies of the given ones, so a batch does not follow later changes
        of these. Arrays are read-only; a column that is a list must not be modified.
    dst : column of ids
        Target vertex of each row; equal to `src` in rows with a vertex operation.
    weight : float64 array or None
        Edge weight of each row. None: every weight is 1.
    op : int8 array or None
        Operation of each row, a value of `Op`. None: every row adds an edge.
    time : float64 array or None
        Time of each row; NaN in rows without a time. None: no row has a time.
    attributes : AttributeRows or None
        Attributes of vertices, which are set after the operations. None: no attributes.

    Raises
    ------
    InvalidValueError
        If a value cannot be used, or the columns differ in length. The message names the first bad value.

    Examples
    --------
    >>> from ripplevec import Batch, Op
    >>> batch = Batch(["a", "e"], ["c", "d"], op=[Op.REMOVE, Op.ADD])
    >>> len(batch)
    2
    """

    src: IdColumn
    dst: IdColumn
    weight: NDArray[np.float64] | None
    op: NDArray[np.int8] | None
    time: NDArray[np.float64] | None
    attributes: AttributeRows | None

    def __init__(
        self,
        src: IdsLike,
        dst: IdsLike,
        weight: ArrayLike | None = None,
        op: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> None:
        source, target = id_column(src, "src"), id_column(dst, "dst")
        length = len(source)
        if len(target) != length:
            raise InvalidValueError.of("dst", f"{length:,} ids, as many as src", f"{len(target):,} ids")
        operations = None if op is None else _operation_column(op, length)
        self._set_columns(
            source,
            target if operations is None else _repeat_source(source, target, operations),
            None if weight is None else weight_column(weight, length),
            operations,
            None if time is None else time_column(time, length),
            None,
        )

    def _set_columns(self, *columns: Any) -> None:
        for name, column in zip(Batch.__slots__, columns, strict=True):
            object.__setattr__(self, name, _read_only(column) if isinstance(column, np.ndarray) else column)

    def __len__(self) -> int:
        return len(self.src)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to copy and unpickle the batch: its columns stay read-only."""
        return Batch.from_checked_columns, (self.src, self.dst, self.weight, self.op, self.time, self.attributes)

    @classmethod
    def of(
        cls,
        src: IdsLike,
        dst: IdsLike,
        weight: ArrayLike | None = None,
        op: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Batch:
        """Create a batch from columns. The same as the constructor.

        Parameters
        ----------
        src, dst, weight, op, time
            See `Batch`.

        Returns
        -------
        Batch
            The batch.

        Raises
        ------
        InvalidValueError
            If a value cannot be used, or the columns differ in length. The message names the first bad value.

        Examples
        --------
        >>> from ripplevec import Batch
        >>> Batch.of([1, 2], [2, 3], weight=[0.5, 4.0]).weight
        array([0.5, 4. ])
        """
        return cls(src, dst, weight, op, time)

    @classmethod
    def from_checked_columns(
        cls,
        src: IdColumn,
        dst: IdColumn,
        weight: NDArray[np.float64] | None = None,
        op: NDArray[np.int8] | None = None,
        time: NDArray[np.float64] | None = None,
        attributes: AttributeRows | None = None,
    ) -> Batch:
        """Create a batch from columns of other batches, which are neither checked again nor copied.

        Parameters
        ----------
        src, dst, weight, op, time, attributes
            Columns as described under the attributes of `Batch`, of equal length. The batch holds read-only views of
            arrays: the caller must not modify them afterwards.

        Returns
        -------
        Batch
            The batch.

        Examples
        --------
        >>> from ripplevec import Batch
        >>> batch = Batch.of(["a", "b"], ["b", "c"])
        >>> len(Batch.from_checked_columns(batch.dst, batch.src))
        2
        """
        batch = object.__new__(cls)
        batch._set_columns(src, dst, weight, op, time, attributes)
        return batch

    @classmethod
    def from_any(
        cls,
        edges: EdgeListLike,
        *,
        op: Op = Op.ADD,
        directed: bool = False,
        src: Any = None,
        dst: Any = None,
        weight: Any = None,
        time: Any = None,
    ) -> Batch:
        """Create a batch from an edge list in any supported form.

        Parameters
        ----------
        edges : edge list
            One of:

            - pairs `(src, dst)` or triples `(src, dst, weight)`, in any iterable;
            - a NumPy array of shape (m, 2) or (m, 3), unless it may be an adjacency matrix: one of shape (2, 2) or
              (3, 3) that is symmetric, has a diagonal of zeros, or has zeros and ones only is refused;
            - a SciPy sparse matrix; every row is a vertex, and a symmetric matrix counts each edge once;
            - a pandas, polars or PyArrow table with the columns `src`, `dst` and optionally `weight`, `op`, `time`;
              the same names are recognized as in files, such as `source` and `target`;
            - a NetworkX or igraph graph (igraph vertices by their `name`, if they have one), or PyTorch Geometric data;
            - a `Batch`, which is returned unchanged.
        op : Op, default Op.ADD
            Operation of rows that do not state one.
        directed : bool, default False
            Whether a symmetric sparse matrix has an edge in each direction.
        src, dst, weight, time : label of a column, optional
            Names of the columns of a table; "none" ignores the column. By default the recognized names. `time` may also
            be a list, array or series with one time per edge, for a table, an array or a list of edges.

        Returns
        -------
        Batch
            The batch.

        Raises
        ------
        InvalidValueError
            If `edges` has none of these forms, or contains a value that cannot be used.

        Examples
        --------
        >>> from ripplevec import Batch
        >>> len(Batch.from_any([("a", "b"), ("b", "c", 2.5)]))
        2
        """
        if isinstance(edges, Batch):
            return edges
        names = TableColumns(src, dst, weight, time)
        columns = read_edge_list(edges, adding=op == Op.ADD, directed=directed, columns=names)
        operations = np.full(len(columns.src), op, np.int8) if columns.op is None and op != Op.ADD else columns.op
        batch = cls(columns.src, columns.dst, columns.weight, operations, columns.time)
        return batch if columns.vertices is None else _prepend_vertices(columns.vertices, batch)

    @classmethod
    def arrival(
        cls,
        vertex: Id,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: ArrayLike | None = None,
        time: TimeLike | None = None,
        *,
        neighbours: IdsLike | None = None,
    ) -> Batch:
        """Create the batch of one arrival: a vertex with its edges.

        Parameters
        ----------
        vertex : int or str
            The vertex that arrives.
        neighbors : list, array, series or Arrow array of int or str, default ()
            The vertices it has edges to.
        weights : array_like of float, optional
            Weights of the edges. By default 1.
        time : float, datetime, datetime64, pandas.Timestamp or str, optional
            Time of the arrival: a number, or a date, which is converted to seconds since 1970.
        neighbours : list, array, series or Arrow array of int or str, optional
            British spelling of `neighbors`; giving both is an error.

        Returns
        -------
        Batch
            The batch.

        Raises
        ------
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Batch
        >>> len(Batch.arrival("e", ["a", "b"]))
        2
        """
        column = id_column(resolve_neighbors(neighbors, neighbours), "neighbors")
        edge_weights = None if weights is None else weight_column(weights, len(column))
        rows = max(len(column), 1)
        times = None if time is None else time_column([time] * rows, rows)
        ids = id_column([vertex] * rows, "vertex")
        if not len(column):
            return cls.from_checked_columns(ids, ids, op=np.array([Op.VERTEX], np.int8), time=times)
        return cls.from_checked_columns(ids, column, edge_weights, time=times)

    @classmethod
    def vertices(cls, ids: IdsLike, op: Op = Op.VERTEX) -> Batch:
        """Create a batch of vertex operations.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices.
        op : Op, default Op.VERTEX
            `Op.VERTEX` creates the vertices without edges, `Op.REMOVE_VERTEX` removes them.

        Returns
        -------
        Batch
            The batch.

        Raises
        ------
        InvalidValueError
            If an id is neither an int nor a str, or `op` is not a vertex operation.

        Examples
        --------
        >>> from ripplevec import Batch, Op
        >>> len(Batch.vertices(["a", "b"], Op.REMOVE_VERTEX))
        2
        """
        if op not in (Op.VERTEX, Op.REMOVE_VERTEX):
            raise InvalidValueError.of("op", "Op.VERTEX or Op.REMOVE_VERTEX", op)
        column = id_column(ids, "ids")
        return cls.from_checked_columns(column, column, op=np.full(len(column), op, np.int8))


def read_removals(edges: EdgeListLike, *, directed: bool = False) -> Batch:
    """Return the batch that removes edges, given in any form that `Batch.from_any` accepts."""
    batch = Batch.from_any(edges, op=Op.REMOVE, directed=directed)
    if len(batch) and (batch.op is None or (batch.op != Op.REMOVE).any()):
        raise InvalidValueError.of("edges", "pairs, or a batch of removals only", "a batch with other operations")
    return batch


def read_pairs(pairs: EdgeListLike) -> Batch:
    """Return pairs of vertices, given in any form that `Batch.from_any` accepts."""
    batch = Batch.from_any(pairs)
    if batch.op is not None:
        raise InvalidValueError.of("pairs", "pairs of vertices only", "other operations")
    return batch


def resolve_neighbors(neighbors: IdsLike, neighbours: IdsLike | None) -> IdsLike:
    """Return the neighbors given under either spelling; giving both is an error."""
    if neighbours is None:
        return neighbors
    if neighbors is not NO_NEIGHBORS:
        raise InvalidValueError.of("neighbours", "one of neighbors and neighbours", "both")
    return neighbours


def arrival_columns(
    vertex: Id, neighbors: IdsLike, weights: ArrayLike | None
) -> tuple[Sequence[Id], IdColumn, NDArray[np.float64] | None]:
    """Check an arrival; return its neighbors, the id column of `[vertex, *neighbors]`, and the weights."""
    if not isinstance(neighbors, list | tuple):
        neighbors = ids_to_list(id_column(neighbors, "neighbors"))
    column = id_column([vertex, *neighbors], "vertex and neighbors")
    return neighbors, column, None if weights is None else weight_column(weights, len(neighbors))


# ---------------------------------------------------------------------- columns


def id_column(values: IdsLike, name: str = "ids") -> IdColumn:
    """Convert ids to a checked column; the error names the first value that cannot be an id."""
    if type(values) is list:
        return _ids_from_list(values, name)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidValueError.of(name, "a one-dimensional column of ids", f"an array of shape {values.shape}")
        return _ids_from_array(values, name)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _ids_from_arrow(values, name)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidValueError.of(name, "a list or column of ids", values)
    return _ids_from_list(list(values), name)


def _ids_from_array(values: NDArray[Any], name: str) -> IdColumn:
    if values.dtype.kind == "i" or (values.dtype.kind == "u" and (not values.size or int(values.max()) < 2**63)):
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) <= 2.0**53)
        if whole.all():
            return values.astype(np.int64)
        row = int(np.flatnonzero(~whole)[0])
        got = f"{float(values[row])}{_in_row(row, values)}"
        raise InvalidValueError.of(name, "ids that are int or str", got)
    if values.dtype.kind in "mM":  # `tolist` would convert nanoseconds to integers
        raise InvalidValueError.of(name, "ids that are int or str", f"an array of {values.dtype}")
    return _ids_from_list(values.tolist(), name)


def _ids_from_arrow(values: pa.Array | pa.ChunkedArray, name: str) -> IdColumn:
    if not len(values):
        return np.empty(0, np.int64)
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise InvalidValueError.of(name, "an id in every row", f"no id in row {row}")
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    if getattr(values.type, "extension_name", None) == "arrow.uuid":
        return _ids_from_list(values.to_pylist(), name)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return _ids_from_array(values.to_numpy(zero_copy_only=False), name)
    raise InvalidValueError.of(name, "ids that are int or str", f"a column of type {values.type}")


def _ids_from_list(values: list[Any], name: str) -> IdColumn:
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:  # beyond 64 bits
            return list(values)
    if kinds == {str}:
        try:
            return _text_column(values)
        except UnicodeEncodeError as error:
            where = _in_row(values.index(error.object), values)
            raise InvalidValueError.of(name, "text that can be encoded as UTF-8", f"{error.object}{where}") from None
    if not values:
        return np.empty(0, np.int64)
    ids: list[Id] = [normalize_id(value, name, _in_row(row, values)) for row, value in enumerate(values)]
    return ids if kinds <= {int, str} else _ids_from_list(ids, name)


def _text_column(values: list[str]) -> pa.Array:
    """Return text as an Arrow column. `pa.array` would import pandas for a list, if it is installed: half a second."""
    text = "".join(values)
    parts = values if text.isascii() else [value.encode() for value in values]
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(text.encode())]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers)


def _in_row(row: int, values: Sized) -> str:
    """Return where a bad id is, for an error message; nothing for a single id."""
    return f" in row {row}" if len(values) > 1 else ""


def normalize_id(value: Any, name: str, where: str = "") -> Id:
    """Convert one id to a plain int or str, a UUID to its text; the error says why, and `where`, it cannot be an id."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        text = str.__str__(value)  # the stored text: a subclass may print another one
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidValueError.of(name, "text that can be encoded as UTF-8", f"{text}{where}") from None
        return text
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_):
        return int(value)
    got = f"{shorten(value)} of type {type(value).__name__}{where}"
    raise InvalidValueError.of(name, "ids that are int or str", got)


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to; the given array stays as it is."""
    view = column.view()
    view.flags.writeable = False
    return view


def _float_column(name: str, values: Any, length: int) -> NDArray[np.float64]:
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        expected = EXPECTED_TIMES if name == "time" else "numbers"
        raise InvalidValueError.of(name, expected, values) from error
    if column.shape != (length,):
        raise InvalidValueError.of(name, f"{length:,} values, one per row", f"shape {column.shape}")
    return column


def weight_column(values: Any, length: int) -> NDArray[np.float64]:
    """Convert weights to a checked column; the error names the first value that cannot be a weight."""
    column = _float_column("weight", values, length)
    with np.errstate(over="ignore", under="ignore"):
        stored = column.astype(np.float32)
    bad = ~((stored >= MIN_WEIGHT) & (stored <= MAX_WEIGHT))
    if bad.any():
        row = int(bad.argmax())
        limits = f" from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}" if 0 < stored[row] < np.inf else ""
        raise InvalidValueError.of("weight", f"positive finite numbers{limits}", f"{column[row]} in row {row}")
    return column


def time_column(values: Any, length: int) -> NDArray[np.float64]:
    """Convert times to a checked column, NaN for rows without a time; the error names the first time out of range."""
    column = _float_column("time", times_to_numbers(values), length)
    out_of_range = np.abs(column) > MAX_TIME
    if out_of_range.any():
        row, expected = int(out_of_range.argmax()), f"finite numbers up to {MAX_TIME:g}, or NaN for no time"
        raise InvalidValueError.of("time", expected, f"{column[row]} in row {row}")
    return column


def times_to_json(column: NDArray[np.float64]) -> list[float | None]:
    """Convert times to JSON values: None for rows without a time."""
    return [None if np.isnan(time) else time for time in column.tolist()]


def _operation_column(values: Any, length: int) -> NDArray[np.int8]:
    column = _float_column("op", values, length)
    bad = ~np.isin(column, [op.value for op in Op])
    if bad.any():
        choices = ", ".join(f"{op.value} ({op.name})" for op in Op)
        raise InvalidValueError.of("op", f"one of {choices}", float(column[int(bad.argmax())]))
    return column.astype(np.int8)


def _repeat_source(src: IdColumn, dst: IdColumn, op: NDArray[np.int8]) -> IdColumn:
    """Return the targets, replaced by the source in rows with a vertex operation."""
    is_vertex_op = op >= Op.VERTEX
    if not is_vertex_op.any():
        return dst
    return take_ids(concat_ids(dst, src), np.arange(len(op)) + np.where(is_vertex_op, len(op), 0))


def concat_ids(first: IdColumn, second: IdColumn) -> IdColumn:
    """Concatenate two id columns."""
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
    """Convert an id column to a list of plain ints and strs."""
    return list(column) if isinstance(column, list) else cast(list[Id], column.tolist())


def take_ids(column: IdColumn, rows: NDArray[np.int64] | slice) -> IdColumn:
    """Select rows of an id column."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, pa.Array):
        return column[rows] if isinstance(rows, slice) else column.take(pa.array(rows))
    return column[rows] if isinstance(rows, slice) else [column[row] for row in rows]


def select_rows(batch: Batch, rows: NDArray[np.int64] | slice) -> Batch:
    """Select rows of a batch, in the order given. The batch has no attributes."""
    refuse_attributes(batch, "divided")
    optional = (None if column is None else column[rows] for column in (batch.weight, batch.op, batch.time))
    return Batch.from_checked_columns(take_ids(batch.src, rows), take_ids(batch.dst, rows), *optional)  # type: ignore[arg-type]


def refuse_attributes(batch: Batch, operation: str) -> None:
    """Raise `InvalidValueError` if a batch has attributes, which this operation would lose."""
    if batch.attributes is not None:
        got = f"one with attributes of {len(batch.attributes.ids):,} vertices, which cannot be {operation}"
        raise InvalidValueError.of("batch", "a batch without attributes", got)


def _prepend_vertices(ids: IdsLike, edges: Batch) -> Batch:
    """Put a `VERTEX` row for every vertex before the edges: keeps isolated vertices and the order of vertices."""
    vertices = Batch.vertices(ids)
    weight = None if edges.weight is None else np.concatenate([np.ones(len(vertices)), edges.weight])
    op = np.repeat(np.array([Op.VERTEX, Op.ADD], np.int8), [len(vertices), len(edges)])
    src, dst = concat_ids(vertices.src, edges.src), concat_ids(vertices.dst, edges.dst)
    return Batch.from_checked_columns(src, dst, weight, op)
