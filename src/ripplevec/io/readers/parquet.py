"""Parquet edge files, one edge per row.

Columns are converted as a whole where possible. If a value does not fit, the rows are parsed one by one, which
identifies the bad ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ripplevec.batch import Batch
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.readers.byte_stream import ByteStream
from ripplevec.io.readers.edge_rows import (
    BadRowHandler,
    BatchBuilder,
    FileColumns,
    ReadOptions,
    RowError,
    find_columns,
    missing_columns_error,
    parse_op_column,
)

ROWS_PER_READ = 1 << 16


def read_batches(
    stream: ByteStream, options: ReadOptions, bad_rows: BadRowHandler, columns: FileColumns | None = None
) -> Iterator[Batch]:
    """Yield the edges of a Parquet file; ids have the type of their column unless the options ask for another."""
    bad_rows.unit = "row"
    file = open_parquet(stream)
    column_names = find_parquet_columns(file, stream.name, options)
    if columns is not None:
        names = file.schema_arrow.names
        columns.add(names, {column: names.index(name) for column, name in column_names.items()})
    first = 1
    with damage_as_format_error(stream.name):
        for table in file.iter_batches(ROWS_PER_READ, columns=list(dict.fromkeys(column_names.values()))):
            table.validate(full=True)  # finds invalid UTF-8 here rather than much later
            values = {column: table.column(name) for column, name in column_names.items()}
            yield parse_columns(values, first, options.ids, bad_rows)
            first += len(table)


def open_parquet(stream: ByteStream) -> pq.ParquetFile:
    """Open a Parquet file; a stream is read into memory first, because the index of Parquet is at the end."""
    with damage_as_format_error(stream.name):
        return pq.ParquetFile(pa.memory_map(str(stream.path)) if stream.path else pa.BufferReader(stream.readall()))


def find_parquet_columns(file: pq.ParquetFile, name: str, options: ReadOptions) -> dict[str, str]:
    """Return the file's names for src, dst, weight, time and op."""
    names = file.schema_arrow.names
    positions = find_columns(names, options)
    if positions is None:
        raise missing_columns_error(name, names, options)
    return {column: names[position] for column, position in positions.items()}


@contextmanager
def damage_as_format_error(name: str) -> Iterator[None]:
    """Turn Arrow's errors for a damaged file into a `FormatError` that names the file."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise FormatError(f"{name}: expected a Parquet file, got a truncated or damaged one ({error})") from error


def parse_columns(columns: dict[str, pa.Array], first: int, ids: str, bad_rows: BadRowHandler) -> Batch:
    """Return the edges of some rows; `first` is the number of the first row."""
    try:
        return _convert_columns(columns, ids)
    except (RowError, pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidValueError):
        return _parse_row_by_row(columns, first, ids, bad_rows)


def _convert_columns(columns: dict[str, pa.Array], ids: str) -> Batch:
    id_type = {"int": pa.int64(), "str": pa.large_string()}.get(ids)
    src, dst = (columns[end] if id_type is None else columns[end].cast(id_type) for end in ("src", "dst"))
    weight, time, op = columns.get("weight"), columns.get("time"), columns.get("op")
    if any(column.null_count for column in columns.values()):
        raise InvalidValueError.of("edges", "a value in every row", "empty values")
    ops = None if op is None else parse_op_column(op)
    return Batch.of(src, dst, weight, ops, None if time is None else to_seconds(time))


def to_seconds(time: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column of numbers or timestamps as seconds."""
    if not pa.types.is_temporal(time.type):
        return time.cast(pa.float64())
    return time.cast(pa.timestamp("us", getattr(time.type, "tz", None))).cast(pa.int64()).to_numpy() / 1e6


def _parse_row_by_row(columns: dict[str, pa.Array], first: int, ids: str, bad_rows: BadRowHandler) -> Batch:
    """Parse each row separately and report the bad ones; timestamps are converted to seconds first."""
    builder = BatchBuilder(columns, ids)
    values = {column: array.to_pylist() for column, array in columns.items()}
    if "time" in values and pa.types.is_temporal(columns["time"].type):
        filled = pc.fill_null(columns["time"].cast(pa.timestamp("us")).cast(pa.int64()), 0)
        values["time"] = np.where(columns["time"].is_null(), np.nan, filled.to_numpy() / 1e6).tolist()
    for index in range(len(columns["src"])):
        row = {column: column_values[index] for column, column_values in values.items()}
        try:
            builder.add(row)
        except RowError as error:
            bad_rows.report(first + index, error, row)
    return builder.build()
