from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError
from ripplevec.io.readers import jsonl
from ripplevec.io.readers.byte_stream import ByteStream
from ripplevec.io.readers.edge_rows import BadRowHandler, ReadOptions
from ripplevec.io.rebatch import concatenate


def read(text, bad_rows=None, **options):
    data = text if isinstance(text, bytes) else text.encode()
    stream = ByteStream("e.jsonl", io.BytesIO(data))
    return concatenate(list(jsonl.read_batches(stream, ReadOptions(**options), bad_rows or BadRowHandler("e.jsonl"))))


names = st.integers(-(2**70), 2**70) | st.text(min_size=1, max_size=5)


@given(st.lists(st.tuples(names, names, st.floats(1e-3, 1e3)), min_size=1, max_size=8), st.booleans())
def test_read_batches_of_objects_or_lists_returns_all_edges(rows, objects):
    values = [dict(zip(("src", "dst", "weight"), row, strict=True)) if objects else row for row in rows]
    batch = read("".join(json.dumps(value) + "\n" for value in values))
    assert list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), batch.weight.tolist(), strict=True)) == rows


def test_read_batches_with_missing_fields_fills_defaults():
    batch = read('{"src": 1, "dst": "1"}\n\n[2, 3, 0.5]\n{"source": 4, "target": 5, "time": 7}\n')
    assert ids_to_list(batch.dst) == ["1", 3, 5]
    assert batch.weight.tolist() == [1.0, 0.5, 1.0]
    assert np.isnan(batch.time[:2]).all()
    assert batch.time[2] == 7.0
    assert read("[1, 2]").weight is None


def test_read_batches_with_op_returns_operations():
    batch = read(
        '{"src": 1, "dst": 2}\n{"src": 1, "dst": 2, "Op": "remove"}\n{"src": 1, "dst": null, "op": 3}\n[1, 3]\n'
    )
    assert (batch.src.tolist(), batch.dst.tolist()) == ([1, 1, 1, 1], [2, 2, 1, 3])
    assert batch.op.tolist() == [0, 1, 3, 0]
    assert read('{"src": 1, "dst": 2, "op": "x"}\n', op="none").op is None
    with pytest.raises(FormatError, match="line 1: expected an op that is one of add"):
        read('{"src": 1, "dst": 2, "op": "x"}\n')


def test_read_batches_with_options_uses_columns_and_id_type():
    batch = read('{"a": 1, "b": 2, "weight": -1}', src="a", dst="b", weight="none", ids="str")
    assert (ids_to_list(batch.src), batch.weight) == (["1"], None)
    assert ids_to_list(read('["1", 2, "x"]', ids="int", weight="none").src) == [1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "a JSON object or list"),
        ('"ab"', 'an edge {"src": …, "dst": …} or [src, dst, weight]'),
        ('{"src": 1}', "an edge"),
        ("[1]", "an edge"),
        ("[1, 2, -1]", "a positive finite weight"),
        ("[1, 2, NaN]", "a positive finite weight"),
        ("[1, 2.5]", "an id that is text or an integer, not 2.5"),
        ("[1, true]", "an id"),
        ("[1, null]", "an id"),
        (b"\xff", "UTF-8 text"),
        ('{"src": 1, "dst": 2, "color": 3}', "only the keys src, dst, weight, time, op, not 'color'"),
        ('{"src": 1, "dst": 2, "target": 3}', "one key for dst, not both 'dst' and 'target'"),
        ('{"src": 1, "dst": 2, "SRC": 3}', "one key for src, not both 'src' and 'SRC'"),
        ("[" * 100_000, "a JSON object or list"),
    ],
)
def test_read_batches_with_bad_line_raises_error_with_line_number(line, message):
    data = b"[1, 2]\n" + (line if isinstance(line, bytes) else line.encode())
    with pytest.raises(FormatError) as caught:
        read(data)
    assert str(caught.value).startswith(f"e.jsonl, line 2: expected {message}")


def test_read_batches_with_on_error_skip_counts_bad_lines():
    bad_rows = BadRowHandler("e.jsonl", "skip")
    assert ids_to_list(read("[1, 2]\nnothing\n[3, 4]\n", bad_rows).src) == [1, 3]
    assert (bad_rows.count, bad_rows.first) == (1, [2])
