from __future__ import annotations

import json
import struct
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripplevec.attributes.input import attributes_to_json
from ripplevec.batch import Batch, Op, ids_to_list
from ripplevec.durability.journal import JournalEntry
from ripplevec.errors import InvalidValueError
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.io.message_schema import MAX_ID_BYTES, MAX_KEY_LENGTH, MessageError
from ripplevec.io.messages import (
    check_idempotency_key,
    check_message_key,
    decode_arrow,
    decode_fields,
    decode_json,
    decode_message,
    decode_messages,
    to_display_text,
)
from ripplevec.io.readers.edge_rows import ReadOptions


def rows(batch: Batch):
    pairs = zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True)
    return [(*pair, Op(0 if batch.op is None else batch.op[row])) for row, pair in enumerate(pairs)]


def stream(**columns):
    return encode_arrow_stream(pa.table(columns))


ADD, REMOVE, VERTEX, REMOVE_VERTEX = Op


def test_decode_json_of_document_applies_lists_in_order():
    message = decode_json(
        b"""{"key": "k1", "remove_vertices": ["z"], "remove_edges": [["a", "b"]],
             "edges": [["a", "b"], ["a", "c", 2.0]],
             "arrivals": [{"id": "v", "neighbors": ["a", "b"], "weights": [1, 2.5], "time": 7}, {"id": "alone"}]}"""
    )
    assert message.key == "k1"
    assert rows(message.batch) == [
        ("v", "a", ADD),
        ("v", "b", ADD),
        ("alone", "alone", VERTEX),
        ("a", "b", ADD),
        ("a", "c", ADD),
        ("a", "b", REMOVE),
        ("z", "z", REMOVE_VERTEX),
    ]
    assert message.batch.weight.tolist() == [1, 2.5, 1, 1, 2, 1, 1]
    assert message.batch.time[:2].tolist() == [7, 7]
    assert np.isnan(message.batch.time[2:]).all()


@pytest.mark.parametrize(
    "edge",
    [
        b'["a", 1]',
        b'["a", 1, 1.0]',
        b'{"src": "a", "dst": 1}',
        b'{"source": "a", "target": 1, "op": "add"}',
        b'{"edges": [{"from": "a", "to": 1, "op": 0}]}',
    ],
)
def test_decode_message_accepts_every_form_of_edge(edge):
    batch = decode_message(edge).batch
    assert rows(batch) == [("a", 1, ADD)]


def test_decode_json_with_options_uses_columns_and_id_type():
    options = ReadOptions(src="u", dst="v", ids="str")
    assert rows(decode_json(b'{"u": 1, "v": 2, "op": "REMOVE"}', options).batch) == [("1", "2", REMOVE)]
    assert decode_json(b"[1, 2, 0.5]", ReadOptions(weight="none")).batch.weight is None
    assert decode_json(b'{"src": 1, "dst": 2, "weight": 0.5}', ReadOptions(weight="none")).batch.weight is None
    with pytest.raises(MessageError, match="only the keys u, v, weight, time, op, not 'src'"):
        decode_json(b'{"u": 1, "v": 2, "src": 3}', options)


@pytest.mark.parametrize("key", ["neighbors", "neighbours"])
def test_decode_json_of_arrival_accepts_either_spelling_of_neighbors(key):
    data = json.dumps({"arrivals": [{"id": "v", key: ["a", "b"], "weights": [1, 2]}]}).encode()
    batch = decode_json(data).batch
    assert rows(batch) == [("v", "a", ADD), ("v", "b", ADD)]
    assert batch.weight.tolist() == [1, 2]


def test_decode_json_parses_times_as_numbers_or_dates():
    batch = decode_json(b'{"edges": [[1, 2, 1, 5], [1, 2, null, "1970-01-02"], [3, 4]]}').batch
    assert batch.time[:2].tolist() == [5, 86400]
    assert np.isnan(batch.time[2])


