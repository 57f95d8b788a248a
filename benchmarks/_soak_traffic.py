"""Traffic of the soak test: batches of a graph of constant size, and clients that survive restarts of the service."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from ripplevec import Batch, Client
from ripplevec.batch import Op
from ripplevec.client.protocol import (
    ServiceError,
    TooOldError,
    UnreachableServiceError,
    parse_response,
    translate_errors,
)
from ripplevec.durability.journal_schema import encode_batch

EDGES, COMMUNITIES, WITHIN = 5, 10, 0.8
VECTOR_READS, SEARCHES, FEED_READS = 20.0, 5.0, 1.0  # requests per second
HEALTH_CHECKS, WORK_PROBES = 5.0, 2.0  # probes per second
WORK = bytes(8 << 20)  # hashed by a probe; takes some milliseconds
FEED_BATCHES = 3  # batches of changes per read of the feed
TIMEOUT_SECONDS = 1800.0
RETRY_SECONDS = 0.05  # between two attempts to deliver a batch

LatencyLog = list[tuple[float, float]]
"""For each request, the time of its response and its duration in seconds."""


def sliding_window(vertices: int, size: int, seed: int, first: int = 0) -> Iterator[Batch]:
    """Generate batches of `size` arrivals without end; beyond `vertices`, each also removes as many oldest vertices.

    Every vertex arrives with five edges to earlier vertices that still exist, most of them in its own community.
    `first` is the number of the first batch generated.
    """
    for number in count(first):
        yield _make_batch(number * size, size, vertices, np.random.default_rng([seed, number]))


def _make_batch(first: int, size: int, vertices: int, rng: np.random.Generator) -> Batch:
    src = np.repeat(np.arange(max(first, 1), first + size), EDGES)
    reach = np.minimum(src, vertices - size)  # older vertices are about to be removed
    distance = 1 + (rng.random(src.size) * reach).astype(np.int64)
    same_community = -(-distance // COMMUNITIES) * COMMUNITIES
    inside = (rng.random(src.size) < WITHIN) & (same_community <= reach)
    distance = np.where(inside, same_community, distance)
    removed = np.arange(first - vertices, first - vertices + size) if first >= vertices else src[:0]
    op = np.repeat(np.array([Op.ADD, Op.REMOVE_VERTEX], np.int8), [src.size, removed.size])
    return Batch.of(_ids([*src, *removed]), _ids([*(src - distance), *removed]), op=op)


def _ids(numbers: list[Any]) -> list[str]:
    return [f"v{number}" for number in numbers]


class SoakClient(Client):
    """Client that sends encoded batches, which may also remove edges and vertices, and checks health."""

    def send(self, batch: Batch, key: str) -> dict[str, Any]:
        """Send a batch once; return the response of the service."""
        headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Idempotency-Key": key}
        with translate_errors(self._http):
            return parse_response(self._http.post("/v1/edges", content=encode_batch(batch), headers=headers), dict)

    def check_health(self) -> None:
        """Send the request that does least in the service."""
        with translate_errors(self._http):
            parse_response(self._http.get("/healthz"), dict)


class BatchSender:
    """Sender of batches in order, each until it is acknowledged; a wrong sequence number is a fault."""

    def __init__(self, url: str, faults: list[str], sent: int) -> None:
        self._client, self._faults = SoakClient(url, retries=0), faults
        self.log: LatencyLog = []
        self.sent = sent
        self.retried = self.repeated = self.anchors = 0

    def send(self, batch: Batch) -> None:
        """Send a batch until it is acknowledged; a repeated one is applied only once."""
        key, deadline, tries = f"batch {self.sent}", time.monotonic() + TIMEOUT_SECONDS, 0
        while True:
            started, tries = time.monotonic(), tries + 1
            try:
                receipt = self._client.send(batch, key)
                break
            except (UnreachableServiceError, ServiceError) as error:
                if not is_temporary(error) or started > deadline:
                    raise
                time.sleep(RETRY_SECONDS)
        now = time.monotonic()
        self.log.append((now, now - started))
        self.sent += 1
        self.retried += tries > 1
        self.repeated += receipt["repeated"]
        self.anchors += receipt["anchored"]
        if receipt["sequence"] != self.sent:
            self._faults.append(f"sequence number: expected {self.sent}, got {receipt['sequence']}")


class Readers:
    """Threads that read vectors, nearest neighbors and changes; an acknowledged vertex that is not found is a fault.

    Two more threads are probes, whose durations do not depend on the state: `health` checks the health of the service,
    and `work` hashes a constant in this process.
    """

    def __init__(self, url: str, acknowledged: Callable[[], range], faults: list[str]) -> None:
        self._url, self._acknowledged, self._faults = url, acknowledged, faults
        self._stopped = threading.Event()
        work: dict[str, tuple[float, Callable[[SoakClient], object]]] = {
            "read": (VECTOR_READS, lambda client: client.vector(self._random_vertex())),
            "nearest": (SEARCHES, lambda client: client.nearest(self._random_vertex())),
            "changes": (FEED_READS, self._read_feed),
            "health": (HEALTH_CHECKS, SoakClient.check_health),
            "work": (WORK_PROBES, lambda client: hashlib.sha256(WORK)),
        }
        self.logs: dict[str, LatencyLog] = {name: [] for name in work}
        self._threads = [
            threading.Thread(target=self._repeat, args=(1 / rate, self.logs[name], request), daemon=True)
            for name, (rate, request) in work.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send no more requests."""
        self._stopped.set()

    def join(self) -> None:
        """Wait for the last responses."""
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)

    def _random_vertex(self) -> str:
        return f"v{random.choice(self._acknowledged())}"

    def _read_feed(self, client: Client) -> None:
        """Read some batches of the feed, which must have no gap; then drop the connection, as a browser does."""
        last = None
        for changes in islice(client.changes(), FEED_BATCHES):
            if last is not None and changes.sequence not in (last, last + 1):
                self._faults.append(f"feed: expected batch {last} or {last + 1}, got {changes.sequence}")
            last = changes.sequence
            if changes.anchored:  # contains all vectors, in many parts
                return

    def _repeat(self, every: float, log: LatencyLog, request: Callable[[SoakClient], object]) -> None:
        client = SoakClient(self._url, retries=0)
        with client:
            while not self._stopped.wait(every):
                started = time.monotonic()
                try:
                    request(client)
                    log.append((time.monotonic(), time.monotonic() - started))
                except Exception as error:
                    if not is_temporary(error):
                        self._faults.append(f"read failed: {error!r}")
                        return


def is_temporary(error: Exception) -> bool:
    """Return whether an error is expected from a service that was killed, is recovering or has just restarted."""
    if isinstance(error, ServiceError):
        return isinstance(error, TooOldError) or error.status in (429, 503)
    return isinstance(error, UnreachableServiceError)
