"""Lines of text as events, a fixed number of lines at a time; what a later reader must know of them is kept."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from ripplevec.batch import Batch
from ripplevec.errors import FormatError, shorten
from ripplevec.io.messages import decode_messages, to_display_text
from ripplevec.io.protocols import BadMessage
from ripplevec.io.readers import csv
from ripplevec.io.readers.byte_stream import MAX_LINE_BYTES, LineBlock
from ripplevec.io.readers.edge_rows import BadRowHandler, ReadOptions


class LineFormat(Protocol):
    """A way to write events in lines."""

    def begin(self, lines: LineBuffer, final: bool) -> bool:
        """Take what stands before the first event; False where that is not all there yet."""
        ...

    def counts(self, line: bytes) -> bool:
        """Whether a line holds something to be read."""
        ...

    def parse(self, block: LineBlock) -> tuple[Batch, list[BadMessage]]:
        """The events of some lines, and the lines that hold none."""
        ...

    def known(self) -> dict[str, Any]:
        """What was found out at the beginning and holds for the rest, as JSON."""
        ...


class BadMessageCollector(BadRowHandler):
    """The lines of a block that could not be read, each with its reason."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "skip")
        self.bad_messages: list[BadMessage] = []

    def report(self, number: int, expected: object, got: object) -> None:
        """Keep one of them."""
        message = got if isinstance(got, str) else repr(got)
        reason = f"expected {expected}, got {shorten(got)}"
        self.bad_messages.append(
            BadMessage(to_display_text(message.encode()), f"{self.name}, {self.unit} {number:,}", reason)
        )


class CsvLines:
    """Separated fields; the first lines say how, and whether ids are integers."""

    def __init__(self, name: str, options: ReadOptions, known: dict[str, Any]) -> None:
        self._name, self._options = name, options
        self._layout = csv.Layout(**known["layout"]) if "layout" in known else None
        self._ids = known.get("ids", options.ids)

    def begin(self, lines: LineBuffer, final: bool) -> bool:
        """Find the layout from the first line, and the kind of ids from all lines that are here."""
        if self._layout is not None:
            return True
        head, found = lines.peek(2, csv.is_data_line, final)  # a header is known by the line below it
        begun = csv.start(head, self._name, self._options) if found and (found == 2 or final) else None
        if begun is None:
            return False
        self._layout, rest = begun
        lines.take(len(head.data) - len(rest.data))
        if self._ids == "auto":
            self._ids = csv.detect_id_type(lines.waiting(), self._layout)
        return True

    counts = staticmethod(csv.is_data_line)

    def parse(self, block: LineBlock) -> tuple[Batch, list[BadMessage]]:
        """The edges of some lines."""
        assert self._layout is not None  # it has begun
        bad = BadMessageCollector(self._name)
        if not block.data.endswith(b"\n"):
            block = LineBlock(block.first, block.data + b"\n")
        if self._ids == "auto":  # there was no edge to tell by
            self._ids = csv.detect_id_type(block, self._layout)
        return csv.parse(block, self._layout, self._ids, bad), bad.bad_messages

    def known(self) -> dict[str, Any]:
        """The layout and the kind of ids."""
        return {} if self._layout is None else {"layout": asdict(self._layout), "ids": self._ids}


class JsonLines:
    """A JSON value per line: an edge, or any other message."""

    def __init__(self, name: str, options: ReadOptions, known: dict[str, Any]) -> None:
        self._name, self._options = name, options

    def begin(self, lines: LineBuffer, final: bool) -> bool:
        """There is nothing before the first line."""
        return True

    def counts(self, line: bytes) -> bool:
        """Blank lines do not count."""
        return bool(line.strip())

    def parse(self, block: LineBlock) -> tuple[Batch, list[BadMessage]]:
        """The events of some lines."""
        numbered = enumerate(block.data.split(b"\n"), block.first)
        items = [(f"{self._name}, line {number:,}", line) for number, line in numbered if line.strip()]
        return decode_messages(items, self._options)

    def known(self) -> dict[str, Any]:
        """Nothing: every line speaks for itself."""
        return {}


LINE_FORMATS: dict[str, Callable[[str, ReadOptions, dict[str, Any]], LineFormat]] = {
    "csv": CsvLines,
    "jsonl": JsonLines,
}


def read_events(
    lines: LineBuffer, format: LineFormat, batch_size: int, final: bool, fixed: bool
) -> tuple[Batch, list[BadMessage]] | None:
    """The events of the next lines, at most `batch_size` that count; None where there are none, or too few yet."""
    if not format.begin(lines, final):
        return None
    block, found = lines.peek(batch_size, format.counts, final)
    if not found or (fixed and not final and found < batch_size):
        return None
    events = format.parse(block)
    lines.take(len(block.data))
    return events


class LineBuffer:
    """Whole lines from a stream of bytes, with the byte and the line where the next ones begin.

    `fill` gives the next bytes, none where there are none now. A line that has no newline yet stays where it is,
    unless it is said that the stream is at its end.
    """

    def __init__(self, name: str, fill: Callable[[], bytes], offset: int = 0, line: int = 1) -> None:
        self.name, self.offset, self.line = name, offset, line
        self._fill = fill
        self._data = b""
        self._start = 0

    def peek(self, count: int, counts: Callable[[bytes], bool], final: bool) -> tuple[LineBlock, int]:
        """As many whole lines as hold `count` that count, or what there is; and how many that count are in it."""
        end, found = self._start, 0
        while found < count:
            cut = self._data.find(b"\n", end) + 1
            if cut:
                found += counts(self._data[end:cut])
                end = cut
                continue
            taken, rest = end - self._start, len(self._data) - end
            if rest > MAX_LINE_BYTES:
                limit = f"{MAX_LINE_BYTES:,} bytes"
                raise FormatError(f"{self.name}, line {self.line:,}: expected lines of text, got one beyond {limit}")
            more = self._more()
            end = self._start + taken
            if not more:
                if final and rest:
                    found += counts(self._data[end:])
                    end = len(self._data)
                break
        return LineBlock(self.line, self._data[self._start : end]), found

    def take(self, size: int) -> None:
        """Go on behind so many bytes of what was last looked at: whole lines."""
        data = self._data[self._start : self._start + size]
        self._start += size
        self.offset += size
        self.line += data.count(b"\n") + bool(data and not data.endswith(b"\n"))

    def waiting(self) -> LineBlock:
        """The whole lines that are here already."""
        return LineBlock(self.line, self._data[self._start : self._data.rfind(b"\n") + 1])

    def held(self) -> int:
        """The byte up to which the stream has been read, given out or not."""
        return self.offset + len(self._data) - self._start

    def _more(self) -> bool:
        more = self._fill()
        if not self.held() and more.startswith(codecs.BOM_UTF8):
            more, self.offset = more[len(codecs.BOM_UTF8) :], len(codecs.BOM_UTF8)
        self._data = self._data[self._start :] + more
        self._start = 0
        return bool(more)
