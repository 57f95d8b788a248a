"""When events go out: beats with the moment each is due, and a player that keeps to it without drifting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from time import monotonic
from time import sleep as pause
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, select
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.rebatch import cut, part, regroup

TICK = 0.05
"""Seconds of a stream that go out together: shorter than an eye can tell."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Events that go out together, and when: seconds after the beginning."""

    due: float
    batch: Batch


@dataclass(slots=True)
class Report:
    """How a replay went; `behind` is how late the latest beat went out, `behind_now` the last one."""

    events: int = 0
    batches: int = 0
    seconds: float = 0.0
    behind: float = 0.0
    behind_now: float = 0.0
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Events per second, from the beginning to the end of the last beat."""
        return self.events / self.seconds if self.seconds > 0 else 0.0

    def summary(self) -> dict[str, Any]:
        """The figures, for a program."""
        return {**asdict(self), "rate": self.rate}


def at_rate(batches: Iterable[Batch], rate: float, most: int) -> Iterator[Beat]:
    """So many events per second, whatever their times; at most `most` of them together."""
    positive("rate", rate)
    size, sent = min(max(1, round(rate * TICK)), most), 0
    for batch in regroup(batches, size):
        sent += len(batch)
        yield Beat((sent - 1) / rate, batch)


def at_speed(batch: Batch, speed: float, most: int) -> Iterator[Beat]:
    """Events that are in order of time at their own times, so many times as fast; none goes out before its time."""
    positive("speed", speed)
    if not len(batch):
        return
    time = times(batch)
    due = (time - time[0]) / speed
    ends = np.flatnonzero(np.diff(np.floor(due / TICK), append=np.inf)) + 1
    first = 0
    for end in ends.tolist():
        for piece in cut(part(batch, first, end), most):
            yield Beat(float(due[end - 1]), piece)
        first = end


def in_time(batch: Batch) -> Batch:
    """The events in order of time; those of one moment stay in the order they are in."""
    return select(batch, np.argsort(times(batch), kind="stable"))


def times(batch: Batch) -> NDArray[np.float64]:
    """When the events happened, or an error where that is not known of all of them."""
    if batch.time is None or not np.isfinite(batch.time).all():
        raise FormatError("expected a time for every event, got some without; play them at a steady --rate instead")
    return batch.time


def play(
    beats: Iterable[Beat],
    send: Callable[[Batch], None],
    told: Callable[[Report], None] = lambda report: None,
    *,
    clock: Callable[[], float] = monotonic,
    sleep: Callable[[float], None] = pause,
) -> Report:
    """Send each beat when it is due. One that is late goes out at once, and the next ones catch up.

    `told` hears of every beat that is out; an interruption by the keyboard ends the replay, and the report is true.
    """
    report, began = Report(), clock()
    try:
        for beat in beats:
            wait = began + beat.due - clock()
            if wait > 0:
                sleep(wait)
            report.behind_now = max(clock() - began - beat.due, 0.0)
            report.behind = max(report.behind, report.behind_now)
            send(beat.batch)
            report.events += len(beat.batch)
            report.batches += 1
            report.seconds = clock() - began
            told(report)
    except KeyboardInterrupt:
        report.seconds, report.interrupted = clock() - began, True
    return report


def positive(name: str, value: float) -> None:
    """Refuse what is not a positive finite number."""
    if not 0 < value < np.inf:
        raise InvalidValueError.of(name, "a positive number", value)
