"""Batch writer: one thread that journals the queued batches with one flush (group commit) and applies them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from ripplevec.batch import Batch
from ripplevec.changes import Changes
from ripplevec.durability.journal import JournalEntry
from ripplevec.errors import RipplevecError
from ripplevec.service.metrics import Metrics
from ripplevec.service.responses import RejectedRequest

RATE_GROUPS = 64
"""Number of recent groups from which the write rate is estimated."""

_MAX_RETRY_AFTER = 30  # seconds


class BatchSession(Protocol):
    """The part of a session that the writer uses."""

    def apply_many(self, entries: Sequence[JournalEntry]) -> Sequence[Changes | RipplevecError]:
        """Journal batches with one flush and apply each; a rejected batch yields its error."""
        ...

    def find_key(self, key: str) -> int | None:
        """Return the sequence number of the batch with this key; raise if the session is unusable."""
        ...


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Changes of a batch; `repeated` if a batch with the same key had been applied before."""

    changes: Changes
    repeated: bool


@dataclass(slots=True)
class _QueuedBatch:
    entry: JournalEntry
    result: Future[WriteResult] = field(default_factory=Future)
    queued_at: float = field(default_factory=time.perf_counter)


class BatchWriter:
    """A bounded queue of batches and the thread that writes them.

    Every request stays a separate batch, even if several are flushed together.

    Parameters
    ----------
    session
        Session that journals and applies the batches.
    metrics
        Metrics in which batches and failures are counted.
    max_delay
        Seconds that a batch may wait for others to share its flush.
    max_batch
        Maximum number of events in one flush.
    queue_requests, queue_events
        Maximum number of requests and events in the queue.
    queue_seconds
        Maximum expected wait in the queue.
    write_seconds
        Maximum time that a request waits for its batch.
    newest
        Sequence number of the newest batch; a result with this number or a lower one is a repeated batch.
    on_failure
        Called with the error if a failed write leaves the session unusable.
    """

    def __init__(
        self,
        session: BatchSession,
        metrics: Metrics,
        *,
        max_delay: float,
        max_batch: int,
        queue_requests: int,
        queue_events: int,
        queue_seconds: float,
        write_seconds: float,
        newest: int,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._session, self._metrics = session, metrics
        self._max_delay, self._max_batch = max_delay, max_batch
        self._queue_requests, self._queue_events = queue_requests, queue_events
        self._queue_seconds, self._write_seconds = queue_seconds, write_seconds
        self._recent_groups: deque[tuple[int, float]] = deque(maxlen=RATE_GROUPS)  # (events, seconds)
        self._group_started: float | None = None  # start time of the group being written
        self._newest, self._on_failure = newest, on_failure
        self._queue: deque[_QueuedBatch] = deque()
        self.queued_events = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ripplevec-writer", daemon=True)
        self._thread.start()

    @property
    def queued_requests(self) -> int:
        """Number of queued requests."""
        return len(self._queue)

    def check_capacity(self, events: int = 0) -> None:
        """Reject a request: 429 if the queue is full, 503 if it would wait too long or the writer is closed."""
        if self._closed:
            raise RejectedRequest(503, "the service is shutting down", {"Retry-After": "5"})
        events_full = self.queued_events and self.queued_events + events > self._queue_events
        if len(self._queue) >= self._queue_requests or events_full:
            raise RejectedRequest(429, "the write queue is full; retry", {"Retry-After": "1"})
        if (wait := self.expected_wait()) > self._queue_seconds:
            reason = f"the expected wait in the write queue exceeds {self._queue_seconds:g} s; retry"
            retry_after = min(max(1, round(wait - self._queue_seconds)), _MAX_RETRY_AFTER)
            raise RejectedRequest(503, reason, {"Retry-After": str(retry_after)})

    def expected_wait(self) -> float:
        """Estimate the seconds that a new batch would wait, from the queue and the recent write rate.

        At least as long as the current group has been taking.
        """
        started = self._group_started
        if not self._queue and started is None:
            return 0.0
        elapsed = 0.0 if started is None else time.perf_counter() - started
        groups = list(self._recent_groups)
        events, seconds = sum(events for events, _ in groups), sum(seconds for _, seconds in groups)
        return elapsed + (self.queued_events * seconds / events if events else 0.0)

    async def write(self, batch: Batch, key: str | None = None) -> WriteResult:
        """Queue a batch with its idempotency key and return once it is on disk and applied; 503 after a timeout."""
        writing = asyncio.wrap_future(self.submit(JournalEntry(batch, key)))
        done, _ = await asyncio.wait([writing], timeout=self._write_seconds)
        if not done:
            reason = f"the batch is not on disk after {self._write_seconds:g} s, but may still be written"
            raise RejectedRequest(503, f"{reason}; retry with the same key", {"Retry-After": "5"})
        return writing.result()

    def submit(self, entry: JournalEntry) -> Future[WriteResult]:
        """Queue a batch; the future completes once the batch is on disk and applied."""
        queued = _QueuedBatch(entry)
        queued.result.set_running_or_notify_cancel()  # a queued batch cannot be canceled
        with self._changed:
            self.check_capacity(len(entry.batch))
            self._queue.append(queued)
            self.queued_events += len(entry.batch)
            self._changed.notify()
        return queued.result

    def close(self) -> None:
        """Accept no more batches, write the queued ones, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            started = self._group_started = time.perf_counter()
            self._write(group)
            self._group_started = None
            events = sum(len(queued.entry.batch) for queued in group)
            self._recent_groups.append((events, time.perf_counter() - started))

    def _next_group(self) -> list[_QueuedBatch]:
        """Wait for the batches to flush together: the queued ones, after `max_delay` for more; empty once closed."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            if self._max_delay and self._queue:
                deadline = self._queue[0].queued_at + self._max_delay
                while (
                    not self._closed
                    and self.queued_events < self._max_batch
                    and (remaining := deadline - time.perf_counter()) > 0
                ):
                    self._changed.wait(remaining)
            group: list[_QueuedBatch] = []
            events = 0
            while self._queue and (not group or events + len(self._queue[0].entry.batch) <= self._max_batch):
                queued = self._queue.popleft()
                events += len(queued.entry.batch)
                group.append(queued)
            self.queued_events -= events
            return group

    def _write(self, group: list[_QueuedBatch]) -> None:
        """Write one group and complete the future of each batch with its result or error."""
        try:
            results = self._session.apply_many([queued.entry for queued in group])
        except BaseException as error:  # of any kind: the waiting requests must receive it
            self._metrics.record_failed_batches(len(group))
            for queued in group:
                queued.result.set_exception(error)
            if not is_usable(self._session):
                self._on_failure(error)
            return
        for queued, result in zip(group, results, strict=True):
            if isinstance(result, RipplevecError):
                self._metrics.refused_batches.inc()
                queued.result.set_exception(result)
            else:
                self._complete(queued, result)
        self._metrics.group_batches.observe(len(group))

    def _complete(self, queued: _QueuedBatch, changes: Changes) -> None:
        repeated = changes.sequence <= self._newest
        if not repeated:
            self._newest = changes.sequence
            seconds = time.perf_counter() - queued.queued_at
            self._metrics.record_batch(len(queued.entry.batch), changes, seconds)
        queued.result.set_result(WriteResult(changes, repeated))


def is_usable(session: BatchSession) -> bool:
    """Return whether a session can continue after a failure; it cannot if disk and memory differ."""
    try:
        session.find_key("?")
    except RipplevecError:
        return False
    return True
