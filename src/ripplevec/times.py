"""Times as people have them, read as numbers: dates are converted to seconds since 1970."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, shorten

TimeLike: TypeAlias = float | str | date | np.datetime64
"""One time: a number in any unit, or a date, such as a datetime, a pandas.Timestamp or ISO 8601 text."""

EXPECTED_TIMES = "numbers, or dates as datetime, Timestamp, datetime64 or ISO 8601 text"


def times_to_numbers(values: Any) -> Any:
    """Convert a column of dates to seconds since 1970, NaN for missing ones; return a column of numbers unchanged.

    A date without a time zone is in UTC, as in files. A column must not mix numbers and dates, which have different
    units.
    """
    try:
        column = np.asarray(values)
    except ValueError:  # ragged: reported by the caller
        return values
    if column.dtype.kind == "M":
        return np.where(np.isnat(column), np.nan, column.astype("M8[us]").astype(np.int64) / 1e6)
    return _convert_objects(column) if column.dtype.kind in "OU" and column.ndim == 1 else values


def _convert_objects(column: NDArray[Any]) -> NDArray[np.float64]:
    seconds, is_date = np.full(len(column), np.nan), np.zeros(len(column), np.bool_)
    for row, value in enumerate(column.tolist()):
        if value is None or value != value:  # NaN and NaT differ from themselves
            continue
        try:
            seconds[row], is_date[row] = _convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            got = f"{shorten(value)} in row {row}"
            raise InvalidValueError(f"time: expected {EXPECTED_TIMES}, got {got}") from error
    known = is_date[~np.isnan(seconds)]
    if known.any() and not known.all():
        number, moment = (int(np.flatnonzero((is_date == kind) & ~np.isnan(seconds))[0]) for kind in (False, True))
        got = f"a number in row {number} and a date in row {moment}"
        raise InvalidValueError(f"time: expected either numbers or dates in one column, got {got}")
    return seconds


def _convert(value: Any) -> tuple[float, bool]:
    """Return a value as a number, and whether it is a date."""
    if isinstance(value, str):
        try:
            return float(value), False
        except ValueError:
            return parse_date(value), True
    if isinstance(value, datetime):
        return _to_seconds(value), True
    if isinstance(value, date):
        return _to_seconds(datetime.combine(value, time())), True
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError("neither a number nor a date")
    return float(value), False


def parse_date(text: str) -> float:
    """Return the seconds since 1970 of a date or time in ISO 8601; in UTC unless it names a zone."""
    return _to_seconds(datetime.fromisoformat(text))


def _to_seconds(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
