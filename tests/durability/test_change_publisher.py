from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Batch, Changes
from ripplevec.batch import id_column
from ripplevec.durability.change_publisher import ChangePublisher
from ripplevec.durability.journal import JournalEntry

ENTRY = JournalEntry(Batch.of(["a"], ["b"]))


def make_changes(sequence: int) -> Changes:
    vectors = np.zeros((1, 3), np.float32)
    return Changes(id_column(["a"]), np.arange(1), lambda rows: vectors, np.ones(1, bool), [], sequence, False)


class RecordingSink:
    def __init__(self, *, broken: bool = False) -> None:
        self.broken, self.received, self.flushes = broken, list[int](), 0

    def write(self, changes: Changes) -> None:
        if self.broken:
            raise ConnectionError
        self.received.append(changes.sequence)

    def flush(self) -> None:
        self.flushes += 1

    def close(self) -> None:
        raise AssertionError("a publisher must not close its sinks")


def test_publish_writes_pending_changes_to_every_sink_once() -> None:
    publisher, sinks = ChangePublisher({"s": [make_changes(4)]}), [RecordingSink(), RecordingSink()]
    publisher.queue("s", make_changes(5))
    publisher.queue("t", make_changes(6))
    for _ in range(2):
        publisher.publish("s", sinks)
    assert [(sink.received, sink.flushes) for sink in sinks] == [([4, 5], 1), ([4, 5], 1)]
    assert publisher.published == {"s": 5}


def test_publish_failing_sink_keeps_changes_pending() -> None:
    publisher, sink = ChangePublisher({"s": [make_changes(1)]}), RecordingSink(broken=True)
    with pytest.raises(ConnectionError):
        publisher.publish("s", [sink])
    assert publisher.published == {}
    sink.broken = False
    publisher.publish("s", [sink])
    assert (sink.received, publisher.published) == ([1], {"s": 1})


def test_publish_without_sinks_keeps_changes_pending() -> None:
    publisher, sink = ChangePublisher({"s": [make_changes(1)]}), RecordingSink()
    publisher.publish("s", [])
    publisher.publish("s", [sink])
    assert sink.received == [1]


def test_start_source_does_not_replace_published_batch() -> None:
    publisher = ChangePublisher({})
    publisher.start_source("s", 3)
    publisher.start_source("s", 7)
    assert publisher.published == {"s": 3}


def test_skip_source_drops_pending_changes() -> None:
    publisher, sink = ChangePublisher({"s": [make_changes(1)]}), RecordingSink()
    publisher.skip_source("s", 9)
    publisher.publish("s", [sink])
    assert (sink.received, publisher.published) == ([], {"s": 9})


def test_notify_listeners_calls_all_and_returns_errors() -> None:
    publisher, notified = ChangePublisher({}), list[int]()

    def fail(entry: JournalEntry, changes: Changes) -> None:
        raise ZeroDivisionError

    publisher.add_listener(fail)
    publisher.add_listener(lambda entry, changes: notified.append(changes.sequence))
    (error,) = publisher.notify_listeners(ENTRY, make_changes(8))
    assert isinstance(error, ZeroDivisionError)
    assert notified == [8]


def test_notify_listeners_memory_error_is_raised() -> None:
    publisher = ChangePublisher({})

    def fail(entry: JournalEntry, changes: Changes) -> None:
        raise MemoryError

    publisher.add_listener(fail)
    with pytest.raises(MemoryError):
        publisher.notify_listeners(ENTRY, make_changes(1))
