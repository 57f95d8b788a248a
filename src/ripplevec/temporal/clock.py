"""Event clock: time advances only with the timestamps of events, so a replay sees the same time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
"""Event times; NaN where an event has no timestamp."""


class EventClock:
    """The latest event time. Internally, times are relative to the first timestamp ever seen.

    Events without a timestamp that arrive before the first timestamp have the time of that timestamp.
    """

    def __init__(self, first: float = np.nan, latest: float = np.nan) -> None:
        self.first, self.latest = first, latest

    @property
    def now(self) -> float:
        """Time since the first timestamp."""
        return 0.0 if np.isnan(self.latest) else self.latest - self.first

    def state(self) -> Times:
        """Return the first and the latest timestamp; an empty array if there was none."""
        return np.array([] if np.isnan(self.first) else [self.first, self.latest])

    def now_after(self, time: Times | None) -> float:
        """Return the value that `now` will have after these timestamps (NaN: no timestamp)."""
        if time is None or np.isnan(time).all():
            return self.now
        first = time[np.flatnonzero(~np.isnan(time))[0]] if np.isnan(self.first) else self.first
        return float(np.fmax(np.nanmax(time), self.latest) - first)

    def advance(self, time: Times | None, events: int) -> Times:
        """Advance to the latest of these timestamps; return the relative time of each event.

        An event without a timestamp (NaN) has the latest time before it.
        """
        if time is None or np.isnan(time).all():
            return np.full(events, self.now)
        if np.isnan(self.first):
            self.first = self.latest = float(time[np.flatnonzero(~np.isnan(time))[0]])
        latest = np.fmax.accumulate(np.fmax(time, self.latest))
        self.latest = float(latest[-1])
        return np.where(np.isnan(time), latest, time) - self.first
