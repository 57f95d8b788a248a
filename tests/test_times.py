"""Dates in every form that people have them in become seconds since 1970."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec import Batch, Embedder, InvalidValueError
from ripplevec.times import times_to_numbers

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
SECONDS = NOON.timestamp()
PLUS_TWO = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "value",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(PLUS_TWO),
        pd.Timestamp(NOON),
        pd.Timestamp(NOON.replace(tzinfo=None)),
        np.datetime64("2024-05-06T12"),
        "2024-05-06T12:00:00",
        "2024-05-06 12:00",
        "2024-05-06T14:00:00+02:00",
        "2024-05-06T12:00:00Z",
        SECONDS,
        int(SECONDS),
        str(SECONDS),
    ],
    ids=str,
)
def test_one_moment_in_every_form_is_the_same_number(value):
    assert Batch.of(["a", "b"], ["b", "c"], time=[value, value]).time.tolist() == [SECONDS] * 2
    assert Batch.arrival("a", ["b"], time=value).time.tolist() == [SECONDS]


def test_date_is_midnight_in_utc():
    assert times_to_numbers([date(1970, 1, 2), date(1970, 1, 3)]).tolist() == [86_400, 172_800]


@pytest.mark.parametrize(
    "column",
    [
        [NOON, None],
        [pd.Timestamp(NOON), pd.NaT],
        ["2024-05-06T12:00:00Z", None],
        pd.Series([pd.Timestamp(NOON), pd.NaT]),
        pd.Series([pd.Timestamp(NOON).tz_convert("Asia/Tokyo"), pd.NaT]),
        pl.Series([NOON, None]),
        pa.array([NOON, None]),
        pa.array(["2024-05-06T12:00:00Z", None]),
        np.array(["2024-05-06T12", "NaT"], "datetime64[h]"),
    ],
    ids=lambda column: type(column).__name__,
)
def test_missing_date_is_no_time(column):
    np.testing.assert_array_equal(Batch.of([1, 2], [2, 3], time=column).time, [SECONDS, np.nan])


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_dates_in_a_frame_of_any_zone_are_accepted_by_fit(zone):
    times = pd.to_datetime(pd.Series(["2024-01-01", "2024-01-31", "2024-01-31"])).dt.tz_localize(zone)
    frame = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "a"], "when": times})
    model = Embedder(dim=2, half_life=30 * 86_400).fit(frame, time="when")
    assert dict(model.neighbors("a")) == pytest.approx({"b": 0.5, "c": 1.0})


@given(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC) | st.just(PLUS_TWO)))
def test_text_and_object_agree(moment):
    (from_text,), (from_object,) = times_to_numbers([moment.isoformat()]), times_to_numbers([moment])
    assert from_text == from_object == moment.timestamp()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["2024-01-01", "yesterday"], r"time: expected numbers, or dates .*, got 'yesterday' in row 1"),
        ([NOON, timedelta(1)], r"got datetime\.timedelta\(days=1\) in row 1"),
        ([NOON, True], "got True in row 1"),
        ([None, 5, NOON], "either numbers or dates in one column, got a number in row 1 and a date in row 2"),
        (["17", "2024-01-01"], "got a number in row 0 and a date in row 1"),
    ],
)
def test_value_that_is_not_a_time_is_named_with_its_row(column, message):
    ids = list(range(len(column)))
    with pytest.raises(InvalidValueError, match=message):
        Batch.of(ids, ids, time=column)


def test_other_numbers_are_used_as_they_are():
    assert Batch.of([1, 2], [2, 3], time=[np.int8(1), 2.5]).time.tolist() == [1, 2.5]
