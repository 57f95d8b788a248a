"""Files as a live source: one file, or a folder of them in the order of their names, perhaps followed as they grow."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ripplevec.errors import FormatError, InvalidValueError, check_choice
from ripplevec.io.protocols import Position, ReadResult
from ripplevec.io.readers import parquet
from ripplevec.io.readers.byte_stream import READ_BYTES, open_byte_stream
from ripplevec.io.readers.edge_files import FORMATS, detect_format
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int
from ripplevec.io.sources.text_lines import LINE_FORMATS, BadMessageCollector, LineBuffer, read_events

DEFAULT_BATCH_SIZE = 1000
"""Edges in a read, unless another number is asked for."""

POLL_INTERVAL = 0.05
"""Seconds between two looks at a file that may grow."""


class FileReader(Protocol):
    """One file that is being read."""

    def read(self, growing: bool) -> ReadResult | None:
        """The next events; None where there are none, or, of one that is still growing, none yet."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class FileSource:
    """The edges of a file, or of the files of a folder in the order of their names, `batch_size` at a time.

    With `follow`, the file is waited for to grow, or the folder to get more files: the last of them may grow, and is
    finished once there is a later one. A read ends with its file. With `fixed`, a growing file is read only in full
    batches, so that where they begin does not depend on when it was looked at. Names that begin with "." or "_" do not
    count.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        follow: bool = False,
        batch_size: int = DEFAULT_BATCH_SIZE,
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
        self._file: FileReader | None = None
        self._current: str | None = None
        self._names: list[str] = []

    def open(self, position: Position | None) -> None:
        """Begin after this position, in the file that it names."""
        self.close()
        place = dict(position or {})
        self._current = place.pop("file", None)
        self._names = self._listed()
        if self._current is None:
            return
        if self._current not in self._names:
            raise FormatError(f"{self.path}: expected the file {self._current}, which was being read, but it is gone")
        if len(self._earlier()) > place.pop("before"):
            raise self._too_late()
        self._file = self._opened(self._current, place)

    def read(self, timeout: float) -> ReadResult | None:
        """The next edges of the current file, or of the one after it."""
        deadline = time.monotonic() + timeout
        while True:
            read = self._read()
            if read is not None:
                place = {"file": self._current, "before": len(self._earlier())}
                return ReadResult(read.batch, {**place, **read.position}, read.bad_messages)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(left, POLL_INTERVAL))

    def acknowledge(self, position: Position) -> None:
        """Files keep what was read of them."""

    def close(self) -> None:
        """Let go of the current file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> ReadResult | None:
        """What there is now: of the current file, or of the next one that has something."""
        while True:
            if self._file is None and self._current is not None:
                self._file = self._opened(self._current, {})
            read = self._file.read(self._follow) if self._file else None
            if read is None and self._follow:
                self._look_again()  # first: a file is finished only if a later one was there before its end was seen
            following = self._following()
            if read is None and following and self._file:
                read = self._file.read(False)
            if read is not None:
                return read
            if not following:
                if self._follow:
                    return None
                raise EOFError(f"{self.path} has been read to its end")
            self.close()
            self._current = following

    def _earlier(self) -> set[str]:
        """The files before the current one."""
        return {name for name in self._names if self._current is not None and name < self._current}

    def _following(self) -> str | None:
        """The file after the current one."""
        return next((name for name in self._names if self._current is None or name > self._current), None)

    def _look_again(self) -> None:
        before = self._names
        self._names = self._listed()
        if not self._earlier() <= set(before):
            raise self._too_late()

    def _listed(self) -> list[str]:
        if not self.path.is_dir():
            self.path.stat()  # the error of the system, where there is none
            return [self.path.name]
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_file() and entry.name[0] not in "._")

    def _opened(self, name: str, place: dict[str, Any]) -> FileReader | None:
        """The reader for a file; None as long as there is nothing in it."""
        path = self.path / name if self.path.is_dir() else self.path
        if not place and not (path.exists() and path.stat().st_size):
            return None
        with open_byte_stream(path) as source:
            format = self._format or detect_format(source, path)
        if self._follow and not self.path.is_dir() and (format == "parquet" or source.compressed):
            raise InvalidValueError.of("follow", "plain text, which can grow, or a folder", str(path))
        kind = ParquetFileReader if format == "parquet" else TextFileReader
        return kind(path, format, self._options, self._batch_size, self._fixed, place)

    def _too_late(self) -> FormatError:
        return FormatError(
            f"{self.path}: expected new files behind {self._current} in the order of names, got one before it, "
            "which would never be read"
        )


FINGERPRINT_BYTES = 4096
"""How many of its first bytes a file is known by."""


