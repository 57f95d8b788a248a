"""What a live stream is: reads with positions, acknowledged once they are safe, and sinks for what they changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from ripplevec.batch import Batch
from ripplevec.changes import Changes

Position: TypeAlias = Any
"""Where a source stands, as JSON holds it: an offset, an entry id, or one of them per partition."""


@dataclass(frozen=True, slots=True)
class BadMessage:
    """A message that holds no events: what it was, as far as it can be shown, where it stood, why it was refused."""

    message: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReadResult:
    """One read of a source: the events it held, the position after it, and what could not be understood."""

    batch: Batch
    position: Position
    bad_messages: list[BadMessage] = field(default_factory=list)


class EventSource(Protocol):
    """Where events come from. One read is one batch; what was read again after a crash is read in the same order."""

    name: str
    """The same for the same stream every time: positions are kept under it."""

    def open(self, position: Position | None) -> None:
        """Begin after this position, or at the beginning."""
        ...

    def read(self, timeout: float) -> ReadResult | None:
        """The next events; None where none came within `timeout` seconds. EOFError once no more can come."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Everything up to this position is on disk here: the source may forget it."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class ChangeSink(Protocol):
    """Where changes go. After a crash the changes of the last batches may be written again, with the same sequence."""

    def write(self, changes: Changes) -> None:
        """Pass on what one batch changed."""
        ...

    def flush(self) -> None:
        """Return once everything written so far is with the receiver.

        A session also calls it about once per second while no input comes: raise here if the receiver has been away
        for too long, and return soon if nothing waits for it.
        """
        ...

    def close(self) -> None:
        """Flush, and let go of files and connections."""
        ...


class DeadLetterSink(Protocol):
    """Where messages go that hold no events."""

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Keep one such message with its reason; return once it is with the receiver."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
