from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.changes import Changes
from ripplevec.durability.journal import JournalEntry
from ripplevec.errors import RipplevecError, StateError, UnknownEdgeError
from ripplevec.service.batch_writer import BatchWriter
from ripplevec.service.metrics import Metrics
from ripplevec.service.responses import RejectedRequest


def entry(edges: int = 1, key: str | None = None) -> JournalEntry:
    return JournalEntry(Batch.of(["a"] * edges, ["b"] * edges), key)


class Held:
    """A session that notes its groups, and holds the first until it is let go."""

    def __init__(self, answer: Callable[[JournalEntry, int], Any] | None = None) -> None:
        self.groups: list[list[JournalEntry]] = []
        self.began, self.go_on = threading.Event(), threading.Event()
        self.sequence, self.failed = 0, False
        self.answer = answer or self.applied

    def apply_many(self, entries: Sequence[JournalEntry]) -> list[Changes | RipplevecError]:
        self.began.set()
        self.go_on.wait(30)
        self.groups.append(list(entries))
        return [self.answer(one, number) for number, one in enumerate(entries)]

    def find_key(self, key: str) -> int | None:
        if self.failed:
            raise StateError("disk and memory differ")
        return None

    def applied(self, one: JournalEntry, number: int) -> Changes:
        self.sequence += 1
        none = np.empty(0, np.int64)
        return Changes(none, np.empty((0, 4), np.float32), lambda rows: rows, none < 0, [], self.sequence, False)


def writer(session: Any, **options: Any) -> BatchWriter:
    defaults: dict[str, Any] = {
        "max_delay": 0.0,
        "max_batch": 100,
        "queue_requests": 5,
        "queue_events": 1000,
        "queue_seconds": 30.0,
        "newest": 0,
    }
    defaults["on_failure"] = lambda error: None
    return BatchWriter(session, Metrics(), **defaults | options)


def test_writer_flushes_queued_batches_together_and_keeps_them_separate() -> None:
    session = Held()
    busy = writer(session)
    first = busy.submit(entry())
    session.began.wait()
    rest = [busy.submit(entry()) for _ in range(4)]
    session.go_on.set()
    assert [done.result(30).changes.sequence for done in (first, *rest)] == [1, 2, 3, 4, 5]
    assert [len(group) for group in session.groups] == [1, 4]
    busy.close()


def test_writer_group_respects_max_batch_but_contains_at_least_one_batch() -> None:
    session = Held()
    busy = writer(session, max_batch=10)
    busy.submit(entry())
    session.began.wait()
    for size in (6, 4, 50, 1):
        busy.submit(entry(size))
    session.go_on.set()
    busy.close()
    assert [[len(one.batch) for one in group] for group in session.groups] == [[1], [6, 4], [50], [1]]


def test_writer_with_delay_waits_for_more_batches() -> None:
    session = Held()
    session.go_on.set()
    patient = writer(session, max_delay=60.0, max_batch=3)
    done = [patient.submit(entry()) for _ in range(3)]
    assert all(one.result(30) for one in done)
    assert [len(group) for group in session.groups] == [3]
    last = patient.submit(entry())
    patient.close()
    assert last.result(0)


def test_writer_with_full_queue_rejects_with_retry_after() -> None:
    session = Held()
    busy = writer(session, queue_events=10)
    busy.submit(entry())
    session.began.wait()
    busy.submit(entry(8))
    with pytest.raises(RejectedRequest) as refused:
        busy.submit(entry(8))
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    for _ in range(2):
        busy.submit(entry())
    busy.check_capacity()
    session.go_on.set()
    busy.close()
    assert sum(map(len, session.groups)) == 4


def test_writer_stalled_beyond_the_wait_limit_rejects_before_queueing() -> None:
    session = Held()
    busy = writer(session, queue_seconds=0.05)
    first = busy.submit(entry())
    session.began.wait(30)
    time.sleep(0.1)
    for refuse in (busy.check_capacity, lambda: busy.submit(entry())):
        with pytest.raises(RejectedRequest) as refused:
            refuse()
        assert refused.value.status == 503
        assert refused.value.headers["Retry-After"] == "1"
    assert (busy.queued_requests, busy.queued_events) == (0, 0)
    session.go_on.set()
    assert first.result(30)
    busy.close()
    assert sum(map(len, session.groups)) == 1


def test_writer_with_long_expected_wait_rejects_and_recovers() -> None:
    session = Held(lambda one, number: time.sleep(0.02 * len(one.batch)) or session.applied(one, number))
    busy = writer(session, queue_seconds=1.0, max_batch=1000)
    session.go_on.set()
    busy.submit(entry(2)).result(30)  # 0.02 s an event
    session.go_on.clear()
    session.began.clear()
    running = busy.submit(entry())
    session.began.wait(30)
    waiting = busy.submit(entry(60))
    with pytest.raises(RejectedRequest) as refused:
        busy.submit(entry())
    assert refused.value.status == 503
    session.go_on.set()
    assert running.result(30)
    assert waiting.result(30)
    assert busy.submit(entry()).result(30)
    busy.close()


def test_writer_close_writes_queued_batches_and_rejects_new_ones() -> None:
    session = Held()
    busy = writer(session)
    waiting = [busy.submit(entry()) for _ in range(4)]
    threading.Timer(0.05, session.go_on.set).start()
    busy.close()
    assert all(one.done() for one in waiting)
    with pytest.raises(RejectedRequest) as refused:
        busy.submit(entry())
    assert refused.value.status == 503


def test_writer_rejected_batch_does_not_affect_the_others() -> None:
    session = Held(
        lambda one, number: UnknownEdgeError([("a", "b")]) if one.key == "bad" else session.applied(one, number)
    )
    busy = writer(session)
    done = [busy.submit(entry(key=key)) for key in ("one", "bad", "two")]
    session.go_on.set()
    assert done[0].result(30).changes.sequence == 1
    with pytest.raises(UnknownEdgeError):
        done[1].result(30)
    assert done[2].result(30).changes.sequence == 2
    busy.close()


def test_writer_disk_failure_reaches_all_requests_and_writer_continues() -> None:
    class Failing(Held):
        def apply_many(self, entries: Sequence[JournalEntry]) -> list[Changes | RipplevecError]:
            if any(one.key == "fatal" for one in entries):
                raise StateError("the disk is full")
            return super().apply_many(entries)

    session = Failing()
    session.go_on.set()
    busy = writer(session)
    with pytest.raises(StateError):
        busy.submit(entry(key="fatal")).result(30)
    assert busy.submit(entry()).result(30).changes.sequence == 1
    busy.close()


def test_writer_batch_applied_before_is_marked_as_repeated() -> None:
    session = Held()
    session.go_on.set()
    busy = writer(session, newest=5)
    session.sequence = 2
    assert busy.submit(entry(key="old")).result(30).repeated
    session.sequence = 5
    assert not busy.submit(entry()).result(30).repeated
    busy.close()


@pytest.mark.parametrize("failed", [False, True])
def test_writer_unusable_session_is_reported(failed: bool) -> None:
    class Broken(Held):
        def apply_many(self, entries: Sequence[JournalEntry]) -> list[Changes | RipplevecError]:
            self.failed = failed
            raise RuntimeError("in the middle")

    told: list[BaseException] = []
    busy = writer(Broken(), on_failure=told.append)
    with pytest.raises(RuntimeError):
        busy.submit(entry()).result(30)
    busy.close()
    assert len(told) == failed
