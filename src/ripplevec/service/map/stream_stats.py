"""Statistics of the stream per second (arrivals, changes, write latency) and the drift of vectors since an anchor."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.service.map.map_state import read_vertices, sample_vertices
from ripplevec.service.map.projection import normalize
from ripplevec.service.metrics import AppliedBatch

SECONDS = 120
"""Length of the history in seconds."""

DRIFT_SAMPLE = 1000
"""Approximate number of vertices whose drift is measured."""


class Drift:
    """Mean rotation of sampled vectors since the last anchor, or since the first measurement before any anchor."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._reference = sample_vertices(model, 0.0)
        self._anchors = -1
        self.since_anchor = False

    def measure(self) -> float | None:
        """Return the mean angle in degrees between current and reference vectors; None if there are none in common."""
        anchors = self._model.engine.announced_anchors
        if anchors != self._anchors:
            self.since_anchor = self._anchors >= 0
            self._anchors = anchors
            self._reference = sample_vertices(self._model, DRIFT_SAMPLE / max(len(self._model), 1))
        current = read_vertices(self._model, self._reference.ids)
        _, before, after = np.intersect1d(
            self._reference.arrival, current.arrival, assume_unique=True, return_indices=True
        )
        if not before.size:
            return None
        cosines = (normalize(self._reference.vectors[before]) * normalize(current.vectors[after])).sum(axis=1)
        return round(float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()), 4)


@dataclass(slots=True)
class SecondStats:
    """Counts of one second."""

    number: int
    batches: int = 0
    events: int = 0
    arrivals: int = 0
    placed: int = 0  # vertices that arrived, counted when the statistics are read
    changes: int = 0  # vectors that batches changed, not anchors, which move nearly all; counted at the same time
    drift: float | None = None
    latencies: list[float] = field(default_factory=list)

    def add_batch(self, batch: AppliedBatch) -> None:
        """Add a batch."""
        _, events, arrivals, _, seconds = batch
        self.batches += 1
        self.events += events
        self.arrivals += arrivals
        if not math.isnan(seconds):
            self.latencies.append(seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, the changes per arrival, and latency percentiles in milliseconds."""
        latencies = self.latencies
        p50, p99 = (np.percentile(latencies, [50, 99]) * 1e3).round(3).tolist() if latencies else (None, None)
        ripples = round(self.changes / self.placed, 3) if self.placed else None
        counts = {name: getattr(self, name) for name in ("batches", "events", "arrivals", "drift")}
        return {"second": self.number, **counts, "ripples": ripples, "p50": p50, "p99": p99}


class StreamStats:
    """Statistics of the last two minutes, one row per second with activity.

    `recent_batches` returns the latest batches in order; each is counted once.
    """

    def __init__(
        self,
        model: Embedder,
        recent_batches: Callable[[], Iterable[AppliedBatch]],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._model, self._recent_batches, self._clock, self._drift = model, recent_batches, clock, Drift(model)
        self._counted = self._read_counters()
        self._lock = threading.Lock()
        self._counted_until = -np.inf
        self._seconds: deque[SecondStats] = deque(maxlen=SECONDS)

    def read(self) -> dict[str, Any]:
        """Return the last two minutes and the number of the current second, which is not complete yet."""
        with self._lock:
            self._count_batches()
            current = self._second_at(self._clock())
            self._count_changes(current)
            if current.drift is None:
                current.drift = self._drift.measure()
            rows = [second.to_dict() for second in self._seconds if second.number > current.number - SECONDS]
            return {"now": current.number, "seconds": rows, "since_anchor": self._drift.since_anchor}

    def _count_batches(self) -> None:
        new = [batch for batch in self._recent_batches() if batch[0] > self._counted_until]
        for batch in new:
            self._second_at(batch[0]).add_batch(batch)
        if new:
            self._counted_until = new[-1][0]

    def _count_changes(self, current: SecondStats) -> None:
        """Count arrivals and changed vectors since the last call."""
        counters = self._read_counters()
        arrivals, changes = (new - old for new, old in zip(counters, self._counted, strict=True))
        current.placed += arrivals
        current.changes += changes
        self._counted = counters

    def _read_counters(self) -> tuple[int, int]:
        return self._model.engine.next_arrival, self._model.engine.changes

    def _second_at(self, time: float) -> SecondStats:
        number = int(time)
        if not self._seconds or self._seconds[-1].number < number:
            self._seconds.append(SecondStats(number))
        return self._seconds[-1]
