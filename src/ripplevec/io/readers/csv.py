"""Separated text edge files: fields between commas, tabs, semicolons or blanks, with or without a header.

Two parsers read the same format. The exact parser works line by line, defines the format and names the bad lines. The
Arrow parser is far faster and handles blocks without unusual syntax; a block that it refuses goes to the exact one.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from ripplevec.batch import MAX_TIME, Batch, IdColumn
from ripplevec.edge_lists import COLUMN_NAMES, POSITIONAL_COLUMNS, match_column_names
from ripplevec.errors import FormatError, HeaderWarning, InvalidValueError, shorten
from ripplevec.io.readers.byte_stream import ByteStream, LineBlock
from ripplevec.io.readers.edge_rows import (
    BadRowHandler,
    BatchBuilder,
    FileColumns,
    ReadOptions,
    RowError,
    columns_hint,
    find_columns,
    missing_columns_error,
    parse_op_column,
    requested_columns,
)
from ripplevec.io.readers.header import SAMPLE_LINES, looks_like_header, may_be_header
from ripplevec.io.rebatch import concatenate

COMMENT_PREFIXES = (b"#", b"%")
MAX_RECORD_LINES = 1000  # lines of one record; an open quote is not searched further

CANONICAL_INTEGER = "^(0|-?[1-9][0-9]*)$"
"""Pattern of the ids detected as integers: only the canonical notation, so that "007" stays text."""

_COMMENT_LINES = re.compile(rb"(?m)^[#%].*\n?")
_QUOTED = re.compile(rb'"[^"]*"')
_BLANKS = re.compile(r'("(?:[^"]|"")*")|[ \t]+')


class _NeedsExactParserError(Exception):
    """A block has syntax that the Arrow parser would misread."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Delimiter, number of fields, and positions of the used columns; part of the position of a live source."""

    delimiter: str
    width: int
    columns: dict[str, int]
    header: str | None = None
    """The line that names the columns; where it occurs again, files were joined."""


def read_batches(
    stream: ByteStream, options: ReadOptions, bad_rows: BadRowHandler, columns: FileColumns | None = None
) -> Iterator[Batch]:
    """Yield the edges of a text file; with `ids="auto"` the first block decides whether ids are integers."""
    layout, ids, rest = None, options.ids, None
    for lines in stream.line_blocks():
        block = lines if rest is None else LineBlock(rest.first, rest.data + lines.data)
        if layout is None:
            detected = detect_layout(block, stream.name, options)
            if detected is None:
                continue
            layout, block = detected
            if columns is not None:
                columns.add(_column_names(layout), layout.columns)
        if ids == "auto":
            ids = detect_id_type(block, layout)
        batch, rest = _parse_complete_records(block, layout, ids, bad_rows)
        yield batch
    if layout is not None and rest is not None:
        yield parse_block(rest, layout, ids, bad_rows)


# Layout


def detect_layout(
    block: LineBlock, name: str, options: ReadOptions, available: LineBlock | None = None
) -> tuple[Layout, LineBlock] | None:
    """Return the layout seen in the first data lines, and the lines after the header; None if there is no data line.

    `available` may have more lines than the block. They decide nothing, so the layout does not depend on the time of
    reading, but they can spare a warning.
    """
    lines = _data_lines(block)
    first = next(lines, None)
    if first is None:
        return None
    number, line = first
    following = block.data.split(b"\n")[number - block.first :]
    delimiter = _detect_delimiter(following)
    count = _count_record_lines(following, 0, delimiter) or 1
    line = b"\n".join(following[:count]).removesuffix(b"\r")
    try:
        fields = _split_fields(line, delimiter)
    except RowError as error:
        raise FormatError(f"{name}, line {number:,}: expected {error}, got {shorten(line)}") from None
    where, rows = f"{name}, line {number:,}", _sample_rows(lines, delimiter)
    columns, has_header = _locate_columns(fields, rows, where, options)
    if not has_header:
        if options.header is None:
            more = rows if available is None else _sample_rows(islice(_data_lines(available), 1, None), delimiter)
            _warn_edge(fields, more, columns, where, options)
        return Layout(delimiter, len(fields), columns), block
    rest = block.data.split(b"\n", number - block.first + count)[-1]
    return Layout(delimiter, len(fields), columns, line.decode()), LineBlock(number + count, rest)


