"""Delivery of the changes of applied batches to listeners and sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ripplevec.changes import Changes
from ripplevec.durability.journal import JournalEntry
from ripplevec.io.protocols import ChangeSink

Listener: TypeAlias = Callable[[JournalEntry, Changes], None]
"""Callback for every applied batch: the entry in the journal, and its changes."""


class ChangePublisher:
    """Listeners of a session, and for each source the changes that its sinks have not received yet.

    Attributes
    ----------
    published
        For each source, the last batch whose changes its sinks have received. The journal saves it with the next
        batch, so that recovery knows which changes to publish again.
    """

    def __init__(self, pending: dict[str, list[Changes]]) -> None:
        """Start with the changes that were pending when the session was opened."""
        self.published: dict[str, int] = {}
        self._pending = pending
        self._listeners: list[Listener] = []

    def add_listener(self, listener: Listener) -> None:
        """Call a function for every batch from now on."""
        self._listeners.append(listener)

    def notify_listeners(self, entry: JournalEntry, changes: Changes) -> list[Exception]:
        """Call every listener with a batch; return the errors that they raised."""
        errors: list[Exception] = []
        for listener in self._listeners:
            try:
                listener(entry, changes)
            except MemoryError:
                raise
            except Exception as error:
                errors.append(error)
        return errors

    def start_source(self, source: str, last: int) -> None:
        """Register a source with sinks: they need its changes after batch `last`. A registered source is unchanged."""
        self.published.setdefault(source, last)

    def skip_source(self, source: str, up_to: int) -> None:
        """Drop the pending changes of a source without sinks, and count its batches up to a number as published."""
        self._pending.pop(source, None)
        self.published[source] = up_to

    def queue(self, source: str, changes: Changes) -> None:
        """Keep the changes of a batch for the sinks of its source."""
        self._pending.setdefault(source, []).append(changes)

    def replace_pending(self, replayed: dict[str, list[Changes]]) -> None:
        """Replace pending changes, whose vectors are lost, by those of the same batches applied again."""
        for source in self._pending:
            first = self._pending[source][0].sequence
            self._pending[source] = [changes for changes in replayed.get(source, []) if changes.sequence >= first]

    def publish(self, source: str, sinks: Sequence[ChangeSink]) -> None:
        """Write the pending changes of a source to its sinks; if a sink raises, they stay pending."""
        pending = self._pending.get(source, [])
        if not sinks or not pending:
            return
        for sink in sinks:
            for changes in pending:
                sink.write(changes)
            sink.flush()
        self.published[source] = pending[-1].sequence  # on disk with the next batch, or when the session closes
        del self._pending[source]
