from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError
from ripplevec.io.readers import parquet
from ripplevec.io.readers.byte_stream import ByteStream, open_byte_stream
from ripplevec.io.readers.edge_rows import BadRowHandler, ReadOptions
from ripplevec.io.rebatch import concatenate


def parquet_bytes(columns):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def read(columns, bad_rows=None, **options):
    stream = ByteStream("e.parquet", io.BytesIO(parquet_bytes(columns)))
    return concatenate(
        list(parquet.read_batches(stream, ReadOptions(**options), bad_rows or BadRowHandler("e.parquet")))
    )


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1), st.floats(1e-3, 1e3)), min_size=1, max_size=6))
def test_read_batches_returns_all_rows(rows):
    src, dst, weight = (list(column) for column in zip(*rows, strict=True))
    batch = read({"src": src, "dst": dst, "weight": weight})
    assert (ids_to_list(batch.src), ids_to_list(batch.dst), batch.weight.tolist()) == (src, dst, weight)


def test_read_batches_of_plain_file_uses_memory_map(tmp_path):
    path = tmp_path / "e.parquet"
    path.write_bytes(parquet_bytes({"src": [1], "dst": [2]}))
    batches = list(parquet.read_batches(open_byte_stream(path), ReadOptions(), BadRowHandler("e.parquet")))
    assert [ids_to_list(batch.src) for batch in batches] == [[1]]


def test_read_batches_returns_requested_id_type():
    assert ids_to_list(read({"src": [1], "dst": [2]}).src) == [1]
    assert ids_to_list(read({"src": [1], "dst": [2]}, ids="str").src) == ["1"]
    assert ids_to_list(read({"src": ["1"], "dst": ["2"]}, ids="int").src) == [1]
    assert ids_to_list(read({"src": pa.array(["a", "a"]).dictionary_encode(), "dst": ["b", "c"]}).src) == ["a", "a"]


@pytest.mark.parametrize("op", [["add", "remove", "remove_vertex"], [0, 1, 3], [None, "Remove", "3"]])
def test_read_batches_with_op_column_returns_operations(op):
    batch = read({"src": [1, 1, 1], "dst": [2, 2, 9], "op": op})
    assert (ids_to_list(batch.src), ids_to_list(batch.dst), batch.op.tolist()) == ([1, 1, 1], [2, 2, 1], [0, 1, 3])


def test_read_batches_needs_no_target_for_removed_vertex():
    batch = read({"src": ["a", "a"], "dst": ["b", None], "weight": [2.0, None], "op": ["add", "remove_vertex"]})
    assert (ids_to_list(batch.dst), batch.op.tolist(), batch.weight.tolist()) == (["b", "a"], [0, 3], [2, 1])
    with pytest.raises(FormatError, match="row 1: expected an op that is one of add"):
        read({"src": [1], "dst": [2], "op": ["paint"]})


def test_read_batches_converts_times_to_seconds():
    moment = datetime(2020, 1, 2, tzinfo=UTC)
    assert read({"src": [1], "dst": [2], "time": [moment]}).time.tolist() == [moment.timestamp()]
    assert read({"src": [1], "dst": [2], "time": [moment.date()]}).time.tolist() == [moment.timestamp()]
    assert read({"src": [1], "dst": [2], "time": [5]}).time.tolist() == [5.0]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"src": [1, None], "dst": [2, 3]}, {}, "row 2: expected an id"),
        ({"src": ["1", "x"], "dst": ["2", "3"]}, {"ids": "int"}, "row 2: expected integer ids, not 'x'"),
        (
            {"src": [1, 2], "dst": [2, 3], "weight": [1.0, -1.0]},
            {},
            "row 2: expected a positive finite weight, not -1.0",
        ),
        ({"src": [1, 2], "dst": [2, 3], "weight": [1.0, None]}, {}, "row 2: expected a positive finite weight"),
        ({"src": [1.5], "dst": [2.0]}, {}, "row 1: expected an id"),
        ({"src": [[1]], "dst": [[2]]}, {}, "row 1: expected an id"),
        ({"src": [1, 1], "dst": [2, 3], "time": [datetime(2020, 1, 1), None]}, {}, "row 2: expected a time"),
        ({"a": [1], "b": [2]}, {}, "expected columns src, dst, got a, b"),
        ({"src": [1], "dst": [2]}, {"weight": "w"}, "expected columns src, dst, w, got src, dst"),
    ],
)
def test_read_batches_with_bad_row_raises_error_with_row_number(columns, options, message):
    with pytest.raises(FormatError) as caught:
        read(columns, **options)
    assert message in str(caught.value)


def test_read_batches_with_skip_keeps_good_rows():
    bad_rows = BadRowHandler("e.parquet", "skip")
    times = [datetime(2020, 1, 2, tzinfo=UTC), None, datetime(2020, 1, 2, tzinfo=UTC)]
    batch = read({"src": [1, 2, 3], "dst": [2, 3, 4], "time": times}, bad_rows)
    assert (ids_to_list(batch.src), batch.time.tolist()) == ([1, 3], [1577923200.0] * 2)
    assert (bad_rows.count, bad_rows.first, bad_rows.unit) == (1, [2], "row")


@pytest.mark.parametrize("size", [10, 100, -4])
def test_read_batches_of_damaged_file_raises(size):
    data = parquet_bytes({"src": [1, 2], "dst": [2, 3]})[:size]
    with pytest.raises(FormatError, match=r"e\.parquet: expected a Parquet file"):
        list(parquet.read_batches(ByteStream("e.parquet", io.BytesIO(data)), ReadOptions(), BadRowHandler("e.parquet")))
