"""Benchmark of the driver of a cluster by itself, for any number of shards: stubs replace the shards.

    python benchmarks/cluster_driver.py [--arrivals 200000] [--json results/driver.json]

A batch is distributed to up to 256 stub shards, which respond immediately: the remaining time is that of the driver.
The bytes that pass through the driver are counted as well, and so are the calls that a batch makes, on two real shards
in this process. `_cluster_model.py` uses these metrics, which four shards on one machine would not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from _report import best_seconds, run_benchmark
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.cluster.batch_protocol import BatchProtocol
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.routing import intern_endpoints, schedule_waves, send_operations
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.rules.ripple import RippleRule

SHARDS = (1, 4, 16, 64, 256)
EDGES, KNOWN = 5, 1_000_000_000  # edges per arrival, and ids that the stub shards already have
BATCHES = (1, 20_000)  # arrivals of the batches whose calls are counted, as timed in cluster.py
SMALL, START = 200_000, 20_000  # vertices of the graph before these batches, and of its start
RULE = cast(RippleRule, Embedder()._validated_parameters().create_rule())
EXTRAS = {"begin_batch": (0, (0, 0, 0)), "begin_refresh": ((1, 1, 1),)}
"""Results for the driver, which follow those for other shards."""


class StubTransport:
    """Stands in for shards that have all ids below `known` and return no rows."""

    def __init__(self, size: int, known: int) -> None:
        self.size, self.known = size, known
        self.bytes = 0  # sent or received by the driver

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Count the bytes of a call (constants are sent to every shard) and return empty results."""
        self.bytes += count_bytes(columns) + self.size * count_bytes(constants)
        if method == "intern":
            return [self._intern(*columns[0][shard]) for shard in range(self.size)]
        if method == "finish_batch":
            return [(0, 0)] * self.size  # moved rows and shortened vectors
        extras = EXTRAS.get(method, ())
        return [[0] * (parts - len(extras)) + list(extras) if parts else 0 for _ in range(self.size)]

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Count the bytes of results and return them."""
        self.bytes += count_bytes(results)
        return list(results)

    def reset(self) -> None:
        """Do nothing: there are no shards."""

    def _intern(self, *ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [part for column in ids for part in (column, np.where(column < self.known, column, -1))]


class CountingTransport(LocalTransport):
    """Counts calls to shards in this process; `exchanges` are calls whose results have a part for every shard."""

    calls = exchanges = 0

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Count a call and make it."""
        self.calls += 1
        self.exchanges += parts > 0
        return super().call(method, *columns, parts=parts, **constants)


def count_bytes(value: Any) -> int:
    """Return the bytes of all arrays in a nested value."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple | zip):
        return int(getattr(value, "nbytes", 0))
    return sum(map(count_bytes, value))


def make_arrivals(first: int, last: int) -> Batch:
    """Return new vertices with edges to random earlier ones."""
    src = np.repeat(np.arange(first, last), EDGES)
    share = np.random.Generator(np.random.Philox(first)).random(src.size)
    return Batch.of(src, (share * src).astype(np.int64))


def distribute(transport: StubTransport, batch: Batch) -> None:
    """Do the driver's part of `ClusterEngine.apply` for a batch of additions."""
    endpoints = intern_endpoints(transport, batch.src, batch.dst, np.zeros(len(batch), np.int8), transport.known)
    send_operations(transport, endpoints, np.ones(len(batch), np.float32))
    schedule = schedule_waves(endpoints, transport.known, endpoints.new_codes.size, transport.size)
    BatchProtocol(transport, RULE, 1).run(endpoints.new_codes, schedule, transport.known, np.empty(0, np.int64))


def count_calls() -> dict[str, int]:
    """Count the calls and exchanges of a batch by its size, on two shards."""
    parameters = Embedder(dim=16, anchor_growth=0, threads=1)._validated_parameters()
    transport = CountingTransport(2, lambda index: Shard(index, 2, parameters))
    engine = ClusterEngine(transport, parameters)
    engine.start(make_arrivals(1, START))
    engine.apply(make_arrivals(START, SMALL))
    counts: dict[str, int] = {}
    first = SMALL
    for size in BATCHES:
        transport.calls = transport.exchanges = 0
        engine.apply(make_arrivals(first, first + size))
        first += size
        counts |= {f"calls_{size}": transport.calls, f"exchanges_{size}": transport.exchanges}
    return counts


def measure(count: int) -> dict[str, Any]:
    """Measure the driver by itself, then count the calls."""
    batch = make_arrivals(KNOWN, KNOWN + count)
    metrics: dict[str, Any] = {"arrivals": count}
    for shards in SHARDS:
        transport = StubTransport(shards, KNOWN)
        distribute(transport, batch)
        metrics[f"shards_{shards}_bytes_per_arrival"] = transport.bytes / count
        metrics[f"shards_{shards}_us_per_arrival"] = 1e6 * best_seconds(partial(distribute, transport, batch)) / count
    return metrics | count_calls()


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "arrivals", 200_000)
