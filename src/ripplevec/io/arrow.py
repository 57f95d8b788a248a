"""A table as the bytes of an Arrow stream, for messages, answers and the journal."""

from __future__ import annotations

import pyarrow as pa


def stream_bytes(rows: pa.Table | pa.RecordBatch) -> bytes:
    """The schema and the rows, as one stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    return bytes(sink.getvalue().to_pybytes())