class TextFileReader:
    """The lines of one file from a position on: a byte offset, the number of the line there, and what was known then.

    A position belongs to the file as it was: where its first bytes are others, or it has become shorter, going on
    would silently skip or repeat edges, and that is an error.
    """

    def __init__(
        self, path: Path, format: str, options: ReadOptions, batch_size: int, fixed: bool, position: dict[str, Any]
    ) -> None:
        self.path, self._batch_size, self._fixed = path, batch_size, fixed
        self._source = open_byte_stream(path)
        try:
            self._head_size, self._head = self._fingerprint(0)
            self._lines = LineBuffer(str(path), self._fill, position.get("offset", 0), position.get("line", 1))
            self._format = LINE_FORMATS[format](str(path), options, position)
            self._go_to(position)
        except BaseException:
            self._source.close()
            raise

    def read(self, growing: bool) -> ReadResult | None:
        """The next lines as events; None where there are none, or not enough yet for a read of fixed size."""
        if growing := growing and not self._source.compressed:
            self._check_same_file()
        events = read_events(self._lines, self._format, self._batch_size, not growing, self._fixed)
        return None if events is None else ReadResult(events[0], self._position(), events[1])

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def _fill(self) -> bytes:
        return self._source.read(READ_BYTES) or b""

    def _position(self) -> dict[str, Any]:
        if self._head_size < FINGERPRINT_BYTES:  # more of it has been read since
            self._head_size, self._head = self._fingerprint(min(self._lines.offset, FINGERPRINT_BYTES))
        place = {"offset": self._lines.offset, "line": self._lines.line, "head": self._head}
        return {**place, **self._format.known()}

    def _go_to(self, position: dict[str, Any]) -> None:
        offset = position.get("offset", 0)
        if not offset:
            return
        self._head_size, self._head = self._fingerprint(min(offset, FINGERPRINT_BYTES))
        if self._source.skip(offset - 1) < offset - 1 or not (last := self._source.read(1)):
            raise self._another(f"it has become shorter than the {offset:,} bytes that were read")
        if self._head != position["head"]:
            raise self._another("it begins with other bytes than when it was read")
        if last != b"\n" and self._source.peek(1):
            raise self._another(f"line {position['line'] - 1:,} has become longer after it was read; follow it instead")

    def _check_same_file(self) -> None:
        try:
            there, opened = self.path.stat(), os.fstat(self._source.fileno())
        except FileNotFoundError:
            raise self._another("it is gone") from None
        if not os.path.samestat(there, opened):
            raise self._another("another file has taken its place")
        if there.st_size < self._lines.held():
            raise self._another(f"it has become shorter than the {self._lines.held():,} bytes that were read")
        if self._fingerprint(self._head_size)[1] != self._head:
            raise self._another("it begins with other bytes than when it was read")

    def _fingerprint(self, size: int) -> tuple[int, str]:
        """What the beginning of the file is known by; of one that may grow, only what has been read already."""
        with self.path.open("rb") as file:
            data = file.read(FINGERPRINT_BYTES if self._source.compressed else size)
        return size, hashlib.sha256(data).hexdigest()[:16]

    def _another(self, what: str) -> FormatError:
        return FormatError(
            f"{self.path}: expected the file that was being read, but {what}; "
            "read what has replaced it as a source with another name"
        )


class ParquetFileReader:
    """The rows of one file from a position on: a row, and the size of the file that it is a row of."""

    def __init__(
        self, path: Path, format: str, options: ReadOptions, batch_size: int, fixed: bool, position: dict[str, Any]
    ) -> None:
        self.path, self._options, self._batch_size = path, options, batch_size
        self._size, self._row = path.stat().st_size, position.get("row", 0)
        if position.get("size", self._size) != self._size:
            size = f"{position['size']:,} bytes"
            raise FormatError(f"{path}: expected the file that was being read, of {size}, got one of {self._size:,}")
        with open_byte_stream(path) as source:
            self._file = parquet.open_file(source)
            self._roles = parquet.find_parquet_columns(self._file, source.name, options)
        self._tables = self._from_row(self._row)
        self._waiting = pa.table({name: pa.array([], kind) for name, kind in self._kinds()})

    def read(self, growing: bool) -> ReadResult | None:
        """The next rows as events; None at the end. Such a file does not grow."""
        with parquet.reading(str(self.path)):
            while len(self._waiting) < self._batch_size and (more := next(self._tables, None)) is not None:
                more.validate(full=True)  # text that is not UTF-8 would be found out much later
                self._waiting = pa.concat_tables([self._waiting, more])
        if not len(self._waiting):
            return None
        rows, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
        columns = {role: rows[name].combine_chunks() for role, name in self._roles.items()}
        bad = BadMessageCollector(str(self.path))
        bad.unit = "row"
        batch = parquet.parse(columns, self._row + 1, self._options.ids, bad)
        self._row += len(rows)
        return ReadResult(batch, {"row": self._row, "size": self._size}, bad.bad_messages)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close(force=True)

    def _kinds(self) -> list[tuple[str, pa.DataType]]:
        schema = self._file.schema_arrow
        return [(name, schema.field(name).type) for name in dict.fromkeys(self._roles.values())]

    def _from_row(self, row: int) -> Iterator[pa.Table]:
        """The rest of the file, row group by row group; those before the row are not looked at."""
        for group in range(self._file.num_row_groups):
            length = self._file.metadata.row_group(group).num_rows
            if row < length:
                yield self._file.read_row_group(group, columns=[name for name, _ in self._kinds()])[row:]
            row = max(row - length, 0)
