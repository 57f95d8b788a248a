"""What the driver of a cluster does by itself, for any number of shards: they are not there, and need no machines.

    python benchmarks/driver.py [--arrivals 200000] [--json results/driver.json]

A batch is shared out among up to 256 shards that answer at once: what is left is the time of the driver, and the bytes
that go through it. Beside it, how often the shards are called in a batch, counted on two real ones in this process.
`_cluster_model.py` takes from here what cannot be seen with four shards on one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from _report import run, seconds
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.cluster.batch_protocol import BatchProtocol
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.routing import intern_endpoints, send_operations, schedule_waves
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport

SHARDS = (1, 4, 16, 64, 256)
EDGES, KNOWN = 5, 1_000_000_000
BATCHES = (1, 20_000)  # arrivals of the batches whose calls are counted: those that cluster.py times
SMALL, START = 200_000, 20_000  # the graph they come to, and its start
RULE = Embedder()._validated_parameters().create_rule()
NOTES = {
    "begin_batch": (0, (0, 0, 0)),
    "begin_refresh": ((1, 1, 1),),
}  # what shards say beside what they show each other


class StubTransport:
    """Shards that are not there: they know every name below `known`, and have nothing to say of rows."""

    def __init__(self, size: int, known: int) -> None:
        self.size, self.known = size, known
        self.bytes = 0  # that went out or came in

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """What it takes to ask; a constant goes to each."""
        self.bytes += weight(columns) + self.size * weight(constants)
        if method == "intern":
            return [self._intern(*columns[0][shard]) for shard in range(self.size)]
        if method == "finish_batch":
            return [(0, 0)] * self.size  # rows that moved, how many were shortened
        notes = NOTES.get(method, ())
        return [[0] * (parts - len(notes)) + list(notes) if parts else 0 for _ in range(self.size)]

    def get(self, answers: Sequence[Any]) -> list[Any]:
        """They are here."""
        self.bytes += weight(answers)
        return list(answers)

    def reset(self) -> None:
        """There is nothing to open."""

    def _intern(self, *names: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [part for column in names for part in (column, np.where(column < self.known, column, -1))]


class CountingTransport(LocalTransport):
    """Shards in this process, and how often they were called: `exchanges` are calls with a part for every shard."""

    calls = exchanges = 0

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Ask, and count."""
        self.calls += 1
        self.exchanges += parts > 0
        return super().call(method, *columns, parts=parts, **constants)


def weight(thing: Any) -> int:
    """The bytes of all arrays in it."""
    if isinstance(thing, dict):
        thing = thing.values()
    elif not isinstance(thing, list | tuple | zip):
        return int(getattr(thing, "nbytes", 0))
    return sum(map(weight, thing))


def arrivals(first: int, last: int) -> Batch:
    """Vertices that come with edges to any of those before."""
    src = np.repeat(np.arange(first, last), EDGES)
    share = np.random.Generator(np.random.Philox(first)).random(src.size)
    return Batch.of(src, (share * src).astype(np.int64))


def share_out(transport: StubTransport, batch: Batch) -> None:
    """What `ClusterEngine` does with a batch of additions, as far as it does it itself."""
    ends = intern_endpoints(transport, batch.src, batch.dst, np.zeros(len(batch), np.int8), transport.known)
    send_operations(transport, ends, np.ones(len(batch), np.float32))
    when = schedule_waves(ends, transport.known, ends.arrived.size, transport.size)
    BatchProtocol(transport, RULE, 1).run(ends.arrived, when, transport.known, np.empty(0, np.int64))


def counted() -> dict[str, int]:
    """Calls and exchanges of a batch by its size, on two shards."""
    parameters = Embedder(dim=16, anchor_growth=0, threads=1)._validated_parameters()
    transport = CountingTransport(2, lambda number: Shard(number, 2, parameters))
    engine = ClusterEngine(transport, parameters)
    engine.start(arrivals(1, START))
    engine.apply(arrivals(START, SMALL))
    found: dict[str, int] = {}
    place = SMALL
    for size in BATCHES:
        transport.calls = transport.exchanges = 0
        engine.apply(arrivals(place, place + size))
        place += size
        found |= {f"calls_{size}": transport.calls, f"exchanges_{size}": transport.exchanges}
    return found


def measure(count: int) -> dict[str, Any]:
    """The driver by itself, then the calls."""
    batch = arrivals(KNOWN, KNOWN + count)
    figures: dict[str, Any] = {"arrivals": count}
    for shards in SHARDS:
        transport = StubTransport(shards, KNOWN)
        share_out(transport, batch)
        figures[f"shards_{shards}_bytes_per_arrival"] = transport.bytes / count
        figures[f"shards_{shards}_us_per_arrival"] = 1e6 * seconds(partial(share_out, transport, batch)) / count
    return figures | counted()


if __name__ == "__main__":
    run(__doc__, measure, "arrivals", 200_000)
