"""Edges as the rows of a Parquet file."""

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
    ReadOptions,
    RowError,
    find_columns,
    missing_columns_error,
    parse_op_column,
)

ROWS = 1 << 16


def read(source: ByteStream, options: ReadOptions, bad: BadRowHandler) -> Iterator[Batch]:
    """The edges of a Parquet file; ids have the type of their columns unless the options ask for another."""
    bad.unit = "row"
    file = open_file(source)
    roles = find_parquet_columns(file, source.name, options)
    first = 1
    with reading(source.name):
        for table in file.iter_batches(ROWS, columns=list(dict.fromkeys(roles.values()))):
            table.validate(full=True)  # text that is not UTF-8 would be found out much later
            yield parse({role: table.column(name) for role, name in roles.items()}, first, options.ids, bad)
            first += len(table)


def open_file(source: ByteStream) -> pq.ParquetFile:
    """The file; a stream is read into memory first, for Parquet has its index at the end."""
    with reading(source.name):
        return pq.ParquetFile(pa.memory_map(str(source.path)) if source.path else pa.BufferReader(source.readall()))


def find_parquet_columns(file: pq.ParquetFile, name: str, options: ReadOptions) -> dict[str, str]:
    """The names of the columns that count, by what they hold."""
    names = file.schema_arrow.names
    found = find_columns(names, options)
    if found is None:
        raise missing_columns_error(name, names, options)
    return {role: names[position] for role, position in found.items()}


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say which file it was where one is damaged."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise FormatError(f"{name}: expected a Parquet file, got one that is cut off or damaged ({error})") from error


def parse(columns: dict[str, pa.Array], first: int, ids: str, bad: BadRowHandler) -> Batch:
    """The edges of some rows, the first of which has this number."""
    try:
        return _fast(columns, ids)
    except (RowError, pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidValueError):
        return _exact(columns, first, ids, bad)


def _fast(columns: dict[str, pa.Array], ids: str) -> Batch:
    kind = {"int": pa.int64(), "str": pa.large_string()}.get(ids)
    src, dst = (columns[role] if kind is None else columns[role].cast(kind) for role in ("src", "dst"))
    weight, time, op = columns.get("weight"), columns.get("time"), columns.get("op")
    if any(column.null_count for column in columns.values()):
        raise InvalidValueError.of("edges", "a value in every row", "empty values")
    return Batch.of(
        src, dst, weight, None if op is None else parse_op_column(op), None if time is None else to_seconds(time)
    )


def to_seconds(time: pa.Array | pa.ChunkedArray) -> Any:
    """A column of numbers or moments as seconds."""
    if not pa.types.is_temporal(time.type):
        return time.cast(pa.float64())
    return time.cast(pa.timestamp("us", getattr(time.type, "tz", None))).cast(pa.int64()).to_numpy() / 1e6


def _exact(columns: dict[str, pa.Array], first: int, ids: str, bad: BadRowHandler) -> Batch:
    rows = BatchBuilder(columns, ids)
    values = {role: column.to_pylist() for role, column in columns.items()}
    if "time" in values and pa.types.is_temporal(columns["time"].type):
        filled = pc.fill_null(columns["time"].cast(pa.timestamp("us")).cast(pa.int64()), 0)
        values["time"] = np.where(columns["time"].is_null(), np.nan, filled.to_numpy() / 1e6).tolist()
    for index in range(len(columns["src"])):
        row = {role: column[index] for role, column in values.items()}
        try:
            rows.add(row)
        except RowError as error:
            bad.report(first + index, error, row)
    return rows.batch()
