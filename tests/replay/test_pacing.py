"""Pacing with a simulated clock: nothing is sent early, nothing drifts, delays are caught up and reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Batch, ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.rebatch import concatenate
from ripplevec.replay.pacing import (
    TICK,
    Report,
    ScheduledBatch,
    play,
    schedule_at_rate,
    schedule_at_speed,
    sort_by_time,
)


class Clock:
    """Simulated time: it advances only in `sleep` and `send`."""

    def __init__(self, sending: float = 0.0, slack: float = 0.0) -> None:
        self.now, self.sending, self.slack = 50.0, sending, slack
        self.sent: list[tuple[float, Batch]] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds + self.slack

    def send(self, batch: Batch) -> None:
        self.sent.append((self.now - 50.0, batch))
        self.now += self.sending

    def play(self, schedule: object) -> Report:
        return play(schedule, self.send, clock=self, sleep=self.sleep)


def edges(count: int, times: object = None) -> Batch:
    return Batch.of(np.arange(count), np.arange(count) + 1, time=times)


def test_schedule_at_rate_is_exact_per_event() -> None:
    clock = Clock()
    report = clock.play(schedule_at_rate([edges(101)], 20.0, 1000))
    assert (report.events, report.batches) == (101, 101)
    assert report.seconds == pytest.approx(5.0)
    assert report.rate == pytest.approx(20.2)
    assert [moment for moment, _ in clock.sent] == pytest.approx([i / 20 for i in range(101)])
    assert report.behind < 1e-9


def test_schedule_at_high_rate_groups_events_by_slot() -> None:
    schedule = list(schedule_at_rate([edges(3000), edges(2000)], 10_000, 1000))
    assert {len(scheduled.batch) for scheduled in schedule} == {round(10_000 * TICK)}
    assert schedule[-1].due == pytest.approx(4999 / 10_000)
    assert ids_to_list(concatenate([scheduled.batch for scheduled in schedule]).src) == [*range(3000), *range(2000)]
    assert max(len(scheduled.batch) for scheduled in schedule_at_rate([edges(5000)], 10_000, 64)) == 64


def test_play_with_inexact_sleep_does_not_drift() -> None:
    clock = Clock(slack=0.004)
    report = clock.play(schedule_at_rate([edges(1001)], 100, 1000))
    assert report.seconds == pytest.approx(10.0, abs=0.06)
    assert report.behind <= 0.004 + 1e-9


def test_play_subtracts_the_time_spent_sending() -> None:
    clock = Clock(sending=0.03)
    report = clock.play(schedule_at_rate([edges(21)], 10, 1000))
    assert [moment for moment, _ in clock.sent] == pytest.approx([i / 10 for i in range(21)])
    assert report.behind < 1e-9


def test_play_to_a_slow_target_reports_the_delay() -> None:
    clock = Clock(sending=0.2)
    report = clock.play(schedule_at_rate([edges(11)], 10, 1000))
    assert report.rate == pytest.approx(5.0)
    assert report.behind == report.behind_now == pytest.approx(1.0)


def test_play_after_a_delay_catches_up() -> None:
    clock = Clock()
    schedule = [
        ScheduledBatch(0.0, edges(1)),
        ScheduledBatch(0.1, edges(1)),
        ScheduledBatch(0.2, edges(1)),
        ScheduledBatch(2.0, edges(1)),
    ]
    original, clock.send = clock.send, lambda batch: slow_once(batch)

    def slow_once(batch: Batch) -> None:
        original(batch)
        clock.now += 1.0 if len(clock.sent) == 1 else 0.0

    report = play(schedule, slow_once, clock=clock, sleep=clock.sleep)
    assert [moment for moment, _ in clock.sent] == pytest.approx([0.0, 1.0, 1.0, 2.0])
    assert report.behind == pytest.approx(0.9)
    assert report.behind_now == pytest.approx(0.0)


def test_schedule_at_speed_scales_the_times() -> None:
    clock = Clock()
    clock.play(schedule_at_speed(edges(4, [100.0, 101.0, 104.0, 110.0]), 2.0, 1000))
    assert [moment for moment, _ in clock.sent] == pytest.approx([0.0, 0.5, 2.0, 5.0])


@given(st.lists(st.floats(0, 50), min_size=1, max_size=80), st.floats(0.1, 50), st.integers(1, 7))
def test_schedule_at_speed_sends_no_event_early_or_later_than_a_slot(
    times: list[float], speed: float, max_batch: int
) -> None:
    ordered = sort_by_time(edges(len(times), times))
    assert ordered.time is not None
    due = (ordered.time - ordered.time[0]) / speed
    schedule = list(schedule_at_speed(ordered, speed, max_batch))
    went = np.repeat([scheduled.due for scheduled in schedule], [len(scheduled.batch) for scheduled in schedule])
    assert ids_to_list(concatenate([scheduled.batch for scheduled in schedule]).src) == ids_to_list(ordered.src)
    assert (went >= due - 1e-9).all()
    assert (went <= due + TICK + 1e-9).all()
    assert (np.diff([scheduled.due for scheduled in schedule]) >= 0).all()
    assert max(len(scheduled.batch) for scheduled in schedule) <= max_batch


def test_sort_by_time_is_stable() -> None:
    assert ids_to_list(sort_by_time(edges(5, [3.0, 1.0, 2.0, 1.0, 3.0])).src) == [1, 3, 2, 0, 4]


@pytest.mark.parametrize("times", [None, [1.0, np.nan, 2.0]])
def test_events_without_times_at_a_speed_are_refused(times: object) -> None:
    with pytest.raises(FormatError, match="--rate"):
        sort_by_time(edges(3, times))
    with pytest.raises(FormatError, match="--rate"):
        list(schedule_at_speed(edges(3, times), 1.0, 10))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_rate_or_speed_that_is_not_positive_is_refused(value: float) -> None:
    with pytest.raises(InvalidValueError, match="rate"):
        list(schedule_at_rate([edges(3)], value, 10))
    with pytest.raises(InvalidValueError, match="speed"):
        list(schedule_at_speed(edges(3, [1, 2, 3]), value, 10))


def test_empty_stream_gives_an_empty_report() -> None:
    report = Clock().play(schedule_at_rate([], 10, 10))
    assert (report.events, report.rate) == (0, 0.0)
    assert list(schedule_at_speed(edges(0), 1.0, 10)) == []


def test_interrupt_ends_the_replay_with_a_report_of_what_was_sent() -> None:
    clock = Clock(sending=0.1)

    def send(batch: Batch) -> None:
        if len(clock.sent) == 3:
            raise KeyboardInterrupt
        clock.send(batch)

    report = play(schedule_at_rate([edges(10)], 10, 10), send, clock=clock, sleep=clock.sleep)
    assert report.interrupted
    assert report.events == 3
    assert report.summary()["rate"] == pytest.approx(report.rate)


def test_play_reports_after_every_batch() -> None:
    clock, counts = Clock(), []
    play(
        schedule_at_rate([edges(5)], 10, 10),
        clock.send,
        lambda report: counts.append(report.events),
        clock=clock,
        sleep=clock.sleep,
    )
    assert counts == [1, 2, 3, 4, 5]
