"""Edges as lines of text: fields between commas, tabs, semicolons or blanks, with or without a header.

The exact parser below says what a file means and names the line where it means nothing. Blocks without surprises go
through Arrow instead, which is far faster; whatever it refuses is read again by the exact one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from ripplevec.batch import MAX_TIME, Batch, IdColumn
from ripplevec.errors import FormatError, InvalidValueError, shorten
from ripplevec.io.readers.byte_stream import ByteStream, LineBlock
from ripplevec.io.readers.edge_rows import (
    COLUMN_NAMES,
    INTEGER_ID,
    POSITIONAL_COLUMNS,
    BadRowHandler,
    BatchBuilder,
    ReadOptions,
    RowError,
    find_columns,
    missing_columns_error,
    parse_op_column,
)

COMMENTS = (b"#", b"%")
PLAIN_WHOLE = "^(0|-?[1-9][0-9]*)$"
"""What ids must look like to be taken for integers: written in the one usual way, so that "007" stays text."""

_COMMENT_LINES = re.compile(rb"(?m)^[#%].*\n?")
_QUOTED = re.compile(rb'"[^"]*"')
_BLANKS = re.compile(r'("(?:[^"]|"")*")|[ \t]+')


class _NotPlainError(Exception):
    """A block has something that only the exact parser reads the way it is meant."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a line is cut, and which of its fields count."""

    delimiter: str
    width: int
    columns: dict[str, int]


def read(source: ByteStream, options: ReadOptions, bad: BadRowHandler) -> Iterator[Batch]:
    """The edges of a text file; ids that all look like integers in its first block are integers."""
    layout, ids = None, options.ids
    for block in source.line_blocks():
        if layout is None:
            begun = start(block, source.name, options)
            if begun is None:
                continue
            layout, block = begun
        if ids == "auto":
            ids = detect_id_type(block, layout)
        yield parse(block, layout, ids, bad)


def start(block: LineBlock, name: str, options: ReadOptions) -> tuple[Layout, LineBlock] | None:
    """The layout as the first line of data shows it, and what follows the header, if that line is one."""
    lines = _data_lines(block)
    first = next(lines, None)
    if first is None:
        return None
    number, line = first
    delimiter = _delimiter(line)
    try:
        fields = _fields(line, delimiter)
    except RowError as error:
        raise FormatError(f"{name}, line {number:,}: expected {error}, got {shorten(line)}") from None
    columns, header = _columns(fields, name, options)
    if not header:
        _refuse_unknown_header(fields, next(lines, None), delimiter, name, options)
    after = number - block.first + 1 if header else 0
    rest = block.data.split(b"\n", after)[after]
    return Layout(delimiter, len(fields), columns), LineBlock(block.first + after, rest)


def _columns(fields: list[str], name: str, options: ReadOptions) -> tuple[dict[str, int], bool]:
    """Which fields count, and whether the first line is a header."""
    asked = {role: value for role in COLUMN_NAMES if (value := getattr(options, role)) not in (None, "none")}
    if not all(value.isdecimal() for value in asked.values()):
        found = find_columns(fields, options)
        if found is None:
            raise missing_columns_error(name, fields, options)
        return found, True
    left_out = ReadOptions(weight=options.weight, time=options.time, op=options.op)
    known = find_columns(fields, ReadOptions() if asked else left_out)
    if known and not asked:
        return known, True
    positions = {role: int(value) - 1 for role, value in asked.items()} or _usual(len(fields), options)
    positions = {"src": 0, "dst": 1} | positions
    if not all(0 <= position < len(fields) for position in positions.values()):
        wanted = ", ".join(f"{role} in field {position + 1}" for role, position in positions.items())
        between = " between tabs, commas, semicolons or blanks" if len(fields) == 1 else ""
        raise FormatError(f"{name}: expected {wanted}{between}, got {len(fields)} field(s) in {shorten(fields)}")
    return positions, known is not None


def _usual(width: int, options: ReadOptions) -> dict[str, int]:
    """The order of the fields in a file that does not say: src, dst, weight, time."""
    order = dict(zip(POSITIONAL_COLUMNS, range(width), strict=False))
    return {role: position for role, position in order.items() if getattr(options, role) != "none"}


def _refuse_unknown_header(
    fields: list[str], second: tuple[int, bytes] | None, delimiter: str, name: str, options: ReadOptions
) -> None:
    """An error for a first line of words above a line of numbers: read as an edge, it would do quiet harm."""
    if options.ids != "auto" or second is None:
        return
    try:
        below = _fields(second[1], delimiter)
    except RowError:
        return
    if all(map(INTEGER_ID.fullmatch, below[:2])) and not any(map(INTEGER_ID.fullmatch, fields[:2])):
        raise missing_columns_error(name, fields, options)


def detect_id_type(block: LineBlock, layout: Layout) -> str:
    """ "int" where every id of a block looks like an integer, "str" where one does not, "auto" where there is none."""
    probe = parse(block, layout, "str", BadRowHandler("", on_error="skip"))
    if not len(probe):
        return "auto"
    return "int" if all(_all_match(column, PLAIN_WHOLE) for column in (probe.src, probe.dst)) else "str"


