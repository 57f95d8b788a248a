"""How the stream goes, second by second: arrivals, changes, how long writing took, and the drift."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.service.map.drift import Drift
from ripplevec.service.map.map_state import MAX_BATCHES, ChangeLog
from ripplevec.service.responses import RejectedRequest

SECONDS = 120
"""How far back it goes."""

AppliedBatch: TypeAlias = tuple[float, int, int, int, float]
"""A batch: when it was applied, its events, arrivals and changes, and the seconds its sender waited (NaN: nobody)."""


@dataclass(slots=True)
class SecondStats:
    """What happened in one second."""

    number: int
    batches: int = 0
    events: int = 0
    arrivals: int = 0
    newcomers: int = 0  # of the batches without an anchor, which moves nearly everybody
    ripples: int = 0  # and what these batches changed
    drift: float | None = None
    times: list[float] = field(default_factory=list)

    def count(self, batch: AppliedBatch) -> None:
        """Add a batch."""
        _, events, arrivals, _, seconds = batch
        self.batches += 1
        self.events += events
        self.arrivals += arrivals
        if seconds == seconds:
            self.times.append(seconds)

    def model_stats(self) -> dict[str, Any]:
        """Its counts, the changes per arrival, and percentiles of its times in milliseconds."""
        p50, p99 = (np.percentile(self.times, [50, 99]) * 1e3).round(3).tolist() if self.times else (None, None)
        ripples = round(self.ripples / self.newcomers, 3) if self.newcomers else None
        counts = {name: getattr(self, name) for name in ("batches", "events", "arrivals", "drift")}
        return {"second": self.number, **counts, "ripples": ripples, "p50": p50, "p99": p99}


class StreamStats:
    """Counts of the last two minutes, a row per second in which something happened.

    `batches` gives the latest batches in order; those of every second that is looked at are counted once.
    """

    def __init__(
        self,
        model: Embedder,
        feed: ChangeLog,
        batches: Callable[[], Iterable[AppliedBatch]],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._feed, self._batches, self._clock, self._drift = feed, batches, clock, Drift(model)
        self._since = feed.newest
        self._reading = threading.Lock()
        self._counted = -np.inf
        self._seconds: deque[SecondStats] = deque(maxlen=SECONDS)

    def read(self) -> dict[str, Any]:
        """The last two minutes, and which second it is now (that one is not over yet)."""
        with self._reading:
            self._count()
            now = self._at(self._clock())
            self._follow(now)
            if now.drift is None:
                now.drift = self._drift.measure()
            kept = [second.model_stats() for second in self._seconds if second.number > now.number - SECONDS]
            return {"now": now.number, "seconds": kept, "since_anchor": self._drift.since_anchor}

    def _count(self) -> None:
        fresh = [batch for batch in self._batches() if batch[0] > self._counted]
        for batch in fresh:
            self._at(batch[0]).count(batch)
        if fresh:
            self._counted = fresh[-1][0]

    def _follow(self, now: SecondStats) -> None:
        """Count what batches have changed; it counts for the second in which it is heard of."""
        try:
            told = self._feed.after(self._since, MAX_BATCHES)
        except RejectedRequest:
            self._since = self._feed.newest
            return
        for changes in told:
            if not changes.anchored:
                now.newcomers += int(np.count_nonzero(changes.arrived))
                now.ripples += len(changes)
            self._since = changes.sequence

    def _at(self, moment: float) -> SecondStats:
        number = int(moment)
        if not self._seconds or self._seconds[-1].number < number:
            self._seconds.append(SecondStats(number))
        return self._seconds[-1]