def _sample_rows(lines: Iterator[tuple[int, bytes]], delimiter: str) -> list[list[str]]:
    """Return the fields of the next lines, without malformed ones."""
    rows = []
    for _, line in islice(lines, SAMPLE_LINES):
        with suppress(RowError):
            rows.append(_split_fields(line, delimiter))
    return rows


def _locate_columns(
    fields: list[str], rows: list[list[str]], where: str, options: ReadOptions
) -> tuple[dict[str, int], bool]:
    """Return the positions of the used columns, and whether the first line is a header."""
    requested = {column: name for column, name in requested_columns(options).items() if name != "none"}
    if not all(name.isdecimal() for name in requested.values()):
        if options.header is False:
            error = InvalidValueError.of("columns without a header", "positions from 1", ", ".join(requested.values()))
            example = options.syntax(**{column: str(number) for number, column in enumerate(requested, 1)})
            raise InvalidValueError(
                f"{error}. Select fields by position, such as {example}, or leave out {options.syntax(header=False)}."
            )
        by_name = find_columns(fields, options)
        if by_name is None:
            raise missing_columns_error(where, fields, options)
        return by_name, True
    ignored_only = ReadOptions(weight=options.weight, time=options.time, op=options.op)
    by_default_name = find_columns(fields, ReadOptions() if requested else ignored_only)
    if by_default_name and options.header is not False and not requested:
        return by_default_name, True
    positions = _positions(fields, requested, where, options)
    if options.header is not None:
        has_header, is_guess = options.header, False
    else:
        is_guess = by_default_name is None
        has_header = not is_guess or looks_like_header(fields, rows, positions)
    if has_header and not requested:
        positions = _name_columns(fields, where, options)
    if has_header and is_guess:
        _warn_header(fields, positions, where, options)
    return positions, has_header


def _positions(fields: list[str], requested: dict[str, str], where: str, options: ReadOptions) -> dict[str, int]:
    """Return the positions of the used columns: those requested, or src, dst, weight, time in this order."""
    positions = {column: int(value) - 1 for column, value in requested.items()}
    positions = {"src": 0, "dst": 1} | (positions or _default_positions(len(fields), options))
    if not all(0 <= position < len(fields) for position in positions.values()):
        expected = ", ".join(f"{column} in field {position + 1}" for column, position in positions.items())
        between = " between tabs, commas, semicolons or blanks" if len(fields) == 1 else ""
        got = f"{len(fields)} field{'s' * (len(fields) != 1)} in {shorten(fields)}"
        raise FormatError(f"{where}: expected {expected}{between}, got {got}. {columns_hint(options)}.")
    return positions


def _default_positions(width: int, options: ReadOptions) -> dict[str, int]:
    """Return the positions in a file without a header: src, dst, weight, time, without the ignored ones."""
    positions = dict(zip(POSITIONAL_COLUMNS, range(width), strict=False))
    return {column: position for column, position in positions.items() if getattr(options, column) != "none"}


def _name_columns(fields: list[str], where: str, options: ReadOptions) -> dict[str, int]:
    """Return the positions of a header's columns; src and dst may have any name if all other columns are known."""
    known = match_column_names(fields, {})
    missing = [column for column in ("src", "dst") if column not in known]
    others = [position for position in range(len(fields)) if position not in known.values()]
    if len(missing) != len(others):
        error = missing_columns_error(where, fields, options)
        raise FormatError(f"{error} If this line is an edge: {options.syntax(header=False)}.")
    positions = {**known, **dict(zip(missing, others, strict=True))}
    return {column: position for column, position in positions.items() if getattr(options, column) != "none"}


def _column_names(layout: Layout) -> list[str]:
    """Return the names in the header, or `field 1` and so on in a file without one."""
    if layout.header is None:
        return [f"field {number}" for number in range(1, layout.width + 1)]
    return _split_fields(layout.header.encode(), layout.delimiter)


def _warn_header(fields: list[str], positions: dict[str, int], where: str, options: ReadOptions) -> None:
    """Say that the first line was taken for a header, and how its columns are used."""
    used = ", ".join(f"{column} is {fields[positions[column]]!r}" for column in COLUMN_NAMES if column in positions)
    edge, header = options.syntax(header=False), options.syntax(header=True)
    choice = f"If it is an edge: {edge}; if it is a header: {header}. {columns_hint(options)} if they are others."
    message = f"{where}: read as a header: {used}. {choice}"
    warnings.warn(HeaderWarning(message), stacklevel=2)


