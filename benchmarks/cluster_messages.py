"""Messages between shards, counted for up to 64 shards in one process: exchanges and bytes of a batch.

    python benchmarks/cluster_messages.py [--vertices 200000] [--json results/messages.json]

The shards run the programs that they run on machines of their own; only the messages stay in this process. Their number
and size do not depend on where the shards run, so `_cluster_model.py` can use them for clusters that are larger than
this machine. Vectors have 128 columns in float16.

A new vertex with an edge to an earlier new vertex on another shard is placed in a later wave, and a wave takes an
exchange. On a small graph, many edges of a large batch connect new vertices. Therefore the waves are counted twice: for
these batches, and for batches of the same kind on the graph of the predictions, whose vertices are far more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _cluster_model import VERTICES
from _graph_generators import make_arrivals
from _report import run_benchmark
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.cluster import _kernels as kernels
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.mesh import Mesh
from ripplevec.cluster.routing import assign_shards
from ripplevec.cluster.row_exchange import ReceivedRows, RowGroup
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport

SHARDS = (1, 2, 4, 8, 16, 64)
BATCHES = (1, 20_000, 200_000)  # arrivals
START = 20_000  # vertices of the start


class CountingMesh(Mesh):
    """Counts the exchanges of a shard, and the bytes of arrays that it sends and receives."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh.index, mesh.size)
        self._mesh = mesh
        self.exchanges = self.sent = self.received = 0

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Count an exchange and make it."""
        received = self._mesh.exchange(parts)
        self.exchanges += 1
        self.sent += sum(count_bytes(parts[peer]) for peer in self.peers)
        self.received += sum(count_bytes(received[peer]) for peer in self.peers)
        return received

    def exchange_rows(
        self, *groups: RowGroup, numbers: Sequence[int] = ()
    ) -> tuple[list[ReceivedRows], NDArray[np.int64]]:
        """Count an exchange of rows and make it."""
        received, all_numbers = self._mesh.exchange_rows(*groups, numbers=numbers)
        self.exchanges += 1
        for group, rows in zip(groups, received, strict=True):
            own = group.end[self.index] - group.begin[self.index]
            self.sent += group.count_bytes(self.index)
            self.received += sum(group.row_bytes) * (int(rows.bounds[-1]) - own)
        return received, all_numbers

    def close(self) -> None:
        """Close the counted mesh."""
        self._mesh.close()


def count_bytes(value: Any) -> int:
    """Return the bytes of all arrays in a nested value."""
    if isinstance(value, list | tuple):
        return sum(map(count_bytes, value))
    return int(getattr(value, "nbytes", 0))


def count_messages(shards: int, vertices: int) -> dict[str, float]:
    """Count the exchanges of each batch, and the bytes of the shard that sends or receives most, per arrival."""
    parameters = Embedder(dim=128, anchor_growth=0, threads=1, storage="float16")._validated_parameters()
    transport = LocalTransport(shards, lambda index: Shard(index, shards, parameters))
    engine = ClusterEngine(transport, parameters)
    engine.start(make_arrivals(1, START))
    engine.apply(make_arrivals(START, vertices))
    counts: dict[str, float] = {}
    first = vertices
    for size in BATCHES:
        meshes = [CountingMesh(shard.mesh) for shard in transport.shards]
        for shard, mesh in zip(transport.shards, meshes, strict=True):
            shard.mesh = mesh
        batch = make_arrivals(first, first + size)
        engine.apply(batch)
        counts[f"waves_{size}"] = count_waves(batch, first, shards)
        counts[f"large_waves_{size}"] = count_waves(make_arrivals(VERTICES, VERTICES + size), VERTICES, shards)
        first += size
        counts[f"exchanges_{size}"] = meshes[0].exchanges
        counts[f"bytes_{size}"] = max(max(mesh.sent, mesh.received) for mesh in meshes) / size
        for shard, mesh in zip(transport.shards, meshes, strict=True):
            shard.mesh = mesh._mesh
    return counts


def count_waves(batch: Batch, first_new: int, shards: int) -> int:
    """Return the number of waves in which a batch places its new vertices, those with ids from `first_new` on."""
    numbers = np.stack([np.asarray(batch.src), np.asarray(batch.dst)], axis=1)
    numbers = numbers[numbers.min(axis=1) >= first_new]
    owners = np.stack([assign_shards(column, shards) for column in numbers.T.copy()], axis=1)
    new_vertices = int(np.asarray(batch.src).max()) + 1 - first_new
    waves, _ = kernels.schedule_waves(owners, numbers, first_new, new_vertices, shards)
    return int(waves.max()) + 1


def measure(vertices: int) -> dict[str, Any]:
    """Count the messages for every number of shards."""
    metrics: dict[str, Any] = {"vertices": vertices}
    for shards in SHARDS:
        metrics |= {f"shards_{shards}_{name}": value for name, value in count_messages(shards, vertices).items()}
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 200_000)
