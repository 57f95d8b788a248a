"""The writer: one thread that puts batches on disk, those that wait together with one flush, and applies them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from ripplevec.changes import Changes
from ripplevec.durability.journal import JournalEntry
from ripplevec.errors import RipplevecError
from ripplevec.service.metrics import Metrics
from ripplevec.service.responses import RejectedRequest


class BatchSession(Protocol):
    """What the writer needs of a session."""

    def apply_many(self, entries: Sequence[JournalEntry]) -> Sequence[Changes | RipplevecError]:
        """Put batches on disk with one flush and apply each; an error in the place of one that was refused."""
        ...

    def find_key(self, key: str) -> int | None:
        """The number of the batch with a key; raises where the session cannot be used any more."""
        ...


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What became of a batch; `repeated` where it had been applied before, under the same key."""

    changes: Changes
    repeated: bool


RATE_GROUPS = 64
"""Groups of batches by which the rate of the writer is known."""


@dataclass(slots=True)
class _Waiting:
    entry: JournalEntry
    done: Future[WriteResult] = field(default_factory=Future)
    since: float = field(default_factory=time.perf_counter)


class BatchWriter:
    """A bounded queue and the thread that empties it. Every request stays one batch, whatever it is flushed with."""

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
        newest: int,
        broken: Callable[[BaseException], None],
    ) -> None:
        self._session, self._metrics = session, metrics
        self._max_delay, self._max_batch = max_delay, max_batch
        self._queue_requests, self._queue_events = queue_requests, queue_events
        self._queue_seconds = queue_seconds
        self._written: deque[tuple[int, float]] = deque(maxlen=RATE_GROUPS)  # events of a group, and its seconds
        self._since: float | None = None  # when the group that is being written was begun
        self._newest, self._broken = newest, broken
        self._queue: deque[_Waiting] = deque()
        self.events = 0  # that wait
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ripplevec-writer", daemon=True)
        self._thread.start()

    @property
    def requests(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    def check_room(self, events: int = 0) -> None:
        """Refuse with 429 what there is no room for, 503 once the service is closing."""
        if self._closed:
            raise RejectedRequest(503, "the service is closing", {"Retry-After": "5"})
        if len(self._queue) >= self._queue_requests or (self.events and self.events + events > self._queue_events):
            raise RejectedRequest(429, "too many batches wait to be written; try again", {"Retry-After": "1"})
        if (wait := self.expected_wait()) > self._queue_seconds:
            reason = f"a batch would wait more than {self._queue_seconds:g} s to be written; try again"
            raise RejectedRequest(503, reason, {"Retry-After": str(min(max(1, round(wait - self._queue_seconds)), 30))})

    def expected_wait(self) -> float:
        """Seconds that a batch would wait, by what waits and by the last groups; at least as long as others do."""
        since = self._since
        if not self._queue and since is None:
            return 0.0
        waited = 0.0 if since is None else time.perf_counter() - since
        written = list(self._written)
        events, seconds = sum(events for events, _ in written), sum(seconds for _, seconds in written)
        return waited + (self.events * seconds / events if events else 0.0)

    def submit(self, entry: JournalEntry) -> Future[WriteResult]:
        """Queue a batch; its future is done once the batch is on disk and applied."""
        waiting = _Waiting(entry)
        waiting.done.set_running_or_notify_cancel()  # from here on nobody can take it back
        with self._changed:
            self.check_room(len(entry.batch))
            self._queue.append(waiting)
            self.events += len(entry.batch)
            self._changed.notify()
        return waiting.done

    def close(self) -> None:
        """Take nothing more, finish what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next():
            began = self._since = time.perf_counter()
            self._write(group)
            self._since = None
            self._written.append((sum(len(waiting.entry.batch) for waiting in group), time.perf_counter() - began))

    def _next(self) -> list[_Waiting]:
        """The batches to be flushed together: those that wait, after a moment for more; none once it is closed."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            if self._max_delay and self._queue:
                until = self._queue[0].since + self._max_delay
                while not self._closed and self.events < self._max_batch and (left := until - time.perf_counter()) > 0:
                    self._changed.wait(left)
            group: list[_Waiting] = []
            events = 0
            while self._queue and (not group or events + len(self._queue[0].entry.batch) <= self._max_batch):
                waiting = self._queue.popleft()
                events += len(waiting.entry.batch)
                group.append(waiting)
            self.events -= events
            return group

    def _write(self, group: list[_Waiting]) -> None:
        try:
            results = self._session.apply_many([waiting.entry for waiting in group])
        except BaseException as error:  # whatever it was, those who wait must hear of it
            self._metrics.failed(len(group))
            for waiting in group:
                waiting.done.set_exception(error)
            if not is_usable(self._session):
                self._broken(error)
            return
        for waiting, result in zip(group, results, strict=True):
            if isinstance(result, RipplevecError):
                self._metrics.refused_batches.inc()
                waiting.done.set_exception(result)
            else:
                self._pass_on(waiting, result)
        self._metrics.group.observe(len(group))

    def _pass_on(self, waiting: _Waiting, changes: Changes) -> None:
        repeated = changes.sequence <= self._newest
        if not repeated:
            self._newest = changes.sequence
            self._metrics.applied(len(waiting.entry.batch), changes, time.perf_counter() - waiting.since)
        waiting.done.set_result(WriteResult(changes, repeated))


def is_usable(session: BatchSession) -> bool:
    """Whether a session can go on after a failure: where disk and memory differ, it cannot."""
    try:
        session.find_key("?")
    except RipplevecError:
        return False
    return True