def _warn_edge(
    fields: list[str], rows: list[list[str]], positions: dict[str, int], where: str, options: ReadOptions
) -> None:
    """Say that the first line was taken for an edge, if it may be a header."""
    if may_be_header(fields, rows, positions):
        ends = " and ".join(repr(fields[positions[end]]) for end in ("src", "dst"))
        edge, header = options.syntax(header=False), options.syntax(header=True)
        columns = options.syntax(src="NAME", dst="NAME")
        choice = f"If it is a header: {header}, or name its columns: {columns}. If it is an edge: {edge}."
        message = f"{where}: read as an edge between {ends}, which do not occur again. {choice}"
        warnings.warn(HeaderWarning(message), stacklevel=2)


def detect_id_type(block: LineBlock, layout: Layout) -> str:
    """Return "int" if every id of a block is a canonical integer, "str" if one is not, "auto" if there is no id."""
    sample = parse_block(block, layout, "str", BadRowHandler("", on_error="skip"))
    if not len(sample):
        return "auto"
    return "int" if all(_all_match(column, CANONICAL_INTEGER) for column in (sample.src, sample.dst)) else "str"


def _all_match(column: IdColumn | pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def _detect_delimiter(lines: list[bytes]) -> str:
    """Return the first of tab, comma and semicolon that the first record has outside quotes, a blank if none."""
    for delimiter in "\t,;":
        count = _count_record_lines(lines, 0, delimiter) or 1
        if delimiter.encode() in _QUOTED.sub(b"", b"\n".join(lines[:count]).strip()):
            return delimiter
    return " "


def parse_block(block: LineBlock, layout: Layout, ids: str, bad_rows: BadRowHandler) -> Batch:
    """Return the edges of whole lines without a header; `ids` is "int" or "str"."""
    batch, rest = _parse_complete_records(block, layout, ids, bad_rows)
    if rest is None:
        return batch
    return concatenate([batch, _parse_exactly(rest, layout, ids, bad_rows, at_end=True)[0]])


def _parse_complete_records(
    block: LineBlock, layout: Layout, ids: str, bad_rows: BadRowHandler
) -> tuple[Batch, LineBlock | None]:
    """Return the edges of a block, and the lines of a last record whose quoted field may continue in the next block."""
    try:
        return _parse_with_arrow(block, layout, ids), None
    except (_NeedsExactParserError, RowError, pa.ArrowInvalid, InvalidValueError):
        return _parse_exactly(block, layout, ids, bad_rows, at_end=False)


# The Arrow parser


def _parse_with_arrow(block: LineBlock, layout: Layout, ids: str) -> Batch:
    """Parse a block with Arrow; raise an error if it has syntax or values that only the exact parser handles."""
    if layout.header is not None and _contains_line(block.data, layout.header.encode()):
        raise _NeedsExactParserError
    data = _normalize_for_arrow(block.data, layout.delimiter)
    data += layout.delimiter.join("1" * layout.width).encode() + b"\n"  # an open quote would swallow this line
    names = {column: str(position) for column, position in layout.columns.items()}
    types = {name: pa.float64() if column == "weight" else pa.large_string() for column, name in names.items()}
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        arrow_csv.ReadOptions(column_names=[*map(str, range(layout.width))], use_threads=False, block_size=len(data)),
        arrow_csv.ParseOptions(delimiter=layout.delimiter),
        arrow_csv.ConvertOptions(include_columns=list(types), column_types=types, null_values=[]),
    )
    if len(table) != data.count(b"\n"):
        raise _NeedsExactParserError
    columns = {column: table[name].combine_chunks()[:-1] for column, name in names.items()}
    time, op = columns.get("time"), columns.get("op")
    return Batch.of(
        _convert_ids(columns["src"], ids),
        _convert_ids(columns["dst"], ids),
        columns.get("weight"),
        None if op is None else parse_op_column(op),
        None if time is None else _convert_times(time),
    )


def _contains_line(data: bytes, line: bytes) -> bool:
    return data.startswith((line + b"\n", line + b"\r\n")) or any(
        b"\n" + line + end in data for end in (b"\n", b"\r\n")
    )


