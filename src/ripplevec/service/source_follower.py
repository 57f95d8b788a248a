"""Source follower: a thread that reads events from a source and applies them through the session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ripplevec.durability.session import Session
from ripplevec.io.protocols import BadMessage, DeadLetterSink, EventSource
from ripplevec.io.readers.option_syntax import in_address
from ripplevec.io.registry import stream_from
from ripplevec.service.batch_writer import is_usable
from ripplevec.service.logs import log_event
from ripplevec.service.metrics import Metrics

_RETRY_SECONDS = 5.0


def open_source(address: str) -> EventSource:
    """Open the source at an address; a file is followed as it grows."""
    if "://" in address:
        return stream_from(address)
    is_file = address.partition("?")[0] != "-"
    return stream_from(address, syntax=in_address, **({"follow": True} if is_file else {}))


class SourceFollower:
    """Follows one source until the source ends or the follower is closed; failures are logged and retried.

    After a failure, the source is opened again at its address.

    It is also the dead-letter sink of the source: it logs bad messages, and passes them on if a sink is configured.
    """

    def __init__(
        self,
        session: Session,
        source: EventSource,
        address: str,
        metrics: Metrics,
        dead_letters: DeadLetterSink | None,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._session, self._metrics, self._address = session, metrics, address
        self._dead_letters, self._on_failure = dead_letters, on_failure
        self._stopped = threading.Event()
        self._source: EventSource | None = source
        self._thread = threading.Thread(target=self._run, name="ripplevec-source", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop between two reads."""
        self._stopped.set()
        self._thread.join()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow()
                log_event("source stopped" if self._stopped.is_set() else "source ended")
                return
            except Exception as error:
                if not is_usable(self._session):
                    self._on_failure(error)
                    return
                log_event("source failed", logging.ERROR, reason=str(error), retry_seconds=_RETRY_SECONDS)
                self._stopped.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        source = self._source or open_source(self._address)
        self._source = None
        try:
            self._session.run(source, (), self, self._stopped.is_set)
        finally:
            source.close()

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Log the position and reason of a bad message, but not its content; store the message if configured."""
        if self._dead_letters is not None:
            self._dead_letters.record(source, bad_message)
        self._metrics.refused_batches.inc()
        log_event("message refused", logging.WARNING, source=source, where=bad_message.where, reason=bad_message.reason)