def test_decode_json_of_empty_list_is_empty_batch():
    assert len(decode_json(b'{"edges": []}').batch) == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected JSON"),
        (b"\xff", "UTF-8"),
        (b"{}", "an edge"),
        (b"3", "an edge"),
        (b'{"edges": {}}', "edges: expected a list"),
        (b'{"edges": [[1]]}', "an edge"),
        (b'{"edges": [[1, 2, 3, 4, 5]]}', "an edge"),
        (b'{"edges": [], "speed": 1}', "document: expected only the keys key, arrivals, .*, got 'speed'"),
        (b'{"edges": [[1, 2, NaN]]}', "got NaN"),
        (b'{"edges": [[1, 2, 1e999]]}', "positive finite"),
        (b'{"edges": [[1, 2, -1]]}', "positive finite"),
        (b'{"edges": [[1, 2, "3"]]}', "positive finite"),
        (b'{"edges": [[1, 2, true]]}', "positive finite"),
        (b'{"edges": [[1, 2, 1, 1e999]]}', "a time"),
        (b'{"edges": [[1, 2, 1, 1e300]]}', "a time"),
        (b'{"edges": [[1, 2, 1, true]]}', "a time"),
        (b'{"edges": [[1.5, 2]]}', "int or str"),
        (b'{"edges": [[true, 2]]}', "int or str"),
        (b'{"edges": [[null, 2]]}', "int or str"),
        (b'{"edges": [["", "b"]]}', "got empty text"),
        (b'{"edges": [["", 2]]}', "got empty text"),
        (b'{"edges": [["\\ud800", "b"]]}', "UTF-8"),
        (b'{"edges": [{"src": 1, "dst": 2, "op": "paint"}]}', "op: expected one of add"),
        (b'{"edges": [{"src": 1, "dst": 2, "op": true}]}', "op: expected one of add"),
        (b'{"edges": [{"src": 1, "dst": 2, "op": [[]]}]}', "op: expected one of add"),
        (b'{"key": 1, "edges": []}', "key: expected text"),
        (b'{"key": "", "edges": []}', "key: expected text"),
        (b'{"key": "\\ud800", "edges": []}', "key: expected text"),
        (b'{"arrivals": ["v"]}', "arrivals: expected"),
        (b'{"arrivals": [{"neighbors": []}]}', "arrivals: expected"),
        (b'{"arrivals": [{"id": "v", "neigbors": []}]}', "arrivals: expected only the keys .*, got 'neigbors'. Remove"),
        (
            b'{"arrivals": [{"id": "v", "neighbors": [], "neighbours": []}]}',
            'one of "neighbors" and "neighbours", got both',
        ),
        (b'{"arrivals": [{"id": "v", "neighbours": "ab"}]}', "neighbours: expected a list of ids"),
        (
            b'{"src": 1, "dst": 2, "color": "red"}',
            r"only the keys src, dst, weight, time, op, not 'color' \(remove the key",
        ),
        (b'{"edges": [{"src": 1, "dst": 2, "wieght": 3}]}', "not 'wieght'"),
        (b'{"src": 1, "dst": 2, "source": 3}', "one key for src, not both 'src' and 'source'"),
        (b'{"id": "v", "neighbors": ["a"]}', "an edge"),
        (b'{"arrivals": [{"id": "v", "neighbors": "ab"}]}', "neighbors: expected a list of ids"),
        (b'{"arrivals": [{"id": "v", "neighbors": ["a"], "weights": []}]}', "one per neighbor"),
        (b'{"arrivals": [{"id": ["v"], "neighbors": ["a"]}]}', "int or str"),
        (b'{"remove_edges": [[1, 2, 3]]}', "pairs"),
        (b'{"edges": [[1, 2], [1, 2, "x"]]}', "weight: expected positive finite numbers .*, got 'x' in row 1"),
        (b'{"arrivals": [{"id": 1}, {"id": 2, "neighbors": [null]}]}', "neighbors: expected .*, got None in row 1"),
        (b'{"remove_vertices": [{}]}', "int or str"),
        (b"[" * 100_000, "too deeply"),
        (b'{"edges": ' + b"[" * 700 + b"]" * 700 + b"}", "."),
        (b"[" + b"9" * 5_000 + b", 1]", "expected JSON"),
        (b"[" + b"9" * 2_000 + b", 1]", "1 to 1,024 bytes"),
        (json.dumps(["x" * (MAX_ID_BYTES + 1), "b"]).encode(), "1 to 1,024 bytes, got one of 1,025 bytes"),
        (json.dumps(["x" * (MAX_ID_BYTES + 1), 1]).encode(), "1 to 1,024 bytes"),
        (json.dumps(["é" * (MAX_ID_BYTES // 2 + 1), "b"]).encode(), "1 to 1,024 bytes"),
    ],
)
def test_decode_message_that_is_invalid_raises_error_with_reason(data, reason):
    with pytest.raises(MessageError, match=reason):
        decode_message(data)


def test_decode_json_accepts_longest_id_and_key():
    name = "é" * (MAX_ID_BYTES // 2)
    key = "é" * MAX_KEY_LENGTH
    message = decode_json(json.dumps({"key": key, "edges": [[name, 2**70]]}).encode())
    assert (rows(message.batch), message.key) == ([(name, 2**70, ADD)], key)


def test_decode_arrow_reads_known_columns_and_ignores_others():
    batch = decode_message(
        stream(
            src=["a", "b"],
            dst=["c", "d"],
            weight=[1, 2],
            op=["add", "remove"],
            time=pa.array([1, None], pa.timestamp("s")),
        )
    ).batch
    assert rows(batch) == [("a", "c", ADD), ("b", "d", REMOVE)]
    assert batch.weight.tolist() == [1, 2]
    assert batch.time[0] == 1
    assert np.isnan(batch.time[1])
    more = decode_arrow(stream(src=[1], dst=[2], op=pa.array([2], pa.int8()), other=["x"]))
    assert rows(more) == [(1, 1, VERTEX)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected an Arrow stream"),
        (stream(src=[1], dst=[2])[:60], "expected an Arrow stream"),
        (stream(src=[1]), "expected columns"),
        (stream(src=[1, None], dst=[2, 3]), "an id in every row"),
        (stream(src=[[1]], dst=[2]), "int or str"),
        (stream(src=[1], dst=[2], weight=["x"]), "weight: expected numbers"),
        (stream(src=[1], dst=[2], weight=[None]), "weight: expected numbers"),
        (stream(src=[1], dst=[2], weight=[float("nan")]), "positive finite"),
        (
            stream(src=[1], dst=[2], weight=np.array([0x7FF0000000000001], np.uint64).view(np.float64)),
            "positive finite",
        ),
        (stream(src=[1], dst=[2]).replace(b"src", b"s\xff\xff"), "expected an Arrow stream"),
        (stream(src=[1], dst=[2], op=[9]), "op: expected"),
        (stream(src=[1], dst=[2], op=["x"]), "op: expected"),
        (stream(src=[1], dst=[2], time=["x"]), "time: expected"),
        (stream(src=[1], dst=[2], time=[float("inf")]), "time: expected"),
        (stream(src=[1], dst=[2], time=pa.array([1], pa.duration("s"))), "cast"),
        (stream(src=["x" * 1025], dst=["b"]), "1 to 1,024 bytes"),
        (stream(src=[""], dst=["b"]), "empty text"),
    ],
)
def test_decode_arrow_that_is_invalid_raises_error_with_reason(data, reason):
    with pytest.raises(MessageError, match=reason):
        decode_arrow(data)


def compressed(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()


def test_decode_arrow_of_compressed_stream_raises():
    zeros = compressed(pa.table({"src": np.zeros(1000, np.int64), "dst": np.zeros(1000, np.int64)}))
    huge_claim = zeros.replace(struct.pack("<q", 8000), struct.pack("<q", 1 << 45), 1)
    for data in (zeros, huge_claim):
        with pytest.raises(MessageError, match="Write the stream without compression"):
            decode_arrow(data)


def test_decode_arrow_that_unpacks_to_too_much_raises():
    same = pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int8), pa.array(["x" * 1000]))
    repeated_text = stream(src=same, dst=same)
    assert len(repeated_text) < 500_000
    with pytest.raises(MessageError, match="unpacks to 134,217,728 bytes at most, got 400,000,000"):
        decode_arrow(repeated_text)


def test_decode_fields_reads_edge_or_data():
    message = decode_fields({"src": b"1", "dst": b"b", "weight": b"2", "op": b"remove", "time": b"1970-01-01"})
    assert rows(message.batch) == [("1", "b", REMOVE)]
    assert (message.batch.weight.tolist(), message.batch.time.tolist()) == ([2], [0])
    assert rows(decode_fields({"src": b"1", "dst": b"2", "op": b"3"}, ReadOptions(ids="int")).batch) == [
        (1, 1, REMOVE_VERTEX)
    ]
    assert decode_fields({"data": b'{"key": "k", "edges": [[1, 2]]}'}).key == "k"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"src": b"1"},
        {"src": b"1", "dst": b"2", "color": b"red"},
        {"src": b"\xff", "dst": b"2"},
        {"src": b"1", "dst": b"2", "weight": b"nan"},
        {"src": b"1", "dst": b"2", "op": b"4"},
        {"src": b"", "dst": b"2"},
        {"data": b"nothing"},
        {"data": b"[1, 2]", "color": b"red"},
        {"data": b"[1, 2]", "src": b"1", "dst": b"2"},
    ],
)
def test_decode_fields_that_are_invalid_raises(fields):
    with pytest.raises(MessageError):
        decode_fields(fields)