def _all_match(column: IdColumn | pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def parse(block: LineBlock, layout: Layout, ids: str, bad: BadRowHandler) -> Batch:
    """The edges of whole lines without a header; ids are "int" or "str"."""
    try:
        return _fast(block, layout, ids)
    except (_NotPlainError, RowError, pa.ArrowInvalid, InvalidValueError):
        return _exact(block, layout, ids, bad)


# The fast way


def _fast(block: LineBlock, layout: Layout, ids: str) -> Batch:
    data = _plain(block.data, layout.delimiter)
    data += layout.delimiter.join("1" * layout.width).encode() + b"\n"  # a quote left open would swallow this line
    roles = {role: str(position) for role, position in layout.columns.items()}
    kinds = {name: pa.float64() if role == "weight" else pa.large_string() for role, name in roles.items()}
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        arrow_csv.ReadOptions(column_names=[*map(str, range(layout.width))], use_threads=False, block_size=len(data)),
        arrow_csv.ParseOptions(delimiter=layout.delimiter),
        arrow_csv.ConvertOptions(include_columns=list(kinds), column_types=kinds, null_values=[]),
    )
    if len(table) != data.count(b"\n"):
        raise _NotPlainError
    columns = {role: table[name].combine_chunks()[:-1] for role, name in roles.items()}
    time, op = columns.get("time"), columns.get("op")
    return Batch.of(
        _arrow_ids(columns["src"], ids),
        _arrow_ids(columns["dst"], ids),
        columns.get("weight"),
        None if op is None else parse_op_column(op),
        None if time is None else _arrow_times(time),
    )


def _plain(data: bytes, delimiter: str) -> bytes:
    """A block as Arrow takes it: no comments, Unix line ends, one blank between fields."""
    data = data.replace(b"\r\n", b"\n")
    if b"\r" in data:
        raise _NotPlainError
    if any(data.startswith(sign) or b"\n" + sign in data for sign in COMMENTS):
        data = _COMMENT_LINES.sub(b"", data)
    if delimiter == " ":
        if b'"' in data:
            raise _NotPlainError
        data = data.replace(b"\t", b" ")
        if b"  " in data:
            data = re.sub(rb" +", b" ", data)
        if data.startswith(b" ") or b"\n " in data or b" \n" in data:
            data = re.sub(rb"(?m)^ | $", b"", data)
    return data


def _arrow_ids(column: pa.Array, ids: str) -> pa.Array:
    column = pc.utf8_trim(column, " \t")
    if ids == "str":
        if pc.any(pc.equal(pc.binary_length(column), 0)).as_py():
            raise _NotPlainError
        return column
    if not pc.all(pc.ascii_is_decimal(column)).as_py() and not _all_match(column, "^-?[0-9]+$"):
        raise _NotPlainError
    return column.cast(pa.int64())


def _arrow_times(column: pa.Array) -> NDArray[np.float64]:
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            times = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        seconds = times.to_numpy() if kind == pa.float64() else times.cast(pa.int64()).to_numpy() / 1e6
        if (np.abs(seconds) <= MAX_TIME).all():
            return np.asarray(seconds, np.float64)
    raise _NotPlainError


# The exact way


def _exact(block: LineBlock, layout: Layout, ids: str, bad: BadRowHandler) -> Batch:
    rows = BatchBuilder(layout.columns, ids)
    for number, line in _data_lines(block):
        try:
            fields = _fields(line, layout.delimiter)
            if len(fields) != layout.width:
                raise RowError(f"{layout.width} fields, not {len(fields)}")
            rows.add({role: fields[position] for role, position in layout.columns.items()})
        except RowError as error:
            bad.report(number, error, line.decode(errors="replace"))
    return rows.batch()


def _data_lines(block: LineBlock) -> Iterator[tuple[int, bytes]]:
    """The lines that are neither blank nor a comment, with their numbers."""
    for number, line in enumerate(block.data.split(b"\n"), block.first):
        if is_data_line(line):
            yield number, line.removesuffix(b"\r")


def is_data_line(line: bytes) -> bool:
    """Whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.startswith(COMMENTS)


def _fields(line: bytes, delimiter: str) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise RowError("UTF-8 text") from error
    if delimiter == " ":
        text = _BLANKS.sub(lambda run: run[1] or " ", text).strip(" ")
    reader = csv.reader([text, ""], delimiter=delimiter)
    try:
        fields = next(reader)
    except csv.Error as error:
        raise RowError(f"fields between {delimiter!r} ({error})") from error
    if reader.line_num > 1:
        raise RowError("a closing quote")
    return [field.strip(" \t") for field in fields]


def _delimiter(line: bytes) -> str:
    """What stands between the fields of a line: the first of tab, comma and semicolon that it has, else blanks."""
    bare = _QUOTED.sub(b"", line.strip())
    return next((sign for sign in "\t,;" if sign.encode() in bare), " ")
