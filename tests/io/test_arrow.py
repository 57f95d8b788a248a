from __future__ import annotations

import pyarrow as pa
import pytest

from ripplevec.io.arrow_ipc import encode_arrow_stream

TABLE = pa.table({"src": ["a", "b"], "dst": [1, 2]}).replace_schema_metadata({"sequence": "7"})


@pytest.mark.parametrize("rows", [TABLE, TABLE.to_batches()[0], TABLE[:0]])
def test_a_stream_is_read_back_as_it_was(rows: pa.Table | pa.RecordBatch) -> None:
    with pa.ipc.open_stream(encode_arrow_stream(rows)) as stream:
        found = stream.read_all()
    assert found.schema.metadata == {b"sequence": b"7"}
    assert found.to_pylist() == rows.to_pylist()
