"""Pacing: schedule events in time slots, and send each slot when it is due, without drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from time import monotonic
from time import sleep as pause
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, select_rows
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.rebatch import rebatch, slice_batch, split_batch

TICK = 0.05
"""Length of a time slot in seconds: events of one slot are sent together. Too short to be visible on the live map."""


@dataclass(frozen=True, slots=True)
class ScheduledBatch:
    """Events that are sent together, `due` seconds after the replay begins."""

    due: float
    batch: Batch


@dataclass(slots=True)
class Report:
    """Statistics of a replay: `behind` is the largest delay in seconds, `behind_now` the delay of the last batch."""

    events: int = 0
    batches: int = 0
    seconds: float = 0.0
    behind: float = 0.0
    behind_now: float = 0.0
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Events per second, from the beginning until the last batch was sent."""
        return self.events / self.seconds if self.seconds > 0 else 0.0

    def summary(self) -> dict[str, Any]:
        """Return the statistics as a dictionary."""
        return {**asdict(self), "rate": self.rate}


def schedule_at_rate(batches: Iterable[Batch], rate: float, max_batch: int) -> Iterator[ScheduledBatch]:
    """Schedule `rate` events per second, regardless of their times, in batches of at most `max_batch`."""
    check_positive("rate", rate)
    size, sent = min(max(1, round(rate * TICK)), max_batch), 0
    for batch in rebatch(batches, size):
        sent += len(batch)
        yield ScheduledBatch((sent - 1) / rate, batch)


def schedule_at_speed(batch: Batch, speed: float, max_batch: int) -> Iterator[ScheduledBatch]:
    """Schedule events that are sorted by time at `speed` times their original pace; none is sent early."""
    check_positive("speed", speed)
    if not len(batch):
        return
    time = event_times(batch)
    due = (time - time[0]) / speed
    ends = np.flatnonzero(np.diff(np.floor(due / TICK), append=np.inf)) + 1
    begin = 0
    for end in ends.tolist():
        for piece in split_batch(slice_batch(batch, begin, end), max_batch):
            yield ScheduledBatch(float(due[end - 1]), piece)
        begin = end


def sort_by_time(batch: Batch) -> Batch:
    """Return the events sorted by time; events of the same time keep their order."""
    return select_rows(batch, np.argsort(event_times(batch), kind="stable"))


def event_times(batch: Batch) -> NDArray[np.float64]:
    """Return the times of the events; raise an error if some have none."""
    if batch.time is None or not np.isfinite(batch.time).all():
        advice = "Replay at a constant --rate instead."
        raise FormatError(f"time: expected a time for every event, got events without one. {advice}")
    return batch.time


def play(
    schedule: Iterable[ScheduledBatch],
    send: Callable[[Batch], None],
    on_sent: Callable[[Report], None] = lambda report: None,
    *,
    clock: Callable[[], float] = monotonic,
    sleep: Callable[[float], None] = pause,
) -> Report:
    """Send each batch when it is due. A late batch is sent immediately, and the following ones catch up.

    `on_sent` is called after every batch. A keyboard interrupt ends the replay, and the report covers what was sent.
    """
    report, began = Report(), clock()
    try:
        for scheduled in schedule:
            wait = began + scheduled.due - clock()
            if wait > 0:
                sleep(wait)
            report.behind_now = max(clock() - began - scheduled.due, 0.0)
            report.behind = max(report.behind, report.behind_now)
            send(scheduled.batch)
            report.events += len(scheduled.batch)
            report.batches += 1
            report.seconds = clock() - began
            on_sent(report)
    except KeyboardInterrupt:
        report.seconds, report.interrupted = clock() - began, True
    return report


def check_positive(name: str, value: float) -> None:
    """Raise an error unless the value is a positive finite number."""
    if not 0 < value < np.inf:
        raise InvalidValueError.of(name, "a positive number", value)
