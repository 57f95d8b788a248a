"""The last two minutes, second by second."""

from __future__ import annotations

import math

import pytest

from ripplevec.embedder import Embedder
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.map.stream_stats import SECONDS, AppliedBatch, StreamStats


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.batches: list[AppliedBatch] = []
        self.model = Embedder(dim=8, threads=1, anchor_growth=0)
        self.model.fit([(i, (i + step) % 60) for i in range(60) for step in (1, 2, 5)])
        self.feed = ChangeFeed(0, 8, batches=50, size=1 << 30, followers=1)
        self.pulse = StreamStats(self.model, self.feed, lambda: self.batches, clock=lambda: self.now)

    def batch(self, at: float, arrivals: int = 1, seconds: float = 0.002) -> None:
        self.batches.append((at, 5 * arrivals, arrivals, 3, seconds))

    def seconds(self) -> dict[int, dict[str, object]]:
        return {second["second"]: second for second in self.pulse.read()["seconds"]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_batches_count_in_their_second(clock: Clock) -> None:
    clock.batch(1000.1, 2)
    clock.batch(1000.9, 3)
    clock.batch(1002.5, 7)
    clock.now = 1003.2
    seconds = clock.seconds()
    assert (seconds[1000]["batches"], seconds[1000]["arrivals"], seconds[1000]["events"]) == (2, 5, 25)
    assert seconds[1002]["arrivals"] == 7
    assert clock.pulse.read()["now"] == 1003


def test_a_batch_counts_once_however_often_one_looks(clock: Clock) -> None:
    clock.batch(1000.1)
    clock.seconds()
    clock.batch(1000.2)
    assert clock.seconds()[1000]["batches"] == 2
    assert clock.seconds()[1000]["batches"] == 2


def test_latency_is_that_of_senders_who_waited(clock: Clock) -> None:
    for milliseconds in range(1, 101):
        clock.batch(1000.0 + milliseconds / 1000, seconds=milliseconds / 1000)
    clock.batch(1000.9, seconds=math.nan)  # from a source: nobody waited
    clock.batch(1001.9, seconds=math.nan)
    seconds = clock.seconds()
    assert seconds[1000]["p50"] == pytest.approx(50.5)
    assert seconds[1000]["p99"] == pytest.approx(99.01)
    assert seconds[1001]["p50"] is None


def test_changes_per_arrival_leave_anchors_out(clock: Clock) -> None:
    clock.seconds()
    changes = clock.model.partial_fit([("a", 3), ("a", 4), ("b", 9)])
    clock.feed.append(changes)
    assert clock.seconds()[1000]["ripples"] == pytest.approx(len(changes) / 2)
    anchored = clock.model.anchor()
    anchored.sequence = changes.sequence + 1
    clock.feed.append(anchored)
    clock.now = 1001.0
    assert clock.seconds()[1001]["ripples"] is None


def test_a_feed_that_has_gone_on_does_no_harm(clock: Clock) -> None:
    for i in range(200):
        clock.feed.append(clock.model.partial_fit([(f"n{i}", i % 60)]))
    assert clock.seconds()[1000]["ripples"] is None
    clock.feed.append(clock.model.partial_fit([("last", 3)]))
    assert clock.seconds()[1000]["ripples"] is not None


def test_drift_is_measured_once_per_second(clock: Clock) -> None:
    assert clock.seconds()[1000]["drift"] == 0
    clock.model.partial_fit([(f"n{i}", i) for i in range(40)])
    assert clock.seconds()[1000]["drift"] == 0
    clock.now = 1001.0
    assert clock.seconds()[1001]["drift"] > 0
    assert clock.pulse.read()["since_anchor"] is False


def test_what_is_older_than_two_minutes_is_forgotten(clock: Clock) -> None:
    clock.batch(1000.5)
    clock.batch(1060.5)
    clock.now = 1000.5 + SECONDS
    assert min(clock.seconds()) == 1060
