from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Op
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.readers.edge_rows import (
    BadRowHandler,
    BatchBuilder,
    ReadOptions,
    RowError,
    check_positive_int,
    find_columns,
    missing_columns_error,
    parse_id,
    parse_op,
    parse_op_column,
    parse_time,
    parse_weight,
)
from ripplevec.io.readers.option_syntax import as_flags


@pytest.mark.parametrize("options", [{"ids": "float"}, {"on_error": "ignore"}])
def test_read_options_with_unknown_choice_raises(options):
    with pytest.raises(InvalidValueError, match=next(iter(options))):
        ReadOptions(**options)


def test_bad_row_handler_with_stop_raises_error_with_place_and_text():
    with pytest.raises(FormatError, match=r"e\.csv, line 1,200: expected 2 fields, got 'a'"):
        BadRowHandler("e.csv").report(1200, RowError("2 fields"), "a")


def test_bad_row_handler_with_skip_counts_rows():
    bad_rows = BadRowHandler("e.csv", on_error="skip")
    for number in range(10, 20):
        bad_rows.report(number, RowError(""), "")
    assert (bad_rows.count, bad_rows.first) == (10, [10, 11, 12, 13, 14])


@pytest.mark.parametrize(
    ("value", "ids", "expected"),
    [("1", "auto", "1"), (1, "auto", 1), ("1", "int", 1), ("-007", "int", -7), (1, "str", "1"), (2**80, "auto", 2**80)],
)
def test_parse_id_returns_requested_type(value, ids, expected):
    parsed = parse_id(value, ids)
    assert (parsed, type(parsed)) == (expected, type(expected))


@pytest.mark.parametrize("value", ["", True, 1.5, None, [1]])
def test_parse_id_with_invalid_value_raises(value):
    with pytest.raises(RowError, match="an id"):
        parse_id(value, "auto")


@pytest.mark.parametrize("value", ["a", "1.0", "1_000", "٣", "0x1f"])
def test_parse_id_with_text_for_integer_suggests_ids_str(value):
    with pytest.raises(RowError) as caught:
        parse_id(value, "int")
    assert caught.value.describe(as_flags).endswith("(to read every id as text: --ids str)")


@given(st.floats() | st.sampled_from([2.0**-150, 2.0**-149, 3.4028235677973366e38, 3.4028235677973362e38]))
def test_parse_weight_accepts_exactly_positive_finite_float32(value):
    with np.errstate(all="ignore"):
        stored = np.float32(value)
    if 0 < stored < math.inf:
        assert parse_weight(value) == value
    else:
        with pytest.raises(RowError, match="positive finite weight"):
            parse_weight(value)


@pytest.mark.parametrize("value", ["", "heavy", None, True, [1], 10**400])
def test_parse_weight_with_invalid_value_raises(value):
    with pytest.raises(RowError, match="positive finite weight"):
        parse_weight(value)


def test_parse_time_reads_numbers_and_iso_dates():
    assert parse_time("12.5") == parse_time(12.5) == 12.5
    assert parse_time("2020-01-02T03:04:05") == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    assert parse_time("2020-01-02T03:04:05+01:00") == parse_time("2020-01-02T02:04:05")
    for value in ("", "yesterday", "nan", "inf", None):
        with pytest.raises(RowError, match="a time"):
            parse_time(value)


def test_find_columns_uses_default_or_requested_names():
    assert find_columns(["Target", "SOURCE", "x"], ReadOptions()) == {"dst": 0, "src": 1}
    assert find_columns(["src", "dst", "weight", "time"], ReadOptions()) == {"src": 0, "dst": 1, "weight": 2, "time": 3}
    assert find_columns(["src", "dst", "weight"], ReadOptions(weight="none")) == {"src": 0, "dst": 1}
    assert find_columns(["a", "dst", "w"], ReadOptions(src="a", weight="w")) == {"src": 0, "dst": 1, "weight": 2}
    assert find_columns(["a", "b"], ReadOptions()) is None
    assert find_columns(["src", "dst"], ReadOptions(weight="w")) is None


def test_missing_columns_error_names_expected_and_existing_columns():
    text = str(missing_columns_error("e.csv", ["a", "b"], ReadOptions(src="x", weight="w")))
    assert "e.csv: expected columns x, dst, w, got a, b" in text


def test_batch_builder_builds_given_columns():
    rows = BatchBuilder(["src", "dst", "weight"], "int")
    rows.add({"src": "1", "dst": "2", "weight": "0.5"})
    batch = rows.build()
    assert (batch.src.tolist(), batch.dst.tolist(), batch.weight.tolist()) == ([1], [2], [0.5])
    assert (batch.op, batch.time) == (None, None)


def test_batch_builder_needs_no_weight_for_removal_and_no_target_for_vertex():
    rows = BatchBuilder(["src", "dst", "weight", "op"], "int")
    rows.add({"src": "1", "dst": "2", "weight": "", "op": "remove"})
    rows.add({"src": "3", "dst": "", "weight": "", "op": "remove_vertex"})
    for wrong in ({"op": ""}, {"op": "add"}, {"op": "remove", "dst": ""}, {"op": "paint"}):
        with pytest.raises(RowError):
            rows.add({"src": "1", "dst": "2", "weight": "", **wrong})
    batch = rows.build()
    assert (batch.src.tolist(), batch.dst.tolist(), batch.op.tolist()) == (
        [1, 3],
        [2, 3],
        [Op.REMOVE, Op.REMOVE_VERTEX],
    )


def test_parse_op_accepts_names_and_numbers():
    expected = {None: Op.ADD, "": Op.ADD, "Add": Op.ADD, " REMOVE ": Op.REMOVE, 2: Op.VERTEX, "3": Op.REMOVE_VERTEX}
    assert {value: parse_op(value) for value in expected} == expected
    assert parse_op_column(pa.array(["add", "remove", "", "remove"])).tolist() == [0, 1, 0, 1]
    assert parse_op_column(pa.array([], pa.string())).tolist() == []
    for value in ("paint", 4, True, 1.0, ["add"]):
        with pytest.raises(RowError, match="an op that is one of add, remove, vertex, remove_vertex, not"):
            parse_op(value)


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_check_positive_int_with_other_value_raises(value):
    with pytest.raises(InvalidValueError, match="batch_size"):
        check_positive_int("batch_size", value)
