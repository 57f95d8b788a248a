"""Attributes as users give them: mappings, arrays, sparse matrices and tables, read as checked `AttributeRows`."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import (
    AttributeRows,
    Batch,
    Id,
    IdColumn,
    IdsLike,
    Op,
    concat_ids,
    id_column,
    ids_to_list,
    select_rows,
    take_ids,
)
from ripplevec.edge_lists import collect_lazy_frame, is_table
from ripplevec.errors import InvalidValueError, shorten

AttributesLike: TypeAlias = Any
"""Anything that holds attributes of vertices; see `read_attributes`."""

MAX_VALUE = 1e15
"""Bound of the absolute value of an attribute: sums of squares must stay within double precision."""

ID_COLUMNS = ("id", "vertex", "node", "vertex_id", "node_id")
"""Names of the id column of a table, in any case."""

EXPECTED = "{id: {name: value}} or {id: numbers}, a pair (ids, array or sparse matrix), or a table with an id column"
_PLAIN_NAMES = (tuple, bool, float, bytes, type(None), date, time, Decimal, Enum)
_NO_COLUMNS = np.empty(0, np.int32)


def read_attributes(attributes: AttributesLike) -> AttributeRows:
    """Return attributes in any form as checked rows.

    One of:

    - a mapping of ids to the attributes of a vertex: a mapping of names to values, or a vector of numbers;
    - a pair `(ids, values)`, with a two-dimensional array, a SciPy sparse matrix, or a list of such attributes;
    - a pandas, polars or PyArrow table with an id column, and either numeric columns or categorical ones: text, or
      lists of texts. A column of lists of numbers is a vector per vertex.
    """
    if isinstance(attributes, AttributeRows):
        return attributes
    attributes = collect_lazy_frame(attributes)
    if isinstance(attributes, Mapping):
        return read_values(list(attributes), list(attributes.values()))
    if isinstance(attributes, tuple) and len(attributes) == 2:
        return read_values(*attributes)
    if is_table(attributes):
        return _read_table(attributes)
    raise InvalidValueError.of("attributes", EXPECTED, attributes)


def read_one(vertex: Id, attributes: Any) -> AttributeRows:
    """Return the attributes of one vertex: a mapping of names to values, a vector, or a sparse matrix of one row."""
    if hasattr(attributes, "tocsr"):
        return read_values([vertex], attributes)
    if not isinstance(attributes, Mapping):
        attributes = np.asarray(attributes)
        if attributes.ndim != 1:
            raise InvalidValueError.of("attributes", "{name: value} or a vector of numbers", attributes)
    return read_values([vertex], [attributes])


def read_values(ids: IdsLike, values: Any, labels: list[str] | None = None) -> AttributeRows:
    """Return the attributes of vertices, one row of `values` per id; `labels` are the names of dense columns."""
    column = id_column(ids, "ids")
    _refuse_repeated(column)
    if hasattr(values, "tocsr"):
        return _read_sparse(column, values)
    if isinstance(values, Sequence) and any(isinstance(row, Mapping) for row in values):
        return _read_mappings(column, values)
    return _read_dense(column, values, labels)


def attach_attributes(batch: Batch, rows: AttributeRows) -> Batch:
    """Return a batch that also creates the vertices of attributes, if they are unknown, and sets the attributes."""
    vertices, count = rows.ids, len(rows.ids)
    op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
    weight = None if batch.weight is None else np.concatenate([batch.weight, np.ones(count)])
    time = None if batch.time is None else np.concatenate([batch.time, np.full(count, np.nan)])
    src, dst = concat_ids(batch.src, vertices), concat_ids(batch.dst, vertices)
    op = np.concatenate([op, np.full(count, Op.VERTEX, np.int8)])
    return Batch.from_checked_columns(src, dst, weight, op, time, rows)


def detach_attributes(batch: Batch) -> tuple[Batch, AttributeRows | None]:
    """Return a batch without its attributes, which still creates their vertices, and the attributes."""
    if batch.attributes is None:
        return batch, None
    return Batch.from_checked_columns(batch.src, batch.dst, batch.weight, batch.op, batch.time), batch.attributes


def split_attributes(batch: Batch) -> tuple[Batch, AttributeRows | None]:
    """Return the operations of a batch before its attributes, and the attributes: undo `attach_attributes`."""
    batch, rows = detach_attributes(batch)
    if rows is None:
        return batch, None
    before = select_rows(batch, slice(0, len(batch) - len(rows.ids)))
    if before.op is not None and not before.op.any():
        before = Batch.from_checked_columns(before.src, before.dst, before.weight, None, before.time)
    return before, rows


def merge_attributes(parts: Sequence[AttributeRows]) -> AttributeRows:
    """Return the rows of several parts, at least one; the last row of a vertex counts.

    Raise `InvalidValueError` if the parts differ in kind or width.
    """
    first, *others = parts
    for part in others:
        part.check_like(first.kind, first.width, first.labels)
    if not others:
        return first
    last = {vertex: row for part in parts for vertex, row in zip(ids_to_list(part.ids), _plain_rows(part), strict=True)}
    return read_values(list(last), list(last.values()), first.labels or None)


def drop_removed_attributes(batch: Batch, parts: Sequence[tuple[int, AttributeRows]]) -> list[AttributeRows]:
    """Return attributes without the vertices that a batch removes at or after the row given with each part."""
    removed: dict[Id, int] = {}
    if batch.op is not None:
        rows = np.flatnonzero(batch.op == Op.REMOVE_VERTEX)
        removed = dict(zip(ids_to_list(take_ids(batch.src, rows)), rows.tolist(), strict=True))
    kept = []
    for position, part in parts:
        remains = np.array([removed.get(vertex, -1) < position for vertex in ids_to_list(part.ids)], np.bool_)
        kept.append(part if remains.all() else take_attributes(part, np.flatnonzero(remains)))
    return [part for part in kept if len(part.ids)]


def attributes_to_json(rows: AttributeRows) -> list[dict[str, Any]]:
    """Return attributes as JSON values, `{"id": …, "attributes": …}`. Names become texts."""
    plain: list[Any] = _plain_rows(rows)
    if rows.names is None:
        plain = [row.tolist() for row in plain]
    else:
        plain = [{str(name): value for name, value in row.items()} for row in plain]
    return [{"id": vertex, "attributes": row} for vertex, row in zip(ids_to_list(rows.ids), plain, strict=True)]


def _plain_rows(rows: AttributeRows) -> list[Any]:
    """Return rows as lists of numbers or as mappings of names to values."""
    if rows.names is None:
        return list(rows.values)
    names, bounds = ids_to_list(rows.names), itertools.pairwise(rows.begin.tolist())
    columns, values = rows.columns.tolist(), rows.values.tolist()
    return [{names[columns[at]]: values[at] for at in range(first, last)} for first, last in bounds]


def take_attributes(rows: AttributeRows, positions: NDArray[np.int64]) -> AttributeRows:
    """Return some of the rows, with the names that occur in them."""
    ids = take_ids(rows.ids, positions)
    if rows.names is None:
        begin = np.arange(positions.size + 1) * rows.values.shape[1]
        return AttributeRows(ids, rows.values[positions], begin, _NO_COLUMNS, None, rows.labels)
    lengths = np.diff(rows.begin)[positions]
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    entries = np.arange(begin[-1]) + np.repeat(rows.begin[positions] - begin[:-1], lengths)
    return _make_sparse(ids, begin, rows.columns[entries], rows.values[entries].astype(np.float64), rows.names)


def name_of(value: Hashable, row: int) -> Id:
    """Return an attribute name as an id: ints and texts as they are, other plain values as their representation.

    Objects of other types may have a representation that is another one in the next process.
    """
    if isinstance(value, str) or (isinstance(value, int | np.integer) and not isinstance(value, bool)):
        return value if isinstance(value, str) else int(value)
    if isinstance(value, frozenset):
        return f"frozenset({sorted(str(name_of(item, row)) for item in value)})"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, _PLAIN_NAMES):
        return repr(value)
    got = f"{shorten(value)} of type {type(value).__name__} in row {row}"
    raise InvalidValueError.of("attributes", "names that are text, numbers, dates, or tuples of these", got)


# ---------------------------------------------------------------------- forms


def _read_mappings(ids: IdColumn, rows: Sequence[Any]) -> AttributeRows:
    _check_length(len(rows), len(ids))
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidValueError.of("attributes", "{name: value} in every row", f"{shorten(row)} in row {number}")
    begin = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    keys = [key for row in rows for key in row]
    if len(rows) == 1 and set(map(type, keys)) <= {str}:
        names, columns = id_column(keys, "attribute names"), np.arange(len(keys), dtype=np.int32)
    else:
        positions: dict[Id, int] = {}
        owner = np.repeat(np.arange(len(rows)), np.diff(begin)).tolist()
        named = [name_of(key, row) for key, row in zip(keys, owner, strict=True)]
        columns = np.array([positions.setdefault(name, len(positions)) for name in named], np.int32)
        names = id_column(list(positions), "attribute names")
    values = _to_floats([value for row in rows for value in row.values()], begin, keys)
    return _make_sparse(ids, begin, columns, values, names)


def _read_sparse(ids: IdColumn, matrix: Any) -> AttributeRows:
    matrix = matrix.tocsr().copy()
    matrix.sum_duplicates()
    if len(matrix.shape) != 2:
        raise InvalidValueError.of("attributes", "a matrix with one row per vertex", f"shape {matrix.shape}")
    _check_length(matrix.shape[0], len(ids))
    if matrix.dtype.kind not in "biuf":
        raise InvalidValueError.of("attributes", "a matrix of numbers", f"a matrix of {matrix.dtype}")
    begin, values = matrix.indptr.astype(np.int64), np.asarray(matrix.data, np.float64)
    return _make_sparse(ids, begin, matrix.indices.astype(np.int32), values, np.arange(matrix.shape[1]))


def _read_dense(ids: IdColumn, values: Any, labels: list[str] | None = None) -> AttributeRows:
    try:
        matrix = _as_floats(values)
    except (TypeError, ValueError) as error:
        message = InvalidValueError.of("attributes", f"{_DENSE}{_find_bad_row(values)}", values)
        raise InvalidValueError(f"{message}{_NAMES_HINT if _has_names(values) else ''}") from error
    if matrix.ndim != 2 or (len(matrix) and not matrix.shape[1]):
        expected = _DENSE if len(ids) else "those of at least one vertex"
        raise InvalidValueError.of("attributes", expected, f"shape {matrix.shape}")
    _check_length(len(matrix), len(ids))
    bad = ~(np.abs(matrix) <= MAX_VALUE)
    if bad.any():
        row, column = (int(position) for position in np.argwhere(bad)[0])
        where = f"row {row}, column {labels[column] if labels else column}"
        raise InvalidValueError.of("attributes", _FINITE, f"{matrix[row, column]} in {where}")
    begin = np.arange(len(matrix) + 1) * matrix.shape[1]
    return AttributeRows(ids, matrix.astype(np.float32), begin, _NO_COLUMNS, None, labels or [])


def _make_sparse(
    ids: IdColumn, begin: NDArray[np.int64], columns: NDArray[np.int32], values: NDArray[np.float64], names: IdColumn
) -> AttributeRows:
    """Return sparse rows without zeros, after checking the values."""
    bad = ~((values >= 0) & (values <= MAX_VALUE))
    if bad.any():
        entry = int(bad.argmax())
        row = int(np.searchsorted(begin, entry, side="right")) - 1
        name = ids_to_list(names)[columns[entry]]
        hint = "; give attributes of any sign as dense rows" if values[entry] < 0 else ""
        error = InvalidValueError.of(
            "attributes", "finite numbers ≥ 0", f"{values[entry]} in row {row}, column {name!r}"
        )
        raise InvalidValueError(f"{error}{hint}")
    nonzero = values > 0
    if not nonzero.all():
        begin = np.concatenate([[0], np.cumsum(nonzero)])[begin]
        columns, values = columns[nonzero], values[nonzero]
    if columns.size == len(names) and (columns == np.arange(columns.size)).all():  # as in a single row
        return AttributeRows(ids, values.astype(np.float32), begin, columns, names)
    used, first, positions = np.unique(columns, return_index=True, return_inverse=True)
    order = np.argsort(first)  # names in the order of their first value, whatever form they came in
    ranks = np.empty(used.size, np.int32)
    ranks[order] = np.arange(used.size)
    return AttributeRows(
        ids, values.astype(np.float32), begin, ranks[positions], take_ids(names, used[order].astype(np.int64))
    )


def _read_table(frame: Any) -> AttributeRows:
    table = _to_arrow(frame)
    labels = [label for label in table.column_names if label.lower() in ID_COLUMNS]
    if len(labels) != 1:
        expected = f"one id column, called {' or '.join(ID_COLUMNS)}"
        raise InvalidValueError.of("attributes", expected, f"columns {table.column_names}")
    ids = id_column(table[labels[0]], "ids")
    _refuse_repeated(ids)
    columns = {label: table[label].combine_chunks() for label in table.column_names if label != labels[0]}
    kinds = {label: _column_kind(label, column.type) for label, column in columns.items()}
    if len(set(kinds.values())) != 1:
        error = InvalidValueError.of("attributes", "columns that are all numeric, or all categorical", kinds)
        raise InvalidValueError(f"{error}. Convert numbers to texts of ranges, or categories to columns of 0 and 1")
    if "numeric" in kinds.values():
        blocks = [_numeric_block(label, column) for label, column in columns.items()]
        width = [(label, block.shape[1]) for label, block in zip(columns, blocks, strict=True)]
        names = [label if count == 1 else f"{label}[{place}]" for label, count in width for place in range(count)]
        return _read_dense(ids, np.hstack(blocks), names)
    return _read_mappings(ids, _categorical_rows(columns, len(table)))


def _to_arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if isinstance(frame, pa.Table):
        return frame
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:  # complex numbers, or values of several types in one column
        got = error.args[-1]
        raise InvalidValueError.of("attributes", "columns of numbers, texts, or lists of these", got) from error


def _column_kind(label: str, kind: pa.DataType) -> str:
    value = kind.value_type if _is_list(kind) or pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_boolean(value):
        return "categorical" if pa.types.is_dictionary(kind) else "numeric"
    if pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value):
        return "categorical"
    raise InvalidValueError.of("attributes", "columns of numbers, texts or lists of these", f"{kind} in column {label}")


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _numeric_block(label: str, column: pa.Array) -> NDArray[np.float64]:
    """Return a numeric column, or a column of lists of numbers, as a matrix."""
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InvalidValueError.of("attributes", "a value in every row", f"none in row {row}, column {label}")
    if not _is_list(column.type):
        return np.asarray(column.cast(pa.float64()), np.float64)[:, None]
    lengths = np.asarray(pa.compute.list_value_length(column), np.int64)
    if (lengths != lengths[:1]).any():
        row = int((lengths != lengths[0]).argmax())
        got = f"{lengths[row]} in row {row}, column {label}"
        raise InvalidValueError.of("attributes", f"lists of {lengths[0]} numbers", got)
    values = column.flatten()
    if values.null_count:
        row = values.is_null().to_pylist().index(True) // int(lengths[0])
        raise InvalidValueError.of("attributes", "numbers in every list", f"null in row {row}, column {label}")
    return np.asarray(values.cast(pa.float64()), np.float64).reshape(len(column), -1)


def _categorical_rows(columns: Mapping[str, pa.Array], length: int) -> list[dict[str, float]]:
    """Return the names "column=value" of every row, with the number of times that each occurs in it."""
    rows: list[dict[str, float]] = [{} for _ in range(length)]
    for label, column in columns.items():
        for row, value in zip(rows, column.to_pylist(), strict=True):
            for item in value if isinstance(value, list) else [value]:
                if item is not None:
                    name = f"{label}={item}"
                    row[name] = row.get(name, 0.0) + 1.0
    return rows


# ---------------------------------------------------------------------- checks

_DENSE = "rows of numbers, all of the same length"
_NAMES_HINT = ". Pass names with their values, as in {'vertex': {'name': 1}}"
_NO_NUMBERS = (str, bytes, complex, np.complexfloating)
_FINITE = f"finite numbers up to {MAX_VALUE:g}"


def _to_floats(values: list[Any], begin: NDArray[np.int64], keys: list[Any]) -> NDArray[np.float64]:
    try:
        return _as_floats(values, 1)
    except (TypeError, ValueError) as error:
        for entry, value in enumerate(values):
            if isinstance(value, _NO_NUMBERS) or not np.isscalar(value):
                row = int(np.searchsorted(begin, entry, side="right")) - 1
                got = f"{shorten(value)} in row {row}, column {keys[entry]!r}"
                raise InvalidValueError.of("attributes", "numbers", got) from error
        raise InvalidValueError.of("attributes", "numbers", values) from error


def _as_floats(values: Any, dimensions: int | None = None) -> NDArray[np.float64]:
    """Return numbers as an array; raise `TypeError` for texts, which NumPy would convert, and for complex numbers."""
    array = np.asarray(values)
    mixed = array.dtype.kind == "O" and any(isinstance(value, _NO_NUMBERS) for value in array.flat)
    if array.size and (array.dtype.kind not in "biufO" or mixed or dimensions not in (None, array.ndim)):
        raise TypeError(f"not numbers: {array.dtype}")
    return array.astype(np.float64)


def _has_names(values: Any) -> bool:
    """Return whether a row is a name, or a list or set of names, such as tags."""
    return _is_rows(values) and any(
        isinstance(row, str) or (_is_rows(row) and any(isinstance(value, str) for value in row)) for row in values
    )


def _find_bad_row(values: Any) -> str:
    """Return which row differs in length from the first, for an error message."""
    lengths = [len(row) for row in values if isinstance(row, Sequence | np.ndarray)] if _is_rows(values) else []
    others = [row for row, length in enumerate(lengths) if length != lengths[0]]
    return f". Row {others[0]} has {lengths[others[0]]} numbers, row 0 has {lengths[0]}" if others else ""


def _is_rows(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def _check_length(rows: int, ids: int) -> None:
    if rows != ids:
        raise InvalidValueError.of("attributes", f"{ids:,} rows, one per id", f"{rows:,} rows")


def _refuse_repeated(column: IdColumn) -> None:
    values = ids_to_list(column)
    if len(set(values)) == len(values):
        return
    first: dict[Id, int] = {}
    for row, vertex in enumerate(values):
        if vertex in first:
            got = f"{vertex!r} in rows {first[vertex]} and {row}"
            raise InvalidValueError.of("attributes", "one row per vertex", got)
        first[vertex] = row