def test_decode_messages_keeps_order_and_reports_bad_messages():
    items = [
        ("1", b'["a", "b"]'),
        ("2", b'["a", "b", -1]'),
        ("3", stream(src=["c"], dst=["d"])),
        ("4", {"src": b"e", "dst": b"f"}),
        ("5", b"\xfe"),
        ("6", b'{"remove_vertices": ["a"]}'),
    ]
    batch, bad_messages, _ = decode_messages(items)
    assert rows(batch) == [("a", "b", ADD), ("c", "d", ADD), ("e", "f", ADD), ("a", "a", REMOVE_VERTEX)]
    assert [(one.where, one.message) for one in bad_messages] == [("2", '["a", "b", -1]'), ("5", "\\xfe")]
    assert "positive finite" in bad_messages[0].reason
    good, none, _ = decode_messages([items[0], items[3], items[5]])
    assert (rows(good), none) == ([("a", "b", ADD), ("e", "f", ADD), ("a", "a", REMOVE_VERTEX)], [])


def test_to_display_text_limits_length_and_escapes_bytes():
    assert len(to_display_text(b"x" * 10_000_000)) == 1 << 16
    assert to_display_text({"src": b"\xff"}) == '{"src": "\\\\xff"}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "src", "dst", "op"]), inner),
    max_leaves=12,
)
documents = st.dictionaries(
    st.sampled_from(
        ["key", "edges", "arrivals", "remove_edges", "remove_vertices", "src", "dst", "op", "weight", "time"]
    ),
    json_values | st.lists(st.lists(json_values, min_size=2, max_size=3), max_size=3),
)
ARROW = stream(src=["a", "b"], dst=["c", "d"], weight=[1.0, 2.0], op=[0, 1])


