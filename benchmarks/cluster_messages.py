"""Messages between shards, counted for up to 64 shards in one process: exchanges and bytes of a batch.

    python benchmarks/cluster_messages.py [--vertices 200000] [--json results/messages.json]

The shards run the programs that they run on machines of their own; only the messages stay in this process. Their number
and size do not depend on where the shards run, so `_cluster_model.py` can use them for clusters that are larger than
this machine. Vectors have 128 columns in float16.

A new vertex with an edge to an earlier new vertex on another shard is placed in a later wave, and a wave takes an
exchange. On a small graph, many edges of a large batch connect new vertices. Therefore each batch is counted twice: as
it is (`exchanges`), and as it would be on the graph of the predictions (`large_exchanges`), where hardly any edge
connects new vertices. All other edges then lead to vertices of the small graph, so the work is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from _cluster_model import VERTICES
from _graph_generators import make_arrivals
from _report import run_benchmark
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.mesh import Mesh
from ripplevec.cluster.row_exchange import ReceivedRows, RowGroup
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport

SHARDS = (1, 2, 4, 8, 16, 64)
BATCHES = (1, 20_000, 200_000)  # arrivals
START = 20_000  # vertices of the start


class CountingMesh(Mesh):
    """Counts the exchanges of a shard, and the bytes that it sends and receives, heads included."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh.index, mesh.size)
        self._mesh = mesh
        self.exchanges = self.posted = self.received = 0

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Count an exchange and make it."""
        self.exchanges += 1
        return super().exchange(parts)

    def exchange_rows(
        self, *groups: RowGroup, numbers: Sequence[int] = ()
    ) -> tuple[list[ReceivedRows], NDArray[np.int64]]:
        """Count an exchange of rows and make it."""
        self.exchanges += 1
        return super().exchange_rows(*groups, numbers=numbers)

    def send_parts(self, heads: Mapping[int, list[memoryview]], bodies: Mapping[int, list[memoryview]]) -> int:
        """Send bytes and count them."""
        sent = self._mesh.send_parts(heads, bodies)
        self.posted += sent + sum(len(part) for head in heads.values() for part in head)
        return sent

    def receive_parts(self, peer: int, parts: list[memoryview]) -> None:
        """Receive bytes and count them."""
        self._mesh.receive_parts(peer, parts)
        self.received += sum(map(len, parts))

    def flush(self) -> None:
        """Wait until all messages are sent."""
        self._mesh.flush()

    def close(self) -> None:
        """Close the counted mesh."""
        self._mesh.close()


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
        for prefix, make_batch in {"": make_arrivals, "large_": make_sparse_arrivals}.items():
            meshes = [CountingMesh(shard.mesh) for shard in transport.shards]
            for shard, mesh in zip(transport.shards, meshes, strict=True):
                shard.mesh = mesh
            engine.apply(make_batch(first, first + size))
            first += size
            counts[f"{prefix}exchanges_{size}"] = meshes[0].exchanges
            counts[f"{prefix}bytes_{size}"] = max(max(mesh.posted, mesh.received) for mesh in meshes) / size
            for shard, mesh in zip(transport.shards, meshes, strict=True):
                shard.mesh = mesh._mesh
    return counts


def make_sparse_arrivals(first: int, last: int) -> Batch:
    """Return a batch in which as few edges connect new vertices as in a batch on the graph of the predictions."""
    large = make_arrivals(VERTICES, VERTICES + last - first)
    ends = [np.asarray(column) for column in (large.src, large.dst)]
    return Batch.of(*(np.where(end < VERTICES, end % first, end - VERTICES + first) for end in ends))


def measure(vertices: int) -> dict[str, Any]:
    """Count the messages for every number of shards."""
    metrics: dict[str, Any] = {"vertices": vertices}
    for shards in SHARDS:
        metrics |= {f"shards_{shards}_{name}": value for name, value in count_messages(shards, vertices).items()}
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 200_000)
