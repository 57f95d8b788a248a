"""Files and folders as a live source, optionally followed as they grow.

`FileSource` selects the file to read; `TextFileReader` and `ParquetFileReader` read a single file from a position on.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ripplevec.errors import FormatError, InvalidValueError, check_choice
from ripplevec.io.protocols import DEFAULT_READ_SIZE, Position, ReadResult
from ripplevec.io.readers import parquet
from ripplevec.io.readers.byte_stream import READ_BYTES, open_byte_stream
from ripplevec.io.readers.edge_files import FORMATS, detect_format
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int
from ripplevec.io.sources.text_lines import LINE_FORMATS, BadMessageCollector, LineBuffer, read_events

POLL_INTERVAL = 0.05
"""Seconds between two checks of a file that may grow."""

FINGERPRINT_BYTES = 4096
"""Leading bytes of a file whose hash identifies it."""


class FileReader(Protocol):
    """Reads a single file."""

    def read(self, growing: bool) -> ReadResult | None:
        """Return the next events; None at the end, or if a growing file has no complete event at present."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class FileSource:
    """The edges of a file, or of the files of a folder in the order of their names, `batch_size` per read.

    With `follow`, the source waits for the file to grow, or for more files in the folder. Only the last file of a
    folder may grow; it is complete once a later one exists. A read never spans two files. With `fixed`, a growing file
    is read in full batches only, so that the batches do not depend on the time of reading. Files whose names start
    with "." or "_" are ignored.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        follow: bool = False,
        batch_size: int = DEFAULT_READ_SIZE,
        fixed: bool = False,
        format: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self.path = Path(path)
        self.name = name or f"file:{self.path.absolute()}"
        self._options = ReadOptions(**options)
        if format is not None:
            check_choice("format", format, tuple(FORMATS))
        self._format, self._follow, self._fixed = format, follow, fixed
        self._batch_size = check_positive_int("batch_size", batch_size)
        self._reader: FileReader | None = None
        self._current: str | None = None  # name of the current file
        self._names: list[str] = []

    def open(self, position: Position | None) -> None:
        """Start after this position, in the file that it names."""
        self.close()
        file_position = dict(position or {})
        self._current = file_position.pop("file", None)
        self._names = self._list_files()
        if self._current is None:
            return
        if self._current not in self._names:
            raise FormatError(
                f"{self.path}: the file {self._current}, which was being read, is missing. "
                "Restore it, or read the folder as a source with another name."
            )
        if len(self._earlier_files()) > file_position.pop("before"):
            raise self._new_earlier_file_error()
        self._reader = self._open_reader(self._current, file_position)

    def read(self, timeout: float) -> ReadResult | None:
        """Return the next events of the current file or of a later one."""
        deadline = time.monotonic() + timeout
        while True:
            result = self._read_available()
            if result is not None:
                folder_position = {"file": self._current, "before": len(self._earlier_files())}
                return replace(result, position={**folder_position, **result.position})
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(left, POLL_INTERVAL))

    def acknowledge(self, position: Position) -> None:
        """Do nothing: files keep their content."""

    def close(self) -> None:
        """Close the current file."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read_available(self) -> ReadResult | None:
        """Return the events available now in the current file or in the next file that has some."""
        while True:
            if self._reader is None and self._current is not None:
                self._reader = self._open_reader(self._current, {})
            result = self._reader.read(self._follow) if self._reader else None
            if result is None and self._follow:
                # List before the final read: a file is complete only if a later one existed before its end was seen.
                self._list_new_files()
            next_file = self._next_file()
            if result is None and next_file and self._reader:
                result = self._reader.read(False)
            if result is not None:
                return result
            if not next_file:
                if self._follow:
                    return None
                raise EOFError(f"{self.path} has been read to its end")
            self.close()
            self._current = next_file

    def _earlier_files(self) -> set[str]:
        """Return the names of the files before the current one."""
        return {name for name in self._names if self._current is not None and name < self._current}

    def _next_file(self) -> str | None:
        """Return the name of the file after the current one."""
        return next((name for name in self._names if self._current is None or name > self._current), None)

    def _list_new_files(self) -> None:
        previous = self._names
        self._names = self._list_files()
        if not self._earlier_files() <= set(previous):
            raise self._new_earlier_file_error()

    def _list_files(self) -> list[str]:
        if not self.path.is_dir():
            self.path.stat()  # raises the system's error if the path does not exist
            return [self.path.name]
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_file() and entry.name[0] not in "._")

    def _open_reader(self, name: str, position: dict[str, Any]) -> FileReader | None:
        """Return a reader for a file; None while the file is empty."""
        path = self.path / name if self.path.is_dir() else self.path
        if not position and not (path.exists() and path.stat().st_size):
            return None
        with open_byte_stream(path) as stream:
            format = self._format or detect_format(stream, path)
        if self._follow and not self.path.is_dir() and (format == "parquet" or stream.compressed):
            raise InvalidValueError.of("follow", "plain text, which can grow, or a folder", str(path))
        reader = ParquetFileReader if format == "parquet" else TextFileReader
        return reader(path, format, self._options, self._batch_size, self._fixed, position)

    def _new_earlier_file_error(self) -> FormatError:
        return FormatError(
            f"{self.path}: expected new files after {self._current} in name order, got an earlier one, which would "
            "never be read. Rename it so that it sorts after the files already read."
        )


