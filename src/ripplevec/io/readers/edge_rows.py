"""What reading edges means: which columns count, what a row must hold, and what happens to one that does not."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import LARGEST_TIME, Batch, Id, Op
from ripplevec.errors import FormatError, InvalidValueError, check_choice, shorten
from ripplevec.io.readers.byte_stream import ByteStream

POSITIONAL_COLUMNS = {
    "src": ("src", "source", "from"),
    "dst": ("dst", "target", "to", "destination"),
    "weight": ("weight",),
    "time": ("time", "timestamp"),
}
"""The column names that are understood without being asked for, in any case of letters; a file without names has its
fields in this order."""

COLUMN_NAMES = {**POSITIONAL_COLUMNS, "op": ("op",)}
"""Every column that counts; what a row does is told by a name only, never by the order."""

OP_BY_NAME: dict[object, Op] = {None: Op.ADD, "": Op.ADD}
OP_BY_NAME |= {name: op for op in Op for name in (op.name.lower(), int(op), str(int(op)))}
"""What may stand for an operation, in any case of letters; nothing stands for ADD."""

INTEGER_ID = re.compile(r"[+-]?[0-9]+")
"""What an integer id may look like."""

BELOW_WEIGHTS, ABOVE_WEIGHTS = 2.0**-150, 2.0**128 - 2.0**103
"""Between these a number is positive and finite as float32 too, which is what the graph holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Which columns hold what, how ids are read, and what to do with a row that cannot be read.

    A column is a name, or a position from 1 in a file without a header; None finds it, "none" leaves it out.
    """

    src: str | None = None
    dst: str | None = None
    weight: str | None = None
    time: str | None = None
    op: str | None = None
    ids: str = "auto"
    on_error: str = "stop"

    def __post_init__(self) -> None:
        check_choice("ids", self.ids, ("auto", "int", "str"))
        check_choice("on_error", self.on_error, ("stop", "skip"))


class RowError(Exception):
    """One row does not hold an edge; says what was expected of it."""


@dataclass(slots=True)
class BadRowHandler:
    """The rows of one file that could not be read: an error at the first, or a count."""

    name: str
    on_error: str = "stop"
    unit: str = "line"
    count: int = 0
    first: list[int] = field(default_factory=list)

    def report(self, number: int, expected: object, got: object) -> None:
        """Stop at a bad row, or note it and go on."""
        if self.on_error == "stop":
            raise FormatError(f"{self.name}, {self.unit} {number:,}: expected {expected}, got {shorten(got)}")
        self.count += 1
        if len(self.first) < 5:
            self.first.append(number)


class FormatReader(Protocol):
    """A way to write edges in a file: everything the rest needs to know of it."""

    def __call__(self, source: ByteStream, options: ReadOptions, bad: BadRowHandler) -> Iterator[Batch]:
        """The edges of the source, block by block, in the order they are written."""
        ...


class BatchBuilder:
    """Rows collected one by one into a batch, of which these columns are there."""

    def __init__(self, columns: Collection[str], ids: str) -> None:
        self._ids = ids
        self.src: list[Id] = []
        self.dst: list[Id] = []
        self.weight: list[float] | None = [] if "weight" in columns else None
        self.time: list[float] | None = [] if "time" in columns else None
        self.op: list[Op] | None = [] if "op" in columns else None

    def add(self, row: Mapping[str, object]) -> None:
        """Put one row behind the others; of a removal no weight is asked, of a vertex no target."""
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

    def batch(self) -> Batch:
        """The rows so far."""
        return Batch.of(self.src, self.dst, self.weight, self.op, self.time)


def parse_id(value: object, ids: str) -> Id:
    """An id as the file was asked to be read; "auto" takes ints and text as they are."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise RowError(f"an id that is text or an integer, not {shorten(value)}")
    if ids == "str":
        return str(value)
    if ids == "int" and isinstance(value, str):
        if not INTEGER_ID.fullmatch(value):
            raise RowError(f"integer ids, not {shorten(value)} (to read every id as text: --ids str)")
        return int(value)
    return value


def parse_op(value: object) -> Op:
    """What a row does, by its name or its number."""
    known = value.strip().lower() if isinstance(value, str) else value
    if type(known) not in (str, int, Op, type(None)) or known not in OP_BY_NAME:
        raise RowError(f"an op that is one of {', '.join(op.name.lower() for op in Op)}, not {shorten(value)}")
    return OP_BY_NAME[known]


def parse_op_column(column: pa.Array) -> NDArray[np.int8]:
    """A column of operations; every value that there is in it is looked at once."""
    found = column.dictionary_encode()
    return np.array([parse_op(value) for value in found.dictionary.to_pylist()], np.int8)[found.indices.to_numpy()]


def parse_weight(value: object) -> float:
    """A weight the graph can hold: positive and finite, also as float32."""
    weight = _number(value)
    if not BELOW_WEIGHTS < weight < ABOVE_WEIGHTS:
        raise RowError(f"a positive finite weight, not {shorten(value)}")
    return weight


def parse_time(value: object) -> float:
    """A moment in seconds: a number, or an ISO 8601 date or time (UTC unless it says otherwise)."""
    seconds = _number(value)
    if math.isnan(seconds) and isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not abs(seconds) <= LARGEST_TIME:
        raise RowError(f"a time as a number or in ISO 8601, not {shorten(value)}")
    return seconds


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def find_columns(names: Sequence[str], options: ReadOptions) -> dict[str, int] | None:
    """Where src, dst, weight, time and op stand among these names; None where one that is needed is not among them."""
    lowered = [name.lower() for name in names]
    found: dict[str, int] = {}
    for role, common in COLUMN_NAMES.items():
        asked = getattr(options, role)
        if asked == "none":
            continue
        if asked in names:
            found[role] = names.index(asked)
        elif asked is not None:
            return None
        elif match := [name for name in common if name in lowered]:
            found[role] = lowered.index(match[0])
    return found if "src" in found and "dst" in found else None


def missing_columns_error(name: str, names: Sequence[str], options: ReadOptions) -> FormatError:
    """The error for a file whose columns are not the expected ones."""
    asked = {role: getattr(options, role) for role in COLUMN_NAMES}
    wanted = ", ".join(
        name or role for role, name in asked.items() if name not in (None, "none") or role in ("src", "dst")
    )
    return FormatError(f"{name}: expected columns {wanted}, got {', '.join(names)}; name them with --src and --dst")


def check_positive_int(name: str, value: object) -> int:
    """A number of rows or bytes, at least one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValueError.of(name, "an integer of at least 1", value)
    return value