@st.composite
def damaged(draw):
    data = bytearray(ARROW)
    for offset in draw(st.lists(st.integers(0, len(data) - 1), max_size=4)):
        data[offset] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=400)
@given(st.binary() | documents.map(lambda value: json.dumps(value).encode()) | damaged())
@example(b"[" * 100_000)
def test_decode_message_of_any_bytes_returns_batch_or_raises_message_error(data):
    with suppress(MessageError):
        assert isinstance(decode_message(data).batch, Batch)
    batch, bad_messages, _ = decode_messages([("here", data), ("there", b"[1, 2]")])
    assert len(batch) >= 1
    assert all(len(one.reason) < 1000 for one in bad_messages)
    assert len(bad_messages) <= 1


@given(st.dictionaries(st.sampled_from(["src", "dst", "weight", "op", "time", "data", "x"]), st.binary(max_size=8)))
def test_decode_fields_of_any_fields_returns_batch_or_raises_message_error(fields):
    with suppress(MessageError):
        assert len(decode_fields(fields).batch) == 1 or "data" in fields


@pytest.mark.parametrize("key", [None, "k", "x" * MAX_KEY_LENGTH, "é" * MAX_KEY_LENGTH])
def test_idempotency_key_of_valid_length_is_accepted_everywhere(key):
    check_idempotency_key(key)
    JournalEntry(None, key)
    assert check_message_key(key) == key


@pytest.mark.parametrize("key", ["", 1, b"k", "x" * (MAX_KEY_LENGTH + 1), "é" * (MAX_KEY_LENGTH + 1), "\ud800"])
def test_idempotency_key_that_is_invalid_is_rejected_everywhere(key):
    pattern = r"^key: expected text of 1 to 256 characters, got "
    with pytest.raises(InvalidValueError, match=pattern):
        check_idempotency_key(key)
    with pytest.raises(InvalidValueError, match=pattern):
        JournalEntry(None, key)
    with pytest.raises(MessageError, match=pattern):
        check_message_key(key)


# Attributes


def attributes_of(attributes):
    return [(row["id"], row["attributes"]) for row in attributes_to_json(attributes)]


