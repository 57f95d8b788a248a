"""Lines of text as events, a fixed number of lines at a time; what a later reader must know of them is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from ripplevec.batch import Batch
from ripplevec.errors import shorten
from ripplevec.io.messages import decode_many, shown
from ripplevec.io.protocols import Poison
from ripplevec.io.readers import csv
from ripplevec.io.readers.byte_stream import Block
from ripplevec.io.readers.edge_columns import BadRows, ReadOptions
from ripplevec.io.sources.line_buffer import Lines


class TextFormat(Protocol):
    """A way to write events in lines."""

    def begin(self, lines: Lines, final: bool) -> bool:
        """Take what stands before the first event; False where that is not all there yet."""
        ...

    def counts(self, line: bytes) -> bool:
        """Whether a line holds something to be read."""
        ...

    def parse(self, block: Block) -> tuple[Batch, list[Poison]]:
        """The events of some lines, and the lines that hold none."""
        ...

    def known(self) -> dict[str, Any]:
        """What was found out at the beginning and holds for the rest, as JSON."""
        ...


class CollectedRows(BadRows):
    """The lines of a block that could not be read, each with its reason."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "skip")
        self.poison: list[Poison] = []

    def report(self, number: int, expected: object, got: object) -> None:
        """Keep one of them."""
        message = got if isinstance(got, str) else repr(got)
        reason = f"expected {expected}, got {shorten(got)}"
        self.poison.append(Poison(shown(message.encode()), f"{self.name}, {self.unit} {number:,}", reason))


class CsvText:
    """Separated fields; the first lines say how, and whether ids are integers."""

    def __init__(self, name: str, options: ReadOptions, known: dict[str, Any]) -> None:
        self._name, self._options = name, options
        self._layout = csv.Layout(**known["layout"]) if "layout" in known else None
        self._ids = known.get("ids", options.ids)

    def begin(self, lines: Lines, final: bool) -> bool:
        """Find the layout from the first line, and the kind of ids from all lines that are here."""
        if self._layout is not None:
            return True
        head, found = lines.peek(2, csv.is_data, final)  # a header is known by the line below it
        begun = csv.start(head, self._name, self._options) if found and (found == 2 or final) else None
        if begun is None:
            return False
        self._layout, rest = begun
        lines.take(len(head.data) - len(rest.data))
        if self._ids == "auto":
            self._ids = csv.kind_of_ids(lines.waiting(), self._layout)
        return True

    counts = staticmethod(csv.is_data)

    def parse(self, block: Block) -> tuple[Batch, list[Poison]]:
        """The edges of some lines."""
        assert self._layout is not None  # it has begun
        bad = CollectedRows(self._name)
        if not block.data.endswith(b"\n"):
            block = Block(block.first, block.data + b"\n")
        if self._ids == "auto":  # there was no edge to tell by
            self._ids = csv.kind_of_ids(block, self._layout)
        return csv.parse(block, self._layout, self._ids, bad), bad.poison

    def known(self) -> dict[str, Any]:
        """The layout and the kind of ids."""
        return {} if self._layout is None else {"layout": asdict(self._layout), "ids": self._ids}


class JsonText:
    """A JSON value per line: an edge, or any other message."""

    def __init__(self, name: str, options: ReadOptions, known: dict[str, Any]) -> None:
        self._name, self._options = name, options

    def begin(self, lines: Lines, final: bool) -> bool:
        """There is nothing before the first line."""
        return True

    def counts(self, line: bytes) -> bool:
        """Blank lines do not count."""
        return bool(line.strip())

    def parse(self, block: Block) -> tuple[Batch, list[Poison]]:
        """The events of some lines."""
        numbered = enumerate(block.data.split(b"\n"), block.first)
        items = [(f"{self._name}, line {number:,}", line) for number, line in numbered if line.strip()]
        return decode_many(items, self._options)

    def known(self) -> dict[str, Any]:
        """Nothing: every line speaks for itself."""
        return {}


TEXT_FORMATS: dict[str, Callable[[str, ReadOptions, dict[str, Any]], TextFormat]] = {"csv": CsvText, "jsonl": JsonText}


def next_events(
    lines: Lines, format: TextFormat, batch_size: int, final: bool, fixed: bool
) -> tuple[Batch, list[Poison]] | None:
    """The events of the next lines, at most `batch_size` that count; None where there are none, or too few yet."""
    if not format.begin(lines, final):
        return None
    block, found = lines.peek(batch_size, format.counts, final)
    if not found or (fixed and not final and found < batch_size):
        return None
    events = format.parse(block)
    lines.take(len(block.data))
    return events
