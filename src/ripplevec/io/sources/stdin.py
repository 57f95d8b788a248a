"""Standard input as a live source: lines of JSON or separated text."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Any

from ripplevec.errors import check_choice
from ripplevec.io.protocols import DEFAULT_READ_SIZE, Position, ReadResult
from ripplevec.io.readers.byte_stream import READ_BYTES
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int
from ripplevec.io.sources.text_lines import LINE_FORMATS, LineBuffer, LineFormat, read_events


class StdinSource:
    """The lines of standard input, at most `batch_size` per read; the first character tells JSON from CSV.

    Piped text cannot be read again: by default, all text after a restart is new. With `replayed`, the same text is
    piped in from its beginning after a restart, and the lines that were read before are skipped.
    """

    def __init__(
        self,
        *,
        batch_size: int = DEFAULT_READ_SIZE,
        fixed: bool = False,
        format: str | None = None,
        replayed: bool = False,
        name: str = "stdin",
        **options: Any,
    ) -> None:
        self.name = name
        self._options = ReadOptions(**options)
        if format is not None:
            check_choice("format", format, tuple(LINE_FORMATS))
        self._batch_size, self._fixed = check_positive_int("batch_size", batch_size), fixed
        self._format_name, self._replayed = format, replayed

    def open(self, position: Position | None) -> None:
        """Start with the next bytes; with `replayed`, skip the lines up to this position."""
        self._input = sys.stdin.fileno()
        self._lines = LineBuffer(self.name, self._fill)
        self._format: LineFormat | None = None
        self._ended = False
        self._resume_at = dict(position or {}) if self._replayed else {}

    def read(self, timeout: float) -> ReadResult | None:
        """Return the events of the next lines."""
        deadline = time.monotonic() + timeout
        while True:
            final = self._ended  # evaluated before reading, because the end may come with the last bytes
            result = self._read_buffered(final)
            if result is not None:
                return result
            if final:
                raise EOFError("standard input has ended")
            left = deadline - time.monotonic()
            if not self._ended and not self._wait(max(left, 0)):
                return None

    def acknowledge(self, position: Position) -> None:
        """Do nothing: a pipe keeps no data."""

    def close(self) -> None:
        """Do nothing: standard input belongs to the process."""

    def _read_buffered(self, final: bool) -> ReadResult | None:
        if self._format is None:
            head = self._lines.peek(1, lambda line: bool(line.strip()), final)[0].data.lstrip()
            if not head:
                return None
            name = self._format_name or ("jsonl" if head[:1] in (b"{", b"[") else "csv")
            self._format = LINE_FORMATS[name](self.name, self._options, self._resume_at)
        if not self._skip_replayed_lines(final):
            return None
        events = read_events(self._lines, self._format, self._batch_size, final, self._fixed)
        if events is None:
            return None
        return ReadResult(events.batch, self._position(self._format), events.bad_messages, events.attributes)

    def _position(self, format: LineFormat) -> dict[str, Any]:
        return {"line": self._lines.line, **format.saved_state()}

    def _skip_replayed_lines(self, final: bool) -> bool:
        """Skip the lines that were read before; return False while some of them have not arrived."""
        while (missing := self._resume_at.get("line", 1) - self._lines.line) > 0:
            block, count = self._lines.peek(missing, lambda line: True, final)
            if not count:
                return False
            self._lines.advance(len(block.data))
        return True

    def _wait(self, seconds: float) -> bool:
        return bool(select.select([self._input], [], [], seconds)[0])

    def _fill(self) -> bytes:
        if self._ended or not self._wait(0):
            return b""
        data = os.read(self._input, READ_BYTES)
        self._ended = not data
        return data
