"""A batch as bytes: an Arrow stream of its columns, ids of every kind included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ripplevec.batch import Batch, Id, IdColumn
from ripplevec.errors import FormatError
from ripplevec.io.arrow import stream_bytes
from ripplevec.io.arrow_size_guard import unpacked_bytes

_MIXED = {b"ids": b"mixed"}  # ids of both kinds, or beyond 64 bits, written as text with a letter for the kind


def encode_batch(batch: Batch) -> bytes:
    """The bytes of a batch."""
    columns = [_ids("src", batch.src), _ids("dst", batch.dst)]
    for name in ("weight", "op", "time"):
        if (column := getattr(batch, name)) is not None:
            array = pa.array(column)
            columns.append((pa.field(name, array.type), array))
    rows = pa.record_batch([array for _, array in columns], schema=pa.schema([field for field, _ in columns]))
    return stream_bytes(rows)


def decode_batch(payload: bytes) -> Batch:
    """The batch whose bytes these are, checked like any other that comes in."""
    try:
        if unpacked_bytes(payload) > len(payload):
            raise pa.ArrowInvalid("compressed buffers, which are never written")
        with pa.ipc.open_stream(pa.py_buffer(payload)) as stream:
            rows = stream.read_next_batch()
        rows.validate(full=True)
        fields = rows.schema
        columns = {field.name: _column(field, rows.column(field.name)) for field in fields}
        return Batch.of(**columns)
    except (pa.ArrowException, OSError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise FormatError(f"expected the bytes of a batch, got others: {error}") from error


def _ids(name: str, column: IdColumn) -> tuple[pa.Field, pa.Array]:
    if isinstance(column, list):
        return pa.field(name, pa.large_string(), metadata=_MIXED), pa.array(map(_as_text, column), pa.large_string())
    array = pa.array(column)
    return pa.field(name, array.type), array


def _column(field: pa.Field, array: pa.Array) -> Any:
    if field.metadata == _MIXED:
        return [_as_id(text) for text in array.to_pylist()]
    if pa.types.is_large_string(array.type):
        return array
    return np.array(array)  # a copy that may be written to, as kernels are compiled for


def _as_text(name: Id) -> str:
    return f"s{name}" if isinstance(name, str) else f"i{name:x}"  # hexadecimal has no limit on its length


def _as_id(text: str) -> Id:
    return text[1:] if text[0] == "s" else int(text[1:], 16)
