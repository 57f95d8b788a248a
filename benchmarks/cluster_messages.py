"""Messages between shards, counted for up to 64 shards in one process: exchanges and bytes of a batch.

    python benchmarks/cluster_messages.py [--vertices 200000] [--json results/messages.json]

The shards run the programs that they run on machines of their own; only the messages stay in this process. Their number
and size do not depend on where the shards run, so `_cluster_model.py` can use them for clusters that are larger than
this machine. Vectors have 128 columns in float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from _graph_generators import make_arrivals
from _report import run_benchmark

from ripplevec import Embedder
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.mesh import Mesh
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
        engine.apply(make_arrivals(first, first + size))
        first += size
        counts[f"exchanges_{size}"] = meshes[0].exchanges
        counts[f"bytes_{size}"] = max(max(mesh.sent, mesh.received) for mesh in meshes) / size
        for shard, mesh in zip(transport.shards, meshes, strict=True):
            shard.mesh = mesh._mesh
    return counts


def measure(vertices: int) -> dict[str, Any]:
    """Count the messages for every number of shards."""
    metrics: dict[str, Any] = {"vertices": vertices}
    for shards in SHARDS:
        metrics |= {f"shards_{shards}_{name}": value for name, value in count_messages(shards, vertices).items()}
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 200_000)
