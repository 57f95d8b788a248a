"""Files as a live source: one file, or a folder of them in the order of their names, perhaps followed as they grow."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Protocol

from ripplevec.errors import FormatError, InvalidValueError, one_of
from ripplevec.io.protocols import Position, Read
from ripplevec.io.readers.byte_stream import open_source
from ripplevec.io.readers.edge_columns import ReadOptions, checked_size
from ripplevec.io.readers.edge_files import FORMATS, format_of
from ripplevec.io.sources.parquet_file import ParquetFile
from ripplevec.io.sources.text_file import TextFile

BATCH_SIZE = 1000
"""Edges in a read, unless another number is asked for."""

PAUSE = 0.05
"""Seconds between two looks at a file that may grow."""


class OpenFile(Protocol):
    """One file that is being read."""

    def read(self, growing: bool) -> Read | None:
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
        batch_size: int = BATCH_SIZE,
        fixed: bool = False,
        format: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self.path = Path(path)
        self.name = name or f"file:{self.path.absolute()}"
        self._options = ReadOptions(**options)
        if format is not None:
            one_of("format", format, tuple(FORMATS))
        self._format, self._follow, self._fixed = format, follow, fixed
        self._batch_size = checked_size("batch_size", batch_size)
        self._file: OpenFile | None = None
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

    def read(self, timeout: float) -> Read | None:
        """The next edges of the current file, or of the one after it."""
        deadline = time.monotonic() + timeout
        while True:
            read = self._read()
            if read is not None:
                place = {"file": self._current, "before": len(self._earlier())}
                return Read(read.batch, {**place, **read.position}, read.poison)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(left, PAUSE))

    def acknowledge(self, position: Position) -> None:
        """Files keep what was read of them."""

    def close(self) -> None:
        """Let go of the current file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> Read | None:
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

    def _opened(self, name: str, place: dict[str, Any]) -> OpenFile | None:
        """The reader for a file; None as long as there is nothing in it."""
        path = self.path / name if self.path.is_dir() else self.path
        if not place and not (path.exists() and path.stat().st_size):
            return None
        with open_source(path) as source:
            format = self._format or format_of(source, path)
        if self._follow and not self.path.is_dir() and (format == "parquet" or source.compressed):
            raise InvalidValueError.of("follow", "plain text, which can grow, or a folder", str(path))
        kind = ParquetFile if format == "parquet" else TextFile
        return kind(path, format, self._options, self._batch_size, self._fixed, place)

    def _too_late(self) -> FormatError:
        return FormatError(
            f"{self.path}: expected new files behind {self._current} in the order of names, got one before it, "
            "which would never be read"
        )
