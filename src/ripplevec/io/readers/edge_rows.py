"""Rows of edge tables: read options, column lookup, value parsing, and the handling of bad rows."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import MAX_TIME, Batch, Id, Op
from ripplevec.edge_lists import COLUMN_NAMES, match_column_names
from ripplevec.errors import FormatError, InvalidValueError, check_choice, shorten
from ripplevec.io.readers.option_syntax import OptionSyntax, as_arguments
from ripplevec.times import parse_date

OP_BY_NAME: dict[object, Op] = {None: Op.ADD, "": Op.ADD}
OP_BY_NAME |= {name: op for op in Op for name in (op.name.lower(), int(op), str(int(op)))}
"""Operations by their lowercase name, their number, or the number as text; an empty value means ADD."""

INTEGER_ID = re.compile(r"[+-]?[0-9]+")
"""The text of an integer id."""

WEIGHT_LOWER_BOUND, WEIGHT_UPPER_BOUND = 2.0**-150, 2.0**128 - 2.0**103
"""Exclusive bounds within which a weight stays positive and finite as float32, the type the graph stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Names of the columns, whether a text file has a header, type of the ids, and the reaction to a bad row.

    A column is a name, or a position counted from 1 in a text file. None looks for the names recognized by default,
    "none" ignores the column. `header` None decides by the first lines. `syntax` writes options in messages as the user
    of the reader gives them.
    """

    src: str | None = None
    dst: str | None = None
    weight: str | None = None
    time: str | None = None
    op: str | None = None
    header: bool | None = None
    ids: str = "auto"
    on_error: str = "stop"
    syntax: OptionSyntax = as_arguments

    def __post_init__(self) -> None:
        check_choice("ids", self.ids, ("auto", "int", "str"))
        check_choice("on_error", self.on_error, ("stop", "skip"))


class RowError(Exception):
    """A row is not a valid edge; the text completes "expected …".

    `hints` are options that may help, each a purpose with the name and the value of the option.
    """

    def __init__(self, expected: str, *hints: tuple[str, str, str]) -> None:
        super().__init__(expected)
        self._hints = hints

    def describe(self, syntax: OptionSyntax) -> str:
        """Return the text with its hints."""
        hints = "; ".join(f"{purpose}: {syntax(**{name: value})}" for purpose, name, value in self._hints)
        return f"{self} ({hints})" if hints else str(self)


@dataclass(slots=True)
class BadRowHandler:
    """Reacts to the bad rows of one file: raises at the first one, or counts them."""

    name: str
    on_error: str = "stop"
    unit: str = "line"
    count: int = 0
    first: list[int] = field(default_factory=list)
    """Numbers of the first five bad rows, counted from 1."""
    syntax: OptionSyntax = as_arguments
    first_problem: str | None = None
    """What is wrong with the first bad row."""

    def report(self, number: int, error: RowError, got: object) -> None:
        """Raise `FormatError` for a bad row, or count it, as `on_error` says."""
        if self.first_problem is None:
            self.first_problem = f"{self.unit} {number:,}: expected {error.describe(self.syntax)}, got {shorten(got)}"
        if self.on_error == "stop":
            raise FormatError(f"{self.name}, {self.first_problem}")
        self.count += 1
        if len(self.first) < 5:
            self.first.append(number)


@dataclass(slots=True)
class FileColumns:
    """Names of the columns of a file: those that are used, by what they are used for, and those that are ignored."""

    used: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    def add(self, names: Sequence[str], positions: Mapping[str, int]) -> None:
        """Add the columns of a file, or of one kind of its rows, and the positions of the used ones."""
        for column, position in positions.items():
            self.used.setdefault(column, names[position])
        others = (name for position, name in enumerate(names) if position not in positions.values())
        self.ignored += [name for name in dict.fromkeys(others) if name not in self.ignored]


class BatchBuilder:
    """Builds a batch from single rows that have the given columns."""

    def __init__(self, columns: Collection[str], ids: str) -> None:
        self._ids = ids
        self.src: list[Id] = []
        self.dst: list[Id] = []
        self.weight: list[float] | None = [] if "weight" in columns else None
        self.time: list[float] | None = [] if "time" in columns else None
        self.op: list[Op] | None = [] if "op" in columns else None

    def add(self, row: Mapping[str, object]) -> None:
        """Append one row; a removal needs no weight, a vertex operation no target."""
        op = parse_op(row["op"]) if self.op is not None else Op.ADD
        src = parse_id(row["src"], self._ids)
        dst = src if op >= Op.VERTEX else parse_id(row["dst"], self._ids)
        weight = parse_weight(row["weight"]) if self.weight is not None and op == Op.ADD else 1.0
        time = parse_time(row["time"]) if self.time is not None else 0.0
        self.src.append(src)
        self.dst.append(dst)
        if self.weight is not None:
            self.weight.append(weight)
        if self.time is not None:
            self.time.append(time)
        if self.op is not None:
            self.op.append(op)

    def build(self) -> Batch:
        """Return the rows added so far as a batch."""
        return Batch.of(self.src, self.dst, self.weight, self.op, self.time)


# Values


def parse_id(value: object, ids: str) -> Id:
    """Return an id of the requested type; "auto" keeps integers and text as they are."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise RowError(f"an id that is text or an integer, not {shorten(value)}")
    if ids == "str":
        return str(value)
    if ids == "int" and isinstance(value, str):
        if not INTEGER_ID.fullmatch(value):
            raise RowError(f"integer ids, not {shorten(value)}", ("to read every id as text", "ids", "str"))
        return int(value)
    return value


