"""Event clock: relative times, events without a timestamp, and late events."""

from __future__ import annotations

import numpy as np

from ripplevec.temporal.clock import EventClock

NONE = np.nan


def test_advance_times_are_relative_to_the_first_timestamp() -> None:
    clock = EventClock()
    assert clock.advance(None, 2).tolist() == [0.0, 0.0]
    assert clock.now == 0.0
    assert clock.advance(np.array([NONE, 100.0, 90.0, NONE, 130.0, NONE]), 6).tolist() == [0, 0, -10, 0, 30, 30]
    assert (clock.now, clock.latest) == (30.0, 130.0)


def test_advance_late_event_does_not_set_clock_back() -> None:
    clock = EventClock(100.0, 130.0)
    assert clock.advance(np.array([50.0, NONE]), 2).tolist() == [-50.0, 30.0]
    assert clock.advance(None, 1).tolist() == [30.0]
    assert clock.latest == 130.0


def test_advance_without_events_returns_no_times() -> None:
    assert EventClock().advance(np.empty(0), 0).size == 0
    assert EventClock(1.0, 2.0).advance(None, 0).size == 0
