"""Bytes that come as they come, given out as whole lines: so many lines of data at a time, and where they end."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from ripplevec.errors import FormatError
from ripplevec.io.readers.byte_stream import LONGEST_LINE, Block


class Lines:
    """Whole lines from a stream of bytes, with the byte and the line where the next ones begin.

    `fill` gives the next bytes, none where there are none now. A line that has no newline yet stays where it is,
    unless it is said that the stream is at its end.
    """

    def __init__(self, name: str, fill: Callable[[], bytes], offset: int = 0, line: int = 1) -> None:
        self.name, self.offset, self.line = name, offset, line
        self._fill = fill
        self._data = b""
        self._start = 0

    def peek(self, count: int, counts: Callable[[bytes], bool], final: bool) -> tuple[Block, int]:
        """As many whole lines as hold `count` that count, or what there is; and how many that count are in it."""
        end, found = self._start, 0
        while found < count:
            cut = self._data.find(b"\n", end) + 1
            if cut:
                found += counts(self._data[end:cut])
                end = cut
                continue
            taken, rest = end - self._start, len(self._data) - end
            if rest > LONGEST_LINE:
                limit = f"{LONGEST_LINE:,} bytes"
                raise FormatError(f"{self.name}, line {self.line:,}: expected lines of text, got one beyond {limit}")
            more = self._more()
            end = self._start + taken
            if not more:
                if final and rest:
                    found += counts(self._data[end:])
                    end = len(self._data)
                break
        return Block(self.line, self._data[self._start : end]), found

    def take(self, size: int) -> None:
        """Go on behind so many bytes of what was last looked at: whole lines."""
        data = self._data[self._start : self._start + size]
        self._start += size
        self.offset += size
        self.line += data.count(b"\n") + bool(data and not data.endswith(b"\n"))

    def waiting(self) -> Block:
        """The whole lines that are here already."""
        return Block(self.line, self._data[self._start : self._data.rfind(b"\n") + 1])

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
