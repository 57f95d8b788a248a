"""What the service counts, for Prometheus and for its own statistics."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ripplevec.changes import Changes

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_RECENT = 60.0
_log = logging.getLogger("ripplevec.service")


class Metrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"ripplevec_{name}", help, labels, registry=registry)

        def histogram(name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"ripplevec_{name}", help, labels, buckets=buckets, registry=registry)

        self.requests = counter("requests", "Requests answered.", "method", "route", "status")
        self.seconds = histogram("request_seconds", "From request to answer.", SECONDS, "method", "route")
        self.batches = counter("batches", "Batches put on disk and applied.")
        self.events = counter("events", "Edges and other events in them.")
        self.arrivals = counter("arrivals", "Vertices that arrived.")
        self.changes = counter("changes", "Vectors that moved.")
        self.removals = counter("removals", "Vertices that were removed.")
        self.anchors = counter("anchors", "Global corrections.")
        self.refused_batches = counter("refused_batches", "Batches that could not be applied as they were.")
        self.failed_batches = counter("failed_batches", "Batches that could not be put on disk.")
        self.write_seconds = histogram("write_seconds", "From the queue until a batch is on disk and applied.", SECONDS)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
        self.group = histogram("group_batches", "Batches put on disk with one flush.", sizes)
        self._recent: deque[tuple[float, int, int, int, float]] = deque(maxlen=8192)

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:
        """A figure that is asked for when somebody looks; NaN where it cannot be had, and the others are shown."""

        def known() -> float:
            try:
                return value()
            except Exception as error:
                _log.warning("metric failed", extra={"fields": {"metric": name, "reason": str(error)}})
                return math.nan

        Gauge(f"ripplevec_{name}", help, registry=self.registry).set_function(known)

    def applied(self, events: int, changes: Changes, seconds: float | None) -> None:
        """Count a batch; how long it took from the queue, if it came that way."""
        arrived = int(changes.arrived.sum())
        self.batches.inc()
        self.events.inc(events)
        self.arrivals.inc(arrived)
        self.changes.inc(len(changes))
        self.removals.inc(len(changes.removed))
        self.anchors.inc(int(changes.anchored))
        if seconds is not None:
            self.write_seconds.observe(seconds)
        self._recent.append((time.monotonic(), events, arrived, len(changes), np.nan if seconds is None else seconds))

    def failed(self, batches: int) -> None:
        """Count batches that could not be put on disk."""
        self.failed_batches.inc(batches)

    def latest(self) -> list[tuple[float, int, int, int, float]]:
        """The last batches: when, events, arrivals, changes, and the seconds from the queue (NaN: not from there)."""
        return list(self._recent)

    def recent(self) -> dict[str, Any]:
        """Rates and latencies of the last minute, or of as much of it as is remembered."""
        now = time.monotonic()
        rows = np.array([row for row in self.latest() if now - row[0] <= _RECENT], np.float64).reshape(-1, 5)
        if not len(rows):
            return {"seconds": 0.0, "batches": 0, "events": 0, "arrivals": 0, "changes": 0, "p50": None, "p99": None}
        taken = rows[~np.isnan(rows[:, 4]), 4]
        p50, p99 = np.percentile(taken, [50, 99]).tolist() if taken.size else (None, None)
        events, arrivals, changes = rows[:, 1:4].sum(axis=0).astype(int).tolist()
        return {
            "seconds": float(now - rows[0, 0]),
            "batches": len(rows),
            "events": events,
            "arrivals": arrivals,
            "changes": changes,
            "p50": p50,
            "p99": p99,
        }

    def text(self) -> bytes:
        """Everything as Prometheus reads it."""
        return generate_latest(self.registry)
