"""The batch writer: groups, limits of its queue, failures."""

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


def make_entry(edges: int = 1, key: str | None = None) -> JournalEntry:
    return JournalEntry(Batch.of(["a"] * edges, ["b"] * edges), key)


class BlockingSession:
    """A session that records its groups and blocks until `go_on` is set."""

    def __init__(self, answer: Callable[[JournalEntry, int], Any] | None = None) -> None:
        self.groups: list[list[JournalEntry]] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.sequence, self.failed = 0, False
        self.answer = answer or self.applied

    def apply_many(self, entries: Sequence[JournalEntry]) -> list[Changes | RipplevecError]:
        self.started.set()
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


def make_writer(session: Any, **options: Any) -> BatchWriter:
    defaults: dict[str, Any] = {
        "max_delay": 0.0,
        "max_batch": 100,
        "queue_requests": 5,
        "queue_events": 1000,
        "queue_seconds": 30.0,
        "write_seconds": 30.0,
        "newest": 0,
    }
    defaults["on_failure"] = lambda error: None
    return BatchWriter(session, Metrics(), **defaults | options)


def test_writer_flushes_queued_batches_together_and_keeps_them_separate() -> None:
    session = BlockingSession()
    writer = make_writer(session)
    first = writer.submit(make_entry())
    session.started.wait()
    rest = [writer.submit(make_entry()) for _ in range(4)]
    session.go_on.set()
    assert [done.result(30).changes.sequence for done in (first, *rest)] == [1, 2, 3, 4, 5]
    assert [len(group) for group in session.groups] == [1, 4]
    writer.close()


def test_writer_group_respects_max_batch_but_contains_at_least_one_batch() -> None:
    session = BlockingSession()
    writer = make_writer(session, max_batch=10)
    writer.submit(make_entry())
    session.started.wait()
    for size in (6, 4, 50, 1):
        writer.submit(make_entry(size))
    session.go_on.set()
    writer.close()
    assert [[len(one.batch) for one in group] for group in session.groups] == [[1], [6, 4], [50], [1]]


def test_writer_with_delay_waits_for_more_batches() -> None:
    session = BlockingSession()
    session.go_on.set()
    writer = make_writer(session, max_delay=60.0, max_batch=3)
    done = [writer.submit(make_entry()) for _ in range(3)]
    assert all(one.result(30) for one in done)
    assert [len(group) for group in session.groups] == [3]
    last = writer.submit(make_entry())
    writer.close()
    assert last.result(0)


def test_writer_with_full_queue_rejects_with_retry_after() -> None:
    session = BlockingSession()
    writer = make_writer(session, queue_events=10)
    writer.submit(make_entry())
    session.started.wait()
    writer.submit(make_entry(8))
    with pytest.raises(RejectedRequest) as rejected:
        writer.submit(make_entry(8))
    assert (rejected.value.status, rejected.value.headers) == (429, {"Retry-After": "1"})
    for _ in range(2):
        writer.submit(make_entry())
    writer.check_capacity()
    session.go_on.set()
    writer.close()
    assert sum(map(len, session.groups)) == 4


def test_writer_stalled_beyond_the_wait_limit_rejects_before_queueing() -> None:
    session = BlockingSession()
    writer = make_writer(session, queue_seconds=0.05)
    first = writer.submit(make_entry())
    session.started.wait(30)
    time.sleep(0.1)
    for refuse in (writer.check_capacity, lambda: writer.submit(make_entry())):
        with pytest.raises(RejectedRequest) as rejected:
            refuse()
        assert rejected.value.status == 503
        assert rejected.value.headers["Retry-After"] == "1"
    assert (writer.queued_requests, writer.queued_events) == (0, 0)
    session.go_on.set()
    assert first.result(30)
    writer.close()
    assert sum(map(len, session.groups)) == 1


def test_writer_with_long_expected_wait_rejects_and_recovers() -> None:
    session = BlockingSession(lambda one, number: time.sleep(0.02 * len(one.batch)) or session.applied(one, number))
    writer = make_writer(session, queue_seconds=1.0, max_batch=1000)
    session.go_on.set()
    writer.submit(make_entry(2)).result(30)  # 0.02 s an event
    session.go_on.clear()
    session.started.clear()
    running = writer.submit(make_entry())
    session.started.wait(30)
    waiting = writer.submit(make_entry(60))
    with pytest.raises(RejectedRequest) as rejected:
        writer.submit(make_entry())
    assert rejected.value.status == 503
    session.go_on.set()
    assert running.result(30)
    assert waiting.result(30)
    assert writer.submit(make_entry()).result(30)
    writer.close()


def test_writer_close_writes_queued_batches_and_rejects_new_ones() -> None:
    session = BlockingSession()
    writer = make_writer(session)
    waiting = [writer.submit(make_entry()) for _ in range(4)]
    threading.Timer(0.05, session.go_on.set).start()
    writer.close()
    assert all(one.done() for one in waiting)
    with pytest.raises(RejectedRequest) as rejected:
        writer.submit(make_entry())
    assert rejected.value.status == 503


def test_writer_rejected_batch_does_not_affect_the_others() -> None:
    session = BlockingSession(
        lambda one, number: UnknownEdgeError([("a", "b")]) if one.key == "bad" else session.applied(one, number)
    )
    writer = make_writer(session)
    done = [writer.submit(make_entry(key=key)) for key in ("one", "bad", "two")]
    session.go_on.set()
    assert done[0].result(30).changes.sequence == 1
    with pytest.raises(UnknownEdgeError):
        done[1].result(30)
    assert done[2].result(30).changes.sequence == 2
    writer.close()


def test_writer_disk_failure_reaches_all_requests_and_writer_continues() -> None:
    class Failing(BlockingSession):
        def apply_many(self, entries: Sequence[JournalEntry]) -> list[Changes | RipplevecError]:
            if any(one.key == "fatal" for one in entries):
                raise StateError("the disk is full")
            return super().apply_many(entries)

    session = Failing()
    session.go_on.set()
    writer = make_writer(session)
    with pytest.raises(StateError):
        writer.submit(make_entry(key="fatal")).result(30)
    assert writer.submit(make_entry()).result(30).changes.sequence == 1
    writer.close()


def test_writer_batch_applied_before_is_marked_as_repeated() -> None:
    session = BlockingSession()
    session.go_on.set()
    writer = make_writer(session, newest=5)
    session.sequence = 2
    assert writer.submit(make_entry(key="old")).result(30).repeated
    session.sequence = 5
    assert not writer.submit(make_entry()).result(30).repeated
    writer.close()


@pytest.mark.parametrize("failed", [False, True])
def test_writer_unusable_session_is_reported(failed: bool) -> None:
    class Broken(BlockingSession):
        def apply_many(self, entries: Sequence[JournalEntry]) -> list[Changes | RipplevecError]:
            self.failed = failed
            raise RuntimeError("in the middle")

    failures: list[BaseException] = []
    writer = make_writer(Broken(), on_failure=failures.append)
    with pytest.raises(RuntimeError):
        writer.submit(make_entry()).result(30)
    writer.close()
    assert len(failures) == failed
