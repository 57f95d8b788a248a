"""Standard input as a source: lines of JSON or separated text, as they come."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Any

from ripplevec.errors import check_choice
from ripplevec.io.protocols import Position, ReadResult
from ripplevec.io.readers.byte_stream import READ_BYTES
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int
from ripplevec.io.sources.files import DEFAULT_BATCH_SIZE
from ripplevec.io.sources.text_lines import LINE_FORMATS, LineBuffer, LineFormat, read_events


class StdinSource:
    """The lines of standard input, at most `batch_size` of them at a time; the first character tells JSON from CSV.

    What was piped in is gone: after a restart, what comes is new. With `replayed`, the same text is piped in again
    from its beginning, and the lines that were read are passed over.
    """

    def __init__(
        self,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
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
        self._kind, self._replayed = format, replayed
        self._format: LineFormat | None = None
        self._ended = False

    def open(self, position: Position | None) -> None:
        """Begin with what comes, or behind the line of this position where the text is a replay."""
        self._input = sys.stdin.fileno()
        self._lines = LineBuffer(self.name, self._fill)
        self._known = dict(position or {}) if self._replayed else {}

    def read(self, timeout: float) -> ReadResult | None:
        """The next lines as events."""
        deadline = time.monotonic() + timeout
        while True:
            final = self._ended  # before looking: the end may come with the last bytes
            read = self._read(final)
            if read is not None:
                return read
            if final:
                raise EOFError("standard input has ended")
            left = deadline - time.monotonic()
            if not self._ended and not self._wait(max(left, 0)):
                return None

    def acknowledge(self, position: Position) -> None:
        """What was piped in is gone anyway."""

    def close(self) -> None:
        """Standard input belongs to the process."""

    def _read(self, final: bool) -> ReadResult | None:
        if self._format is None:
            head = self._lines.peek(1, lambda line: bool(line.strip()), final)[0].data.lstrip()
            if not head:
                return None
            kind = self._kind or ("jsonl" if head[:1] in (b"{", b"[") else "csv")
            self._format = LINE_FORMATS[kind](self.name, self._options, self._known)
        if not self._passed(final):
            return None
        events = read_events(self._lines, self._format, self._batch_size, final, self._fixed)
        return None if events is None else ReadResult(events[0], self._position(self._format), events[1])

    def _position(self, format: LineFormat) -> dict[str, Any]:
        return {"line": self._lines.line, **format.known()}

    def _passed(self, final: bool) -> bool:
        """Pass over the lines that were read before; False as long as some of them have not come."""
        while (missing := self._known.get("line", 1) - self._lines.line) > 0:
            block, found = self._lines.peek(missing, lambda line: True, final)
            if not found:
                return False
            self._lines.take(len(block.data))
        return True

    def _wait(self, seconds: float) -> bool:
        return bool(select.select([self._input], [], [], seconds)[0])

    def _fill(self) -> bytes:
        if self._ended or not self._wait(0):
            return b""
        data = os.read(self._input, READ_BYTES)
        self._ended = not data
        return data
