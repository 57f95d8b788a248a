"""Memory of a service whose graph keeps its size: it must not depend on the number of batches and requests."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ripplevec.batch import Batch, Op
from ripplevec.durability.journal_schema import encode_batch
from ripplevec.service import change_feed
from ripplevec.service.map import stream_stats
from ripplevec.service.settings import Limits

VERTICES, PER_BATCH = 120, 4
RETAINED = 8  # batches in the change feed
WARM_UP, MEASURED = 100, 150  # batches
PERIODS = 3  # a leak grows in each of them; other threads of the process and work in the background, only in some
ALLOWED_OBJECTS = 100
ALLOWED_BYTES = 60_000
"""A leak of one object, or of 400 bytes, per batch exceeds these; caches of bounded size fill before."""


def send_batch(service: Any, number: int) -> None:
    """Add vertices and remove as many of the oldest ones; then read in every way."""
    newest, http = number * PER_BATCH, service.http
    added = [
        (vertex, vertex - distance)
        for vertex in range(newest, newest + PER_BATCH)
        for distance in (1, 2, 7, 30)
        if distance <= vertex
    ]
    removed = range(newest - VERTICES, newest - VERTICES + PER_BATCH) if newest >= VERTICES else range(0)
    batch = Batch.of(
        [f"v{src}" for src in [*(src for src, _ in added), *removed]],
        [f"v{dst}" for dst in [*(dst for _, dst in added), *removed]],
        op=[Op.ADD] * len(added) + [Op.REMOVE_VERTEX] * len(removed),
    )
    headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Idempotency-Key": f"batch {number}"}
    answer = http.post("/v1/edges", content=encode_batch(batch), headers=headers)
    assert answer.status_code == 200, answer.text
    for path in (
        f"/v1/vertices/v{newest}",
        f"/v1/vertices/v{newest}/nearest",
        f"/v1/changes?since={max(number - 2, 0)}",
        "/v1/map",
        "/v1/stats",
        "/metrics",
        f"/v1/vertices/unknown{number}",
        f"/unknown/{number}",
    ):
        http.get(path)
    http.put("/v1/labels", json={"labels": [[f"v{newest}", f"label {number % 3}"]]})


def count_objects() -> Counter[str]:
    gc.collect()
    return Counter(type(found).__name__ for found in gc.get_objects())


def test_service_memory_does_not_grow_with_batches(start: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_stats, "SECONDS", 2)  # statistics of seconds, not of batches
    service = start(
        limits=Limits(retained_batches=RETAINED),
        parameters={"dim": 8, "threads": 1, "start_size": 40, "anchor_growth": 0.1},
    )
    # Caches of bounded size that would fill for too long:
    monkeypatch.setattr(service.runtime.metrics, "_recent", deque(maxlen=64))
    monkeypatch.setattr(change_feed, "CACHE_BYTES", 1 << 16)
    monkeypatch.setattr(change_feed, "_CACHED_BOUNDS", 16)
    for number in range(WARM_UP):
        send_batch(service, number)
    tracemalloc.start()
    try:
        objects, added, traced = count_objects(), [], []
        for period in range(PERIODS):  # what is traced in the first one replaces what was there before
            first = WARM_UP + period * MEASURED
            for number in range(first, first + MEASURED):
                send_batch(service, number)
            gc.collect()
            traced.append(tracemalloc.get_traced_memory()[0])  # with one large counter of objects each time
            before, objects = objects, count_objects()
            added.append(objects - before)
            del before
    finally:
        tracemalloc.stop()
    more = min(added[1:], key=Counter.total)
    assert service.runtime.model.engine.anchors > 5
    assert len(service.runtime.model) == VERTICES
    assert more.total() < ALLOWED_OBJECTS, more.most_common(10)
    assert min(after - before for before, after in pairwise(traced)) < ALLOWED_BYTES, traced
