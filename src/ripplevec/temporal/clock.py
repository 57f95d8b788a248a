"""The time of events. It passes when an event says so, and never by itself: a replay sees the same time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


class EventClock:
    """The latest time that an event had. Inside, times are counted from the first one that was seen.

    What came before any time was known has happened at that first one.
    """

    def __init__(self, first: float = np.nan, latest: float = np.nan) -> None:
        self.first, self.latest = first, latest

    @property
    def now(self) -> float:
        """How long it is since the first time that was seen."""
        return 0.0 if np.isnan(self.latest) else self.latest - self.first

    def state(self) -> Times:
        """The first time seen and the latest; nothing where there was none."""
        return np.array([] if np.isnan(self.first) else [self.first, self.latest])

    def now_after(self, time: Times | None) -> float:
        """What `now` will be once these times have been read."""
        if time is None or np.isnan(time).all():
            return self.now
        first = time[np.flatnonzero(~np.isnan(time))[0]] if np.isnan(self.first) else self.first
        return float(np.fmax(np.nanmax(time), self.latest) - first)

    def advance(self, time: Times | None, events: int) -> Times:
        """When events happened, counted from the first time seen; one that does not say, with the latest before it."""
        if time is None or np.isnan(time).all():
            return np.full(events, self.now)
        if np.isnan(self.first):
            self.first = self.latest = float(time[np.flatnonzero(~np.isnan(time))[0]])
        latest = np.fmax.accumulate(np.fmax(time, self.latest))
        self.latest = float(latest[-1])
        return np.where(np.isnan(time), latest, time) - self.first
