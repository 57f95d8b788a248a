"""Vector store sync: a thread that copies every change of the model to a vector store; writers do not wait for it."""

from __future__ import annotations

import logging
import threading

from ripplevec.changes import Changes
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.io.sinks.vector_store import VectorStoreSink
from ripplevec.service.logs import log_event

MAX_PENDING_ROWS = 1 << 18
"""Pending row changes beyond which the store is filled from the model instead."""

_RETRY_SECONDS = 5.0


class VectorStoreSync:
    """Fills the store from the model where they differ, then writes the changes of every batch.

    After a failure it does both again. It keeps no record of the batches in the store: filling finds all differences.
    """

    def __init__(self, session: Session, sink: VectorStoreSink) -> None:
        self._sink, self._model = sink, session.model
        self._pending: list[Changes] = []
        self._pending_rows = 0
        self._needs_fill, self._closing = True, False
        self._changed = threading.Condition()
        self._filled_at = 0  # sequence number
        session.add_listener(self._enqueue)
        self._thread = threading.Thread(target=self._run, name="ripplevec-vector-store", daemon=True)
        self._thread.start()

    @property
    def pending_batches(self) -> int:
        """Number of batches that are not in the store yet."""
        return len(self._pending)

    def close(self) -> None:
        """Write the pending changes, end the thread and close the store."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        try:
            self._sink.close()
        except Exception as error:  # the next start finds what is missing
            log_event("store failed", logging.ERROR, reason=str(error))

    def _enqueue(self, entry: JournalEntry, changes: Changes) -> None:
        with self._changed:
            self._pending.append(changes)
            self._pending_rows += len(changes) + len(changes.removed)
            if self._pending_rows > MAX_PENDING_ROWS:
                self._pending, self._pending_rows, self._needs_fill = [], 0, True
            self._changed.notify()

    def _run(self) -> None:
        while self._wait_for_work():
            try:
                self._write_pending()
            except Exception as error:
                log_event("store failed", logging.ERROR, reason=str(error), retry_seconds=_RETRY_SECONDS)
                with self._changed:
                    self._needs_fill = True
                    if self._changed.wait_for(lambda: self._closing, _RETRY_SECONDS):
                        return

    def _wait_for_work(self) -> bool:
        """Wait until there is something to write; return False if there will be nothing more."""
        with self._changed:
            self._changed.wait_for(lambda: self._needs_fill or self._pending or self._closing)
            return bool(self._needs_fill or self._pending)

    def _write_pending(self) -> None:
        with self._changed:
            pending, needs_fill = self._pending, self._needs_fill
            self._pending, self._pending_rows, self._needs_fill = [], 0, False
        if needs_fill:
            self._filled_at = self._sink.synchronize(self._model)
        for changes in pending:
            if changes.sequence > self._filled_at:  # earlier batches are part of the fill
                self._sink.write(changes)
        self._sink.flush()
