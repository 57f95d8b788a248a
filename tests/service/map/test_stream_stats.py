"""Statistics of the last two minutes, and the drift of vectors since the last anchor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ripplevec.embedder import Embedder
from ripplevec.service.map.projection import normalize
from ripplevec.service.map.stream_stats import SECONDS, Drift, StreamStats
from ripplevec.service.metrics import AppliedBatch


class Clock:
    """A model with statistics whose time is set by the test."""

    def __init__(self, anchor_growth: float = 0) -> None:
        self.now = 1000.0
        self.batches: list[AppliedBatch] = []
        self.model = Embedder(dim=8, threads=1, anchor_growth=anchor_growth)
        self.model.fit([(i, (i + step) % 60) for i in range(60) for step in (1, 2, 5)])
        self.stats = StreamStats(self.model, lambda: self.batches, clock=lambda: self.now)

    def add_batch(self, time: float, arrivals: int = 1, latency: float = 0.002) -> None:
        self.batches.append((time, 5 * arrivals, arrivals, 3, latency))

    def seconds(self) -> dict[int, dict[str, object]]:
        return {second["second"]: second for second in self.stats.read()["seconds"]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_stats_count_batches_in_their_second(clock: Clock) -> None:
    clock.add_batch(1000.1, 2)
    clock.add_batch(1000.9, 3)
    clock.add_batch(1002.5, 7)
    clock.now = 1003.2
    seconds = clock.seconds()
    assert (seconds[1000]["batches"], seconds[1000]["arrivals"], seconds[1000]["events"]) == (2, 5, 25)
    assert seconds[1002]["arrivals"] == 7
    assert clock.stats.read()["now"] == 1003


def test_stats_read_repeatedly_count_a_batch_once(clock: Clock) -> None:
    clock.add_batch(1000.1)
    clock.seconds()
    clock.add_batch(1000.2)
    assert clock.seconds()[1000]["batches"] == 2
    assert clock.seconds()[1000]["batches"] == 2


def test_stats_latency_excludes_batches_of_a_source(clock: Clock) -> None:
    for milliseconds in range(1, 101):
        clock.add_batch(1000.0 + milliseconds / 1000, latency=milliseconds / 1000)
    clock.add_batch(1000.9, latency=math.nan)  # from a source: no request waited for it
    clock.add_batch(1001.9, latency=math.nan)
    seconds = clock.seconds()
    assert seconds[1000]["p50"] == pytest.approx(50.5)
    assert seconds[1000]["p99"] == pytest.approx(99.01)
    assert seconds[1001]["p50"] is None


def test_stats_changes_per_arrival_exclude_anchors(clock: Clock) -> None:
    clock.seconds()
    changes = clock.model.partial_fit([("a", 3), ("a", 4), ("b", 9)])
    assert clock.seconds()[1000]["ripples"] == pytest.approx(len(changes) / 2)
    assert len(clock.model.anchor()) > 0
    clock.now = 1001.0
    assert clock.seconds()[1001]["ripples"] is None


def test_stats_changes_per_arrival_exclude_gradual_anchors() -> None:
    clock = Clock(anchor_growth=0.05)
    clock.seconds()
    total = sum(len(clock.model.partial_fit([(f"n{i}", i % 60), (f"n{i}", i % 7)])) for i in range(200))
    assert clock.model.engine.anchors > 1
    assert 1 < clock.seconds()[1000]["ripples"] < total / 200


def test_stats_measure_drift_once_per_second(clock: Clock) -> None:
    assert clock.seconds()[1000]["drift"] == 0
    clock.model.partial_fit([(f"n{i}", i) for i in range(40)])
    assert clock.seconds()[1000]["drift"] == 0
    clock.now = 1001.0
    assert clock.seconds()[1001]["drift"] > 0
    assert clock.stats.read()["since_anchor"] is False


def test_stats_older_than_two_minutes_are_dropped(clock: Clock) -> None:
    clock.add_batch(1000.5)
    clock.add_batch(1060.5)
    clock.now = 1000.5 + SECONDS
    assert min(clock.seconds()) == 1060


def make_model() -> Embedder:
    edges = [(i, (i + step) % 80) for i in range(80) for step in (1, 2, 5)]
    return Embedder(dim=8, threads=1, anchor_growth=0).fit(edges)


def test_drift_of_unchanged_model_is_zero() -> None:
    drift = Drift(make_model())
    assert drift.measure() == 0
    assert not drift.since_anchor


def test_drift_is_the_mean_angle_of_vertices_in_the_reference() -> None:
    model = make_model()
    drift = Drift(model)
    drift.measure()
    before = normalize(model.vectors(range(80)))
    model.partial_fit([(f"n{i}", i) for i in range(40)])
    cosines = (before * normalize(model.vectors(range(80)))).sum(axis=1)
    angle = np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()
    assert angle > 0.01
    np.testing.assert_allclose(drift.measure(), angle, atol=1e-4)


def test_drift_after_an_anchor_restarts_at_zero() -> None:
    model = make_model()
    drift = Drift(model)
    drift.measure()
    model.partial_fit([(f"n{i}", i) for i in range(40)])
    assert drift.measure() > 0
    model.anchor()
    assert drift.measure() == 0
    assert drift.since_anchor


def test_drift_after_removal_of_all_vertices_is_none() -> None:
    model = make_model()
    drift = Drift(model)
    drift.measure()
    for vertex in range(80):
        model.remove_vertex(vertex)
    assert drift.measure() is None


def test_drift_of_empty_model_is_none() -> None:
    assert Drift(Embedder(dim=4, threads=1)).measure() is None
