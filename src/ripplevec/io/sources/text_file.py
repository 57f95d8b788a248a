"""One file of text as a live source: read from a byte on, growing or at its end, and known again when it comes back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from ripplevec.errors import FormatError
from ripplevec.io.protocols import Read
from ripplevec.io.readers.byte_stream import BLOCK, open_source
from ripplevec.io.readers.edge_columns import ReadOptions
from ripplevec.io.sources.line_buffer import Lines
from ripplevec.io.sources.text_lines import TEXT_FORMATS, next_events

HEAD = 4096
"""How many of its first bytes a file is known by."""


class TextFile:
    """The lines of one file from a position on: a byte offset, the number of the line there, and what was known then.

    A position belongs to the file as it was: where its first bytes are others, or it has become shorter, going on
    would silently skip or repeat edges, and that is an error.
    """

    def __init__(
        self, path: Path, format: str, options: ReadOptions, batch_size: int, fixed: bool, position: dict[str, Any]
    ) -> None:
        self.path, self._batch_size, self._fixed = path, batch_size, fixed
        self._source = open_source(path)
        try:
            self._head_size, self._head = self._fingerprint(0)
            self._lines = Lines(str(path), self._fill, position.get("offset", 0), position.get("line", 1))
            self._format = TEXT_FORMATS[format](str(path), options, position)
            self._go_to(position)
        except BaseException:
            self._source.close()
            raise

    def read(self, growing: bool) -> Read | None:
        """The next lines as events; None where there are none, or not enough yet for a read of fixed size."""
        if growing := growing and not self._source.compressed:
            self._check_same_file()
        events = next_events(self._lines, self._format, self._batch_size, not growing, self._fixed)
        return None if events is None else Read(events[0], self._position(), events[1])

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def _fill(self) -> bytes:
        return self._source.read(BLOCK) or b""

    def _position(self) -> dict[str, Any]:
        if self._head_size < HEAD:  # more of it has been read since
            self._head_size, self._head = self._fingerprint(min(self._lines.offset, HEAD))
        place = {"offset": self._lines.offset, "line": self._lines.line, "head": self._head}
        return {**place, **self._format.known()}

    def _go_to(self, position: dict[str, Any]) -> None:
        offset = position.get("offset", 0)
        if not offset:
            return
        self._head_size, self._head = self._fingerprint(min(offset, HEAD))
        if self._source.skip(offset - 1) < offset - 1 or not (last := self._source.read(1)):
            raise self._another(f"it has become shorter than the {offset:,} bytes that were read")
        if self._head != position["head"]:
            raise self._another("it begins with other bytes than when it was read")
        if last != b"\n" and self._source.head(1):
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
            data = file.read(HEAD if self._source.compressed else size)
        return size, hashlib.sha256(data).hexdigest()[:16]

    def _another(self, what: str) -> FormatError:
        return FormatError(
            f"{self.path}: expected the file that was being read, but {what}; "
            "read what has replaced it as a source with another name"
        )
