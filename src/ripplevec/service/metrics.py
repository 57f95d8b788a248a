"""Metrics of the service: Prometheus counters, histograms and gauges, and rates of the last minute."""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ripplevec.changes import Changes

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
"""Upper bounds of the latency histograms in seconds."""

AppliedBatch: TypeAlias = tuple[float, int, int, int, float]
"""Time of application, events, arrivals, changes, and latency in seconds (NaN for a batch not sent by a request)."""

_GROUP_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_RECENT_SECONDS = 60.0
_log = logging.getLogger("ripplevec.service")


class Metrics:
    """Metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"ripplevec_{name}", help, labels, registry=registry)

        def histogram(name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"ripplevec_{name}", help, labels, buckets=buckets, registry=registry)

        self.requests = counter("requests", "Answered requests.", "method", "route", "status")
        self.request_seconds = histogram(
            "request_seconds", "Time from request to response.", LATENCY_BUCKETS, "method", "route"
        )
        self.batches = counter("batches", "Batches journaled and applied.")
        self.events = counter("events", "Events in applied batches.")
        self.arrivals = counter("arrivals", "Vertices that arrived.")
        self.changes = counter("changes", "Vectors that moved.")
        self.removals = counter("removals", "Vertices that were removed.")
        self.anchors = counter("anchors", "Anchors (global corrections).")
        self.refused_batches = counter("refused_batches", "Batches that could not be applied.")
        self.failed_batches = counter("failed_batches", "Batches that could not be journaled.")
        self.write_seconds = histogram(
            "write_seconds", "Time from queueing a batch until it is on disk and applied.", LATENCY_BUCKETS
        )
        self.group_batches = histogram("group_batches", "Batches journaled with one flush.", _GROUP_BUCKETS)
        self._recent: deque[AppliedBatch] = deque(maxlen=8192)
        self._anchors_before: int | None = None

    def add_gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Add a gauge whose value is read on demand; NaN if reading fails, so that other metrics are still reported."""

        def read_or_nan() -> float:
            try:
                return read()
            except Exception as error:
                _log.warning("metric failed", extra={"fields": {"metric": name, "reason": str(error)}})
                return math.nan

        Gauge(f"ripplevec_{name}", help, registry=self.registry).set_function(read_or_nan)

    def record_batch(self, events: int, changes: Changes, seconds: float | None) -> None:
        """Count an applied batch; `seconds` is its time since queueing, None if it was not queued."""
        arrived = int(changes.arrived.sum())
        self.batches.inc()
        self.events.inc(events)
        self.arrivals.inc(arrived)
        self.changes.inc(len(changes))
        self.removals.inc(len(changes.removed))
        if seconds is not None:
            self.write_seconds.observe(seconds)
        self._recent.append((time.monotonic(), events, arrived, len(changes), np.nan if seconds is None else seconds))

    def record_anchors(self, anchors: int) -> None:
        """Count the anchors since the last call, given the number of anchors that the model has had."""
        if self._anchors_before is not None:
            self.anchors.inc(max(anchors - self._anchors_before, 0))
        self._anchors_before = anchors

    def record_failed_batches(self, batches: int) -> None:
        """Count batches that could not be journaled."""
        self.failed_batches.inc(batches)

    def count_errors(self) -> dict[str, int]:
        """Return the number of batches that could not be journaled, and of unexpected errors (500), since the start."""
        return {
            "failed_batches": int(sum(total for _, total in _read_totals(self.failed_batches))),
            "failed_requests": int(
                sum(total for labels, total in _read_totals(self.requests) if labels["status"] == "500")
            ),
        }

    def recent_batches(self) -> list[AppliedBatch]:
        """Return the most recent batches in order."""
        return list(self._recent)

    def summarize_last_minute(self) -> dict[str, Any]:
        """Return totals and latency percentiles of the last minute, or of the part of it that is recorded."""
        now = time.monotonic()
        rows = np.array([row for row in self.recent_batches() if now - row[0] <= _RECENT_SECONDS], np.float64)
        rows = rows.reshape(-1, 5)
        if not len(rows):
            return {"seconds": 0.0, "batches": 0, "events": 0, "arrivals": 0, "changes": 0, "p50": None, "p99": None}
        latencies = rows[~np.isnan(rows[:, 4]), 4]
        p50, p99 = np.percentile(latencies, [50, 99]).tolist() if latencies.size else (None, None)
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

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)


def _read_totals(counter: Counter) -> Iterator[tuple[dict[str, str], float]]:
    """Yield the labels and the value of each series of a counter."""
    for metric in counter.collect():
        yield from ((sample.labels, sample.value) for sample in metric.samples if sample.name.endswith("_total"))


def resident_bytes() -> int | None:
    """Return the memory of this process; None where the system has no `/proc`."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
