"""Interfaces of live streams: sources with positions, change sinks and dead-letter sinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from ripplevec.batch import AttributeRows, Batch
from ripplevec.changes import Changes

Position: TypeAlias = Any
"""A place in a stream as a JSON value: an offset, an entry id, or one of them per partition."""

DEFAULT_READ_SIZE = 1000
"""Rows, lines or messages per read by default."""


@dataclass(frozen=True, slots=True)
class BadMessage:
    """A message that could not be decoded into events, or whose events could not be applied.

    Attributes
    ----------
    message : str
        The message as text, truncated if it is long.
    where : str
        Its place in the stream, for example "edges.csv, line 4".
    reason : str
        Why it was rejected.
    """

    message: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The events of one read of a source, the position after it, and the messages that could not be decoded.

    `attributes` are set after the events, in their order. Each of them is refused by itself if it does not fit the
    model. The events create the vertices.
    """

    batch: Batch
    position: Position
    bad_messages: list[BadMessage] = field(default_factory=list)
    attributes: Sequence[AttributeRows] = ()


class EventSource(Protocol):
    """A source of events. One read is one batch; events read again after a crash come in the same order."""

    name: str
    """Identifies the stream; positions are saved under this name, so it must be the same after a restart."""

    def open(self, position: Position | None) -> None:
        """Start after this position, or at the beginning of the stream for None."""
        ...

    def read(self, timeout: float) -> ReadResult | None:
        """Return the next events; None if none came within `timeout` seconds. Raise EOFError at the end."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to this position is on disk and may be discarded by the stream."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


class ChangeSink(Protocol):
    """A destination for changes.

    After a crash, the changes of the last batches may be written again with the same sequence numbers.
    """

    def write(self, changes: Changes) -> None:
        """Accept the changes of one batch."""
        ...

    def flush(self) -> None:
        """Return once everything written so far has reached the receiver.

        A session also calls it about once per second while no input comes: raise an error if the receiver has been
        unreachable for too long, and return promptly if nothing is queued.
        """
        ...

    def close(self) -> None:
        """Flush, then close files and connections."""
        ...


class DeadLetterSink(Protocol):
    """A destination for messages that could not be decoded or applied."""

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Store a message with its reason; return once it has reached the receiver."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...
