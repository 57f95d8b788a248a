"""Binary encoding of batches for the journal: one Arrow IPC stream per batch, for vertex ids of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ripplevec.batch import Batch, Id, IdColumn
from ripplevec.errors import FormatError
from ripplevec.io.arrow_ipc import encode_arrow_stream, unpacked_size

_MIXED_IDS = {b"ids": b"mixed"}
"""Field metadata of a column with integer and text ids, or integers beyond 64 bits: text with a letter for the kind."""


def encode_batch(batch: Batch) -> bytes:
    """Encode a batch as an Arrow IPC stream."""
    columns = [_encode_ids("src", batch.src), _encode_ids("dst", batch.dst)]
    for name in ("weight", "op", "time"):
        if (column := getattr(batch, name)) is not None:
            array = pa.array(column)
            columns.append((pa.field(name, array.type), array))
    record = pa.record_batch([array for _, array in columns], schema=pa.schema([field for field, _ in columns]))
    return encode_arrow_stream(record)


def decode_batch(payload: bytes) -> Batch:
    """Decode and validate a batch; raise `FormatError` for bytes that `encode_batch` did not write."""
    try:
        if unpacked_size(payload) > len(payload):
            raise pa.ArrowInvalid("compressed buffers, which are never written")
        with pa.ipc.open_stream(pa.py_buffer(payload)) as stream:
            record = stream.read_next_batch()
        record.validate(full=True)
        columns = {field.name: _decode_column(field, record.column(field.name)) for field in record.schema}
        return Batch.of(**columns)
    except (pa.ArrowException, OSError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise FormatError(
            f"invalid batch payload: expected the bytes of an encoded batch, got other bytes ({error})"
        ) from error


def _encode_ids(name: str, column: IdColumn) -> tuple[pa.Field, pa.Array]:
    if isinstance(column, list):
        texts = pa.array(map(_id_to_text, column), pa.large_string())
        return pa.field(name, pa.large_string(), metadata=_MIXED_IDS), texts
    array = pa.array(column)
    return pa.field(name, array.type), array


def _decode_column(field: pa.Field, array: pa.Array) -> Any:
    if field.metadata == _MIXED_IDS:
        return [_text_to_id(text) for text in array.to_pylist()]
    if pa.types.is_large_string(array.type):
        return array
    return np.array(array)  # a writable copy: the kernels are compiled for writable arrays only


def _id_to_text(vertex: Id) -> str:
    return f"s{vertex}" if isinstance(vertex, str) else f"i{vertex:x}"  # Python limits the length of decimal output


def _text_to_id(text: str) -> Id:
    return text[1:] if text[0] == "s" else int(text[1:], 16)
