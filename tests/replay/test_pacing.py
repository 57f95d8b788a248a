"""Pacing by a clock that the test holds: nothing goes out early, nothing drifts, lateness is caught up and reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Batch, ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.rebatch import concatenate
from ripplevec.replay.pacing import TICK, Beat, Report, at_rate, at_speed, in_time, play


class Clock:
    """Time that passes only while somebody sleeps or sends."""

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

    def play(self, beats: object) -> Report:
        return play(beats, self.send, clock=self, sleep=self.sleep)


def edges(count: int, times: object = None) -> Batch:
    return Batch.of(np.arange(count), np.arange(count) + 1, time=times)


def test_a_rate_is_kept_to_the_event() -> None:
    clock = Clock()
    report = clock.play(at_rate([edges(101)], 20.0, 1000))
    assert (report.events, report.batches) == (101, 101)
    assert report.seconds == pytest.approx(5.0)
    assert report.rate == pytest.approx(20.2)
    assert [moment for moment, _ in clock.sent] == pytest.approx([i / 20 for i in range(101)])
    assert report.behind < 1e-9


def test_a_high_rate_goes_out_in_beats() -> None:
    beats = list(at_rate([edges(3000), edges(2000)], 10_000, 1000))
    assert {len(beat.batch) for beat in beats} == {round(10_000 * TICK)}
    assert beats[-1].due == pytest.approx(4999 / 10_000)
    assert ids_to_list(concatenate([beat.batch for beat in beats]).src) == [*range(3000), *range(2000)]
    assert max(len(beat.batch) for beat in at_rate([edges(5000)], 10_000, 64)) == 64


def test_sleeping_too_long_does_not_add_up() -> None:
    clock = Clock(slack=0.004)
    report = clock.play(at_rate([edges(1001)], 100, 1000))
    assert report.seconds == pytest.approx(10.0, abs=0.06)
    assert report.behind <= 0.004 + 1e-9


def test_time_spent_sending_is_not_waited_for_again() -> None:
    clock = Clock(sending=0.03)
    report = clock.play(at_rate([edges(21)], 10, 1000))
    assert [moment for moment, _ in clock.sent] == pytest.approx([i / 10 for i in range(21)])
    assert report.behind < 1e-9


def test_a_slow_target_is_fed_as_fast_as_it_takes_and_the_report_says_so() -> None:
    clock = Clock(sending=0.2)
    report = clock.play(at_rate([edges(11)], 10, 1000))
    assert report.rate == pytest.approx(5.0)
    assert report.behind == report.behind_now == pytest.approx(1.0)


def test_what_was_late_is_caught_up() -> None:
    clock = Clock()
    beats = [Beat(0.0, edges(1)), Beat(0.1, edges(1)), Beat(0.2, edges(1)), Beat(2.0, edges(1))]
    original, clock.send = clock.send, lambda batch: slow_once(batch)

    def slow_once(batch: Batch) -> None:
        original(batch)
        clock.now += 1.0 if len(clock.sent) == 1 else 0.0

    report = play(beats, slow_once, clock=clock, sleep=clock.sleep)
    assert [moment for moment, _ in clock.sent] == pytest.approx([0.0, 1.0, 1.0, 2.0])
    assert report.behind == pytest.approx(0.9)
    assert report.behind_now == pytest.approx(0.0)


def test_times_are_kept_at_a_multiple_of_their_speed() -> None:
    clock = Clock()
    clock.play(at_speed(edges(4, [100.0, 101.0, 104.0, 110.0]), 2.0, 1000))
    assert [moment for moment, _ in clock.sent] == pytest.approx([0.0, 0.5, 2.0, 5.0])


@given(st.lists(st.floats(0, 50), min_size=1, max_size=80), st.floats(0.1, 50), st.integers(1, 7))
def test_no_event_goes_out_before_its_time_nor_much_after_it(times: list[float], speed: float, most: int) -> None:
    ordered = in_time(edges(len(times), times))
    assert ordered.time is not None
    due = (ordered.time - ordered.time[0]) / speed
    beats = list(at_speed(ordered, speed, most))
    went = np.repeat([beat.due for beat in beats], [len(beat.batch) for beat in beats])
    assert ids_to_list(concatenate([beat.batch for beat in beats]).src) == ids_to_list(ordered.src)
    assert (went >= due - 1e-9).all()
    assert (went <= due + TICK + 1e-9).all()
    assert (np.diff([beat.due for beat in beats]) >= 0).all()
    assert max(len(beat.batch) for beat in beats) <= most


def test_events_are_put_in_order_of_time_and_those_of_one_moment_stay() -> None:
    assert ids_to_list(in_time(edges(5, [3.0, 1.0, 2.0, 1.0, 3.0])).src) == [1, 3, 2, 0, 4]


@pytest.mark.parametrize("times", [None, [1.0, np.nan, 2.0]])
def test_events_without_times_need_a_rate(times: object) -> None:
    with pytest.raises(FormatError, match="--rate"):
        in_time(edges(3, times))
    with pytest.raises(FormatError, match="--rate"):
        list(at_speed(edges(3, times), 1.0, 10))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_pace_is_a_positive_number(value: float) -> None:
    with pytest.raises(InvalidValueError, match="rate"):
        list(at_rate([edges(3)], value, 10))
    with pytest.raises(InvalidValueError, match="speed"):
        list(at_speed(edges(3, [1, 2, 3]), value, 10))


def test_nothing_takes_no_time() -> None:
    report = Clock().play(at_rate([], 10, 10))
    assert (report.events, report.rate) == (0, 0.0)
    assert list(at_speed(edges(0), 1.0, 10)) == []


def test_an_interruption_ends_it_with_a_true_report() -> None:
    clock = Clock(sending=0.1)

    def send(batch: Batch) -> None:
        if len(clock.sent) == 3:
            raise KeyboardInterrupt
        clock.send(batch)

    report = play(at_rate([edges(10)], 10, 10), send, clock=clock, sleep=clock.sleep)
    assert report.interrupted
    assert report.events == 3
    assert report.summary()["rate"] == pytest.approx(report.rate)


def test_every_beat_is_told() -> None:
    clock, told = Clock(), []
    play(
        at_rate([edges(5)], 10, 10),
        clock.send,
        lambda report: told.append(report.events),
        clock=clock,
        sleep=clock.sleep,
    )
    assert told == [1, 2, 3, 4, 5]