class TextFileReader:
    """The lines of one file from a position on: byte offset, line number, fingerprint, and state of the line format.

    A position is valid only for the same file. If the first bytes differ or the file has become shorter, continuing
    would silently skip or repeat edges, so it is an error.
    """

    def __init__(
        self, path: Path, format: str, options: ReadOptions, batch_size: int, fixed: bool, position: dict[str, Any]
    ) -> None:
        self.path, self._batch_size, self._fixed = path, batch_size, fixed
        self._stream = open_byte_stream(path)
        try:
            self._fingerprint_size, self._fingerprint = self._compute_fingerprint(0)
            self._lines = LineBuffer(str(path), self._fill, position.get("offset", 0), position.get("line", 1))
            self._format = LINE_FORMATS[format](str(path), options, position)
            self._seek(position)
        except BaseException:
            self._stream.close()
            raise

    def read(self, growing: bool) -> ReadResult | None:
        """Return the events of the next lines; None if there are none, or not enough for a read of fixed size."""
        if growing := growing and not self._stream.compressed:
            self._check_same_file()
        events = read_events(self._lines, self._format, self._batch_size, not growing, self._fixed)
        if events is None:
            return None
        return ReadResult(events.batch, self._position(), events.bad_messages, events.attributes)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _fill(self) -> bytes:
        return self._stream.read(READ_BYTES) or b""

    def _position(self) -> dict[str, Any]:
        if self._fingerprint_size < FINGERPRINT_BYTES:  # more bytes have been read since
            size = min(self._lines.offset, FINGERPRINT_BYTES)
            self._fingerprint_size, self._fingerprint = self._compute_fingerprint(size)
        position = {"offset": self._lines.offset, "line": self._lines.line, "head": self._fingerprint}
        return {**position, **self._format.saved_state()}

    def _seek(self, position: dict[str, Any]) -> None:
        offset = position.get("offset", 0)
        if not offset:
            return
        self._fingerprint_size, self._fingerprint = self._compute_fingerprint(min(offset, FINGERPRINT_BYTES))
        if self._stream.skip(offset - 1) < offset - 1 or not (last := self._stream.read(1)):
            raise self._file_changed_error(f"it has become shorter than the {offset:,} bytes already read")
        if self._fingerprint != position["head"]:
            raise self._file_changed_error("its first bytes have changed")
        if last != b"\n" and self._stream.peek(1):
            raise self._file_changed_error(f"line {position['line'] - 1:,} has become longer (use follow)")

    def _check_same_file(self) -> None:
        try:
            current, opened = self.path.stat(), os.fstat(self._stream.fileno())
        except FileNotFoundError:
            raise self._file_changed_error("it has been removed") from None
        if not os.path.samestat(current, opened):
            raise self._file_changed_error("another file has replaced it")
        if current.st_size < self._lines.end_offset():
            size = self._lines.end_offset()
            raise self._file_changed_error(f"it has become shorter than the {size:,} bytes already read")
        if self._compute_fingerprint(self._fingerprint_size)[1] != self._fingerprint:
            raise self._file_changed_error("its first bytes have changed")

    def _compute_fingerprint(self, size: int) -> tuple[int, str]:
        """Return the size and hash of the leading bytes; for a file that may grow, of those already read only."""
        with self.path.open("rb") as file:
            data = file.read(FINGERPRINT_BYTES if self._stream.compressed else size)
        return size, hashlib.sha256(data).hexdigest()[:16]

    def _file_changed_error(self, reason: str) -> FormatError:
        return FormatError(
            f"{self.path}: expected the file that was being read, but {reason}. "
            "Read the new content as a source with another name."
        )


class ParquetFileReader:
    """The rows of one Parquet file from a position on: row number, and file size to recognize the file."""

    def __init__(
        self, path: Path, format: str, options: ReadOptions, batch_size: int, fixed: bool, position: dict[str, Any]
    ) -> None:
        self.path, self._options, self._batch_size = path, options, batch_size
        self._size, self._row = path.stat().st_size, position.get("row", 0)
        if position.get("size", self._size) != self._size:
            raise FormatError(
                f"{path}: expected the file that was being read, of {position['size']:,} bytes, got one of "
                f"{self._size:,} bytes. Read the new file as a source with another name."
            )
        with open_byte_stream(path) as stream:
            self._file = parquet.open_parquet(stream)
            self._column_names = parquet.find_parquet_columns(self._file, stream.name, options)
        self._tables = self._read_row_groups(self._row)
        self._pending = pa.table({name: pa.array([], column_type) for name, column_type in self._column_types()})

    def read(self, growing: bool) -> ReadResult | None:
        """Return the events of the next rows; None at the end. A Parquet file does not grow."""
        with parquet.damage_as_format_error(str(self.path)):
            while len(self._pending) < self._batch_size and (table := next(self._tables, None)) is not None:
                table.validate(full=True)  # finds invalid UTF-8 here rather than much later
                self._pending = pa.concat_tables([self._pending, table])
        if not len(self._pending):
            return None
        rows, self._pending = self._pending[: self._batch_size], self._pending[self._batch_size :]
        columns = {column: rows[name].combine_chunks() for column, name in self._column_names.items()}
        collector = BadMessageCollector(str(self.path), self._options.syntax)
        collector.unit = "row"
        batch = parquet.parse_columns(columns, self._row + 1, self._options.ids, collector)
        self._row += len(rows)
        return ReadResult(batch, {"row": self._row, "size": self._size}, collector.bad_messages)

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)

    def _column_types(self) -> list[tuple[str, pa.DataType]]:
        schema = self._file.schema_arrow
        return [(name, schema.field(name).type) for name in dict.fromkeys(self._column_names.values())]

    def _read_row_groups(self, first_row: int) -> Iterator[pa.Table]:
        """Yield the rows from `first_row` on, by row group; earlier row groups are not read."""
        for group in range(self._file.num_row_groups):
            length = self._file.metadata.row_group(group).num_rows
            if first_row < length:
                yield self._file.read_row_group(group, columns=[name for name, _ in self._column_types()])[first_row:]
            first_row = max(first_row - length, 0)