def parse_op(value: object) -> Op:
    """Return an operation given by name or number."""
    name = value.strip().lower() if isinstance(value, str) else value
    if type(name) not in (str, int, Op, type(None)) or name not in OP_BY_NAME:
        raise RowError(f"an op that is one of {', '.join(op.name.lower() for op in Op)}, not {shorten(value)}")
    return OP_BY_NAME[name]


def parse_op_column(column: pa.Array) -> NDArray[np.int8]:
    """Return a column of operations; every distinct value is parsed once."""
    encoded = column.dictionary_encode()
    return np.array([parse_op(value) for value in encoded.dictionary.to_pylist()], np.int8)[encoded.indices.to_numpy()]


def parse_weight(value: object) -> float:
    """Return a weight that is positive and finite, also as float32."""
    weight = _parse_number(value)
    if math.isnan(weight) and isinstance(value, str):
        raise RowError(f"a positive finite weight, not {shorten(value)}", *_column_hints("weight"))
    if not WEIGHT_LOWER_BOUND < weight < WEIGHT_UPPER_BOUND:
        raise RowError(f"a positive finite weight, not {shorten(value)}")
    return weight


def parse_time(value: object) -> float:
    """Return a time in seconds from a number, or from an ISO 8601 date or time (UTC unless it names a zone)."""
    seconds = _parse_number(value)
    if math.isnan(seconds) and isinstance(value, str):
        try:
            return parse_date(value)
        except ValueError:
            pass
    if not abs(seconds) <= MAX_TIME:
        raise RowError(f"a time as a number or in ISO 8601, not {shorten(value)}", *_column_hints("time"))
    return seconds


def _column_hints(column: str) -> tuple[tuple[str, str, str], ...]:
    return ("another column", column, "NAME"), (f"no {column}s", column, "none")


def _parse_number(value: object) -> float:
    """Return a number or the number written in a text; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


# Columns


def requested_columns(options: ReadOptions) -> dict[str, str]:
    """Return the columns that the options name or ignore."""
    return {column: name for column in COLUMN_NAMES if (name := getattr(options, column)) is not None}


def find_columns(names: Sequence[str], options: ReadOptions) -> dict[str, int] | None:
    """Return the positions of src, dst, weight, time and op among the names; None if a required one is missing."""
    requested = requested_columns(options)
    positions = match_column_names(names, requested)
    required = {"src", "dst"} | {column for column, name in requested.items() if name != "none"}
    return positions if required <= positions.keys() else None


def missing_columns_error(name: str, names: Sequence[str], options: ReadOptions) -> FormatError:
    """Build the error for a file that lacks a required column."""
    requested = {column: getattr(options, column) for column in COLUMN_NAMES}
    expected = ", ".join(
        name or column for column, name in requested.items() if name not in (None, "none") or column in ("src", "dst")
    )
    return FormatError(f"{name}: expected columns {expected}, got {', '.join(names)}. {columns_hint(options)}.")


def columns_hint(options: ReadOptions) -> str:
    """Return how to name the columns of a file."""
    return f"Name the columns: {options.syntax(src='NAME', dst='NAME', weight='NAME', time='NAME')}"


def check_positive_int(name: str, value: object) -> int:
    """Return the value if it is an integer of at least 1; raise `InvalidValueError` otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValueError.of(name, "an integer of at least 1", value)
    return value
