"""Lines of a growing text decoded into events: a line buffer with positions, and the CSV and JSON line formats.

Shared by text files and standard input. A line counts only once its newline has arrived.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from ripplevec.errors import shorten
from ripplevec.io.messages import DecodedMessages, decode_messages, to_display_text
from ripplevec.io.protocols import BadMessage
from ripplevec.io.readers import csv
from ripplevec.io.readers.byte_stream import MAX_LINE_BYTES, LineBlock, line_too_long_error
from ripplevec.io.readers.edge_rows import BadRowHandler, ReadOptions, RowError
from ripplevec.io.readers.option_syntax import OptionSyntax


class LineBuffer:
    """Buffers a byte stream and hands out whole lines; knows the offset and number of the next line.

    `fill` returns the next bytes, empty if there are none at present. An incomplete line stays in the buffer unless
    the caller says that the stream has ended.
    """

    def __init__(self, name: str, fill: Callable[[], bytes], offset: int = 0, line: int = 1) -> None:
        self.name, self.offset, self.line = name, offset, line
        self._fill = fill
        self._data = b""
        self._start = 0

    def peek(self, count: int, is_data_line: Callable[[bytes], bool], final: bool) -> tuple[LineBlock, int]:
        """Return the lines up to the `count`-th data line, or as many as there are, and their number of data lines.

        With `final` the stream has ended, and a last line without a newline is complete.
        """
        end, data_lines = self._start, 0
        while data_lines < count:
            next_line = self._data.find(b"\n", end) + 1
            if next_line:
                data_lines += is_data_line(self._data[end:next_line])
                end = next_line
                continue
            scanned, rest = end - self._start, len(self._data) - end
            if rest > MAX_LINE_BYTES:
                raise line_too_long_error(self.name, self.line, MAX_LINE_BYTES)
            has_more = self._read_more()
            end = self._start + scanned
            if not has_more:
                if final and rest:
                    data_lines += is_data_line(self._data[end:])
                    end = len(self._data)
                break
        return LineBlock(self.line, self._data[self._start : end]), data_lines

    def advance(self, size: int) -> None:
        """Consume `size` bytes of the peeked lines; they must be whole lines."""
        data = self._data[self._start : self._start + size]
        self._start += size
        self.offset += size
        self.line += data.count(b"\n") + bool(data and not data.endswith(b"\n"))

    def buffered_lines(self) -> LineBlock:
        """Return the whole lines in the buffer without consuming them."""
        return LineBlock(self.line, self._data[self._start : self._data.rfind(b"\n") + 1])

    def end_offset(self) -> int:
        """Return the offset up to which the stream has been read, consumed or not."""
        return self.offset + len(self._data) - self._start

    def _read_more(self) -> bool:
        more = self._fill()
        if not self.end_offset() and more.startswith(codecs.BOM_UTF8):
            more, self.offset = more[len(codecs.BOM_UTF8) :], len(codecs.BOM_UTF8)
        self._data = self._data[self._start :] + more
        self._start = 0
        return bool(more)


class LineFormat(Protocol):
    """A format with events in lines of text."""

    def read_header(self, lines: LineBuffer, final: bool) -> bool:
        """Consume the lines before the first event; return False if they have not all arrived."""
        ...

    def is_data_line(self, line: bytes) -> bool:
        """Return whether a line contains an event."""
        ...

    def parse(self, block: LineBlock) -> DecodedMessages:
        """Return the events of some lines, and the lines that could not be parsed."""
        ...

    def saved_state(self) -> dict[str, Any]:
        """Return the properties detected in the first lines, as JSON; they become part of the position."""
        ...


class BadMessageCollector(BadRowHandler):
    """Collects the bad rows of a block as bad messages, each with its reason."""

    def __init__(self, name: str, syntax: OptionSyntax) -> None:
        super().__init__(name, "skip", syntax=syntax)
        self.bad_messages: list[BadMessage] = []

    def report(self, number: int, error: RowError, got: object) -> None:
        """Add a bad row."""
        message = got if isinstance(got, str) else repr(got)
        where = f"{self.name}, {self.unit} {number:,}"
        reason = f"expected {error.describe(self.syntax)}, got {shorten(got)}"
        self.bad_messages.append(BadMessage(to_display_text(message.encode()), where, reason))


class CsvLines:
    """Separated fields; the first lines determine the layout and the type of the ids."""

    def __init__(self, name: str, options: ReadOptions, saved_state: dict[str, Any]) -> None:
        self._name, self._options = name, options
        self._layout = csv.Layout(**saved_state["layout"]) if "layout" in saved_state else None
        self._ids = saved_state.get("ids", options.ids)

    def read_header(self, lines: LineBuffer, final: bool) -> bool:
        """Detect the layout from the first two data lines, and the type of the ids from all buffered lines."""
        if self._layout is not None:
            return True
        head, data_lines = lines.peek(2, csv.is_data_line, final)  # the second line tells whether the first is a header
        complete = data_lines and (data_lines == 2 or final)
        available = lines.buffered_lines()
        if len(available.data) < len(head.data):  # the last line of the text has no newline
            available = head
        detected = csv.detect_layout(head, self._name, self._options, available) if complete else None
        if detected is None:
            return False
        self._layout, rest = detected
        lines.advance(len(head.data) - len(rest.data))
        if self._ids == "auto":
            self._ids = csv.detect_id_type(lines.buffered_lines(), self._layout)
        return True

    is_data_line = staticmethod(csv.is_data_line)

    def parse(self, block: LineBlock) -> DecodedMessages:
        """Return the edges of some lines, and the bad lines."""
        assert self._layout is not None  # the header has been read
        collector = BadMessageCollector(self._name, self._options.syntax)
        if not block.data.endswith(b"\n"):
            block = LineBlock(block.first, block.data + b"\n")
        if self._ids == "auto":  # no edge has been seen so far
            self._ids = csv.detect_id_type(block, self._layout)
        batch = csv.parse_block(block, self._layout, self._ids, collector)
        return DecodedMessages(batch, collector.bad_messages)

    def saved_state(self) -> dict[str, Any]:
        """Return the layout and the type of the ids."""
        return {} if self._layout is None else {"layout": asdict(self._layout), "ids": self._ids}


class JsonLines:
    """One JSON value per line: an edge or any other event message."""

    def __init__(self, name: str, options: ReadOptions, saved_state: dict[str, Any]) -> None:
        self._name, self._options = name, options

    def read_header(self, lines: LineBuffer, final: bool) -> bool:
        """Return True: there is no header."""
        return True

    def is_data_line(self, line: bytes) -> bool:
        """Return whether a line is not blank."""
        return bool(line.strip())

    def parse(self, block: LineBlock) -> DecodedMessages:
        """Return the events of some lines, and the bad lines."""
        numbered = enumerate(block.data.split(b"\n"), block.first)
        items = [(f"{self._name}, line {number:,}", line) for number, line in numbered if line.strip()]
        return decode_messages(items, self._options)

    def saved_state(self) -> dict[str, Any]:
        """Return an empty state: every line is self-contained."""
        return {}


LINE_FORMATS: dict[str, Callable[[str, ReadOptions, dict[str, Any]], LineFormat]] = {
    "csv": CsvLines,
    "jsonl": JsonLines,
}


def read_events(
    lines: LineBuffer, format: LineFormat, batch_size: int, final: bool, fixed: bool
) -> DecodedMessages | None:
    """Consume and parse at most `batch_size` data lines; None if there are none, or with `fixed` not enough yet."""
    if not format.read_header(lines, final):
        return None
    block, data_lines = lines.peek(batch_size, format.is_data_line, final)
    if not data_lines or (fixed and not final and data_lines < batch_size):
        return None
    events = format.parse(block)
    lines.advance(len(block.data))
    return events
