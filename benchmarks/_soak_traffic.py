"""What a soak sends and asks: a graph that keeps its size, clients that go on when the service has gone and is back."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np
from httpx import TransportError

from ripplevec import Batch, Client
from ripplevec.batch import Op
from ripplevec.client.protocol import ServiceError, TooOldError, checked
from ripplevec.durability.batch_codec import encode_batch

EDGES, COMMUNITIES, WITHIN = 5, 10, 0.8
READS, SEARCHES, LOOKS = 20.0, 5.0, 1.0  # per second: of a vector, of the nearest, at the changes
FOLLOWED = 3  # batches of changes that are read at every look
PATIENCE = 1800.0
AGAIN = 0.05  # seconds until what could not be delivered is sent again

Log = list[tuple[float, float]]
"""When requests were answered, and the seconds each took."""


def sliding(vertices: int, size: int, seed: int, first: int = 0) -> Iterator[Batch]:
    """Batches without end, of `size` arrivals each; from `vertices` on, as many of the oldest go with each.

    Every vertex comes with five edges to earlier ones that are still there, most of them of its own community. The
    first batch may be a later one of the same stream.
    """
    for number in count(first):
        yield _step(number * size, size, vertices, np.random.default_rng([seed, number]))


def _step(first: int, size: int, vertices: int, rng: np.random.Generator) -> Batch:
    src = np.repeat(np.arange(max(first, 1), first + size), EDGES)
    reach = np.minimum(src, vertices - size)  # further back they are about to go
    back = 1 + (rng.random(src.size) * reach).astype(np.int64)
    own = -(-back // COMMUNITIES) * COMMUNITIES
    back = np.where((rng.random(src.size) < WITHIN) & (own <= reach), own, back)
    gone = np.arange(first - vertices, first - vertices + size) if first >= vertices else src[:0]
    op = np.repeat(np.array([Op.ADD, Op.REMOVE_VERTEX], np.int8), [src.size, gone.size])
    return Batch.of(_names([*src, *gone]), _names([*(src - back), *gone]), op=op)


def _names(numbers: list[Any]) -> list[str]:
    return [f"v{number}" for number in numbers]


class Sender(Client):
    """A client for batches that add and remove."""

    def send(self, batch: Batch, key: str) -> dict[str, Any]:
        """Send a batch once; the service's receipt."""
        headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Idempotency-Key": key}
        return checked(self._http.post("/v1/edges", content=encode_batch(batch), headers=headers))


class Stream:
    """The sending side: batches in order, each until it is acknowledged, each in its place or a fault."""

    def __init__(self, url: str, faults: list[str], sent: int) -> None:
        self._client, self._faults = Sender(url, retries=0), faults
        self.log: Log = []
        self.sent = sent
        self.retried = self.repeated = self.anchors = 0

    def send(self, batch: Batch) -> None:
        """Return once the batch is acknowledged; one that was already there has been applied once all the same."""
        key, deadline, tries = f"batch {self.sent}", time.monotonic() + PATIENCE, 0
        while True:
            began, tries = time.monotonic(), tries + 1
            try:
                receipt = self._client.send(batch, key)
                break
            except (TransportError, ServiceError) as error:
                if not passing(error) or began > deadline:
                    raise
                time.sleep(AGAIN)
        now = time.monotonic()
        self.log.append((now, now - began))
        self.sent += 1
        self.retried += tries > 1
        self.repeated += receipt["repeated"]
        self.anchors += receipt["anchored"]
        if receipt["sequence"] != self.sent:
            self._faults.append(f"batch {self.sent} was acknowledged as {receipt['sequence']}")


class Readers:
    """Those who read meanwhile: vectors, nearest, and what changes. An acknowledged vertex has to be found."""

    def __init__(self, url: str, known: Callable[[], range], faults: list[str]) -> None:
        self._url, self._known, self._faults = url, known, faults
        self.reads: Log = []
        self.searches: Log = []
        self.followed: Log = []
        self._over = threading.Event()
        work = [
            (1 / READS, self.reads, lambda client: client.vector(self._anyone())),
            (1 / SEARCHES, self.searches, lambda client: client.nearest(self._anyone())),
            (1 / LOOKS, self.followed, self._follow),
        ]
        self._threads = [threading.Thread(target=self._go_on, args=each, daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask nothing more."""
        self._over.set()

    def join(self) -> None:
        """Wait for the last answers."""
        for thread in self._threads:
            thread.join(PATIENCE)

    def _anyone(self) -> str:
        return f"v{random.choice(self._known())}"

    def _follow(self, client: Client) -> None:
        """Some batches of the feed, in order and without a gap; the connection is left as a browser would leave it."""
        last = None
        for changes in islice(client.changes(), FOLLOWED):
            if last is not None and changes.sequence not in (last, last + 1):
                self._faults.append(f"the changes of batch {changes.sequence} came behind those of {last}")
            last = changes.sequence
            if changes.anchored:  # all vectors, in many parts
                return

    def _go_on(self, every: float, log: Log, ask: Callable[[Client], object]) -> None:
        with Client(self._url, retries=0) as client:
            while not self._over.wait(every):
                began = time.monotonic()
                try:
                    ask(client)
                    log.append((time.monotonic(), time.monotonic() - began))
                except Exception as error:
                    if not passing(error):
                        self._faults.append(f"a read: {error!r}")
                        return


def passing(error: Exception) -> bool:
    """Whether this is how a service that was killed, recovers or has just come back shows itself."""
    if isinstance(error, ServiceError):
        return isinstance(error, TooOldError) or error.status in (429, 503)
    return isinstance(error, TransportError)