def _normalize_for_arrow(data: bytes, delimiter: str) -> bytes:
    """Return a block without comments, with Unix line ends and a single blank between fields."""
    data = data.replace(b"\r\n", b"\n")
    if b"\r" in data:
        raise _NeedsExactParserError
    if any(data.startswith(prefix) or b"\n" + prefix in data for prefix in COMMENT_PREFIXES):
        data = _COMMENT_LINES.sub(b"", data)
    if delimiter == " ":
        if b'"' in data:
            raise _NeedsExactParserError
        data = data.replace(b"\t", b" ")
        if b"  " in data:
            data = re.sub(rb" +", b" ", data)
        if data.startswith(b" ") or b"\n " in data or b" \n" in data:
            data = re.sub(rb"(?m)^ | $", b"", data)
    return data


def _convert_ids(column: pa.Array, ids: str) -> pa.Array:
    column = pc.utf8_trim(column, " \t")
    if ids == "str":
        if pc.any(pc.equal(pc.binary_length(column), 0)).as_py():
            raise _NeedsExactParserError
        return column
    if not pc.all(pc.ascii_is_decimal(column)).as_py() and not _all_match(column, "^-?[0-9]+$"):
        raise _NeedsExactParserError
    return column.cast(pa.int64())


def _convert_times(column: pa.Array) -> NDArray[np.float64]:
    for time_type in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            times = column.cast(time_type)
        except pa.ArrowInvalid:
            continue
        seconds = times.to_numpy() if time_type == pa.float64() else times.cast(pa.int64()).to_numpy() / 1e6
        if (np.abs(seconds) <= MAX_TIME).all():
            return np.asarray(seconds, np.float64)
    raise _NeedsExactParserError


# The exact parser


def _parse_exactly(
    block: LineBlock, layout: Layout, ids: str, bad_rows: BadRowHandler, *, at_end: bool
) -> tuple[Batch, LineBlock | None]:
    """Return the edges of a block and, unless it is the end of the file, the lines of a last record that is open."""
    builder = BatchBuilder(layout.columns, ids)
    lines = block.data.removesuffix(b"\n").split(b"\n")
    first = 0
    while first < len(lines):
        count = _count_record_lines(lines, first, layout.delimiter, layout.width) if is_data_line(lines[first]) else 1
        if count is None and not at_end:
            rest = b"\n".join(lines[first:]) + b"\n"
            return builder.build(), LineBlock(block.first + first, rest)
        last = first + (count or 1)
        record = b"\n".join(line.removesuffix(b"\r") for line in lines[first:last])
        if is_data_line(record):
            try:
                _add_record(builder, record, layout)
            except RowError as error:
                bad_rows.report(block.first + first, error, record.decode(errors="replace"))
        first = last
    return builder.build(), None


def _add_record(builder: BatchBuilder, record: bytes, layout: Layout) -> None:
    fields = _split_fields(record, layout.delimiter)
    if layout.header is not None and record == layout.header.encode():
        raise RowError("an edge, not the header again")
    if len(fields) != layout.width:
        raise RowError(f"{layout.width} fields, not {len(fields)}")
    builder.add({column: fields[position] for column, position in layout.columns.items()})


def _count_record_lines(lines: list[bytes], first: int, delimiter: str, width: int | None = None) -> int | None:
    """Return the number of lines of a record: more than one if a quoted field has line breaks; None if it stays open.

    A record with an open quote that does not become a valid one is a single bad line, so that one wrong quote does not
    swallow the lines after it.
    """
    if b'"' not in lines[first] or delimiter == " ":
        return 1
    available = lines[first : first + MAX_RECORD_LINES]
    reader = csv.reader((f"{line.decode('latin-1')}\n" for line in available), delimiter=delimiter, strict=True)
    try:
        fields = next(reader)
    except csv.Error as error:
        is_open = "end of data" in str(error) and len(available) < MAX_RECORD_LINES
        return None if is_open else 1
    return reader.line_num if width in (None, len(fields)) else 1


def _data_lines(block: LineBlock) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are neither blank nor a comment, with their numbers."""
    for number, line in enumerate(block.data.split(b"\n"), block.first):
        if is_data_line(line):
            yield number, line.removesuffix(b"\r")


def is_data_line(line: bytes) -> bool:
    """Return whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.startswith(COMMENT_PREFIXES)


def _split_fields(line: bytes, delimiter: str) -> list[str]:
    """Return the fields of a line, unquoted and without surrounding blanks; raise `RowError` if it is malformed."""
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
