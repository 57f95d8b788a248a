"""A vector store that is kept in step with the model of a service, by a thread of its own: nobody waits for it."""

from __future__ import annotations

import logging
import threading

from ripplevec.changes import Changes
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.io.registry import create_lance_sink
from ripplevec.service.logs import log_event

MAX_PENDING_ROWS = 1 << 18
"""Changes that wait for the store at most; where there are more, it is filled anew from the model instead."""

_PAUSE = 5.0  # seconds before a store that failed is tried again


class VectorStoreSync:
    """Fills the store with the model where they differ, then passes on every batch; after a failure, both again.

    So it needs no record of what the store has got: whatever was missed is found when it is filled.
    """

    def __init__(self, session: Session, address: str) -> None:
        self._sink, self._model = create_lance_sink(address), session.model  # an address that is none is refused here
        self._waiting: list[Changes] = []
        self._rows = 0
        self._unknown, self._closing = True, False
        self._changed = threading.Condition()
        self._since = 0
        session.add_listener(self._note)
        self._thread = threading.Thread(target=self._run, name="ripplevec-mirror", daemon=True)
        self._thread.start()

    @property
    def batches(self) -> int:
        """How many batches the store has not got."""
        return len(self._waiting)

    def close(self) -> None:
        """Pass on what waits, and let go of the store."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _note(self, entry: JournalEntry, changes: Changes) -> None:
        with self._changed:
            self._waiting.append(changes)
            self._rows += len(changes) + len(changes.removed)
            if self._rows > MAX_PENDING_ROWS:
                self._waiting, self._rows, self._unknown = [], 0, True
            self._changed.notify()

    def _run(self) -> None:
        while self._due():
            try:
                self._pass_on()
            except Exception as error:
                log_event("store failed", logging.ERROR, reason=str(error), retry_seconds=_PAUSE)
                with self._changed:
                    self._unknown = True
                    if self._changed.wait_for(lambda: self._closing, _PAUSE):
                        return

    def _due(self) -> bool:
        """Wait until there is something to do; False where there will be nothing more."""
        with self._changed:
            self._changed.wait_for(lambda: self._unknown or self._waiting or self._closing)
            return bool(self._unknown or self._waiting)

    def _pass_on(self) -> None:
        with self._changed:
            ready, unknown = self._waiting, self._unknown
            self._waiting, self._rows, self._unknown = [], 0, False
        if unknown:
            self._since = self._sink.fill(self._model)
        for changes in ready:
            if changes.sequence > self._since:  # else it is in what was filled
                self._sink.write(changes)
        self._sink.flush()