def test_decode_json_of_attributes_creates_their_vertices_before_removals_are_refused():
    document = b"""{"arrivals": [{"id": "v", "neighbors": ["a"], "attributes": {"x": 1, "y": 2}}],
                    "edges": [["a", "b"]], "attributes": [{"id": "b", "attributes": {"y": 3}}]}"""
    batch = decode_json(document).batch
    assert rows(batch) == [("v", "a", ADD), ("a", "b", ADD), ("v", "v", VERTEX), ("b", "b", VERTEX)]
    assert attributes_of(batch.attributes) == [("v", {"x": 1.0, "y": 2.0}), ("b", {"y": 3.0})]
    dense = decode_json(b'{"attributes": [{"id": 7, "attributes": [0.5, -1]}]}', ReadOptions(ids="str")).batch
    assert attributes_of(dense.attributes) == [("7", [0.5, -1.0])]
    with pytest.raises(MessageError, match="got one that the document removes"):
        decode_json(b'{"attributes": [{"id": 7, "attributes": [1]}], "remove_vertices": [7]}')


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ('[{"id": 1, "attributes": {"x": -1}}]', "-1.0 in row 0, column 'x'"),
        ('[{"id": 1, "attributes": [1, 1e16]}]', r"1e\+16 in row 0, column 1"),
        ('[{"id": 1, "attributes": [1]}, {"id": 2, "attributes": [1, 2]}]', "Row 1 has 2 numbers, row 0 has 1"),
        ('[{"id": 1, "attributes": [1]}, {"id": 2, "attributes": {}}]', "value} in every row"),
        ('[{"id": 1, "attributes": [1]}, {"id": 1, "attributes": [2]}]', "one row per vertex, got '1 in rows 0 and 1"),
        ('[{"id": 1, "attributes": [NaN]}]', "numbers that JSON defines, got NaN"),
        ('[{"id": 1, "attributes": {"": 1}}]', "names of 1 to 1,024 bytes, got an empty one"),
        ('[{"id": 1, "attributes": []}]', "attributes: expected rows of numbers"),
    ],
)
def test_decode_json_of_bad_attributes_names_row_and_column(given, reason):
    with pytest.raises(MessageError, match=reason):
        decode_json(f'{{"attributes": {given}}}'.encode())


def test_decode_messages_with_attributes_keeps_those_that_are_last_and_not_removed():
    lines = [
        b'{"arrivals": [{"id": "v", "neighbors": ["a"], "attributes": {"x": 1}}]}',
        b'["a", "b"]',
        b'{"attributes": [{"id": "v", "attributes": {"y": 2}}, {"id": "w", "attributes": {"x": 1}}]}',
        b'{"attributes": [{"id": "u", "attributes": {"x": "bad"}}]}',
        b'{"remove_vertices": ["w"]}',
    ]
    decoded = decode_messages([(f"line {number}", line) for number, line in enumerate(lines)])
    assert [message.where for message in decoded.bad_messages] == ["line 3"]
    assert [attributes_of(part) for part in decoded.attributes] == [[("v", {"x": 1.0})], [("v", {"y": 2.0})]]
    batch = decoded.to_batch()
    assert attributes_of(batch.attributes) == [("v", {"y": 2.0})]
    assert rows(batch)[-2:] == [("w", "w", REMOVE_VERTEX), ("v", "v", VERTEX)]
    dense = decode_messages([("", lines[0]), ("", b'{"attributes": [{"id": "v", "attributes": [1]}]}')])
    with pytest.raises(MessageError, match="sparse rows, as the rows before"):
        dense.to_batch()


def test_decode_arrow_with_attributes_gives_those_of_the_source():
    sparse = pa.array([[("x", 1.0)], None, [("y", 2.0), ("x", 0.5)]], pa.map_(pa.string(), pa.float64()))
    batch = decode_arrow(stream(src=["a", "b", "c"], dst=["b", "c", "c"], op=[0, 0, 2], attributes=sparse))
    assert attributes_of(batch.attributes) == [("a", {"x": 1.0}), ("c", {"y": 2.0, "x": 0.5})]
    dense = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))
    batch = decode_arrow(stream(src=[1, 2], dst=[2, 3], attributes=dense))
    assert attributes_of(batch.attributes) == [(1, [1.0, 2.0]), (2, [3.0, 4.0])]
    none = decode_arrow(stream(src=[1], dst=[2], attributes=pa.array([None], pa.list_(pa.float32()))))
    assert none.attributes is None


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array(["x", "y"]), "lists of numbers, or maps of texts to numbers, got string"),
        (pa.array([["x"], ["y"]]), "lists of numbers, or maps"),
        (pa.array([[1.0], [float("nan")]]), "nan in row 1, column 0"),
        (pa.array([[1.0], [None]]), "nan in row 1, column 0"),
        (pa.array([[("x", 1.0), ("x", 2.0)], None], pa.map_(pa.string(), pa.float64())), "every name once"),
        (pa.array([[("x", 1.0)], [("x", None)]], pa.map_(pa.string(), pa.float64())), "row 1, column 'x'"),
    ],
)
def test_decode_arrow_of_bad_attributes_names_row_and_column(column, reason):
    with pytest.raises(MessageError, match=reason):
        decode_arrow(stream(src=["a", "b"], dst=["b", "c"], attributes=column))
    with pytest.raises(MessageError, match="'a' in rows 0 and 1"):
        decode_arrow(stream(src=["a", "a"], dst=["b", "c"], attributes=[[1.0], [2.0]]))
