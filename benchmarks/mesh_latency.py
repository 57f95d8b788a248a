"""Latency between two shards: an exchange of rows over their mesh against a Ray call from actor to actor, in one run.

    python benchmarks/mesh_latency.py [--repeats 500] [--json results/mesh_latency.json]

Both carry a small array in each direction. The median of the repeats is reported.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import ray
from _report import run_benchmark

from ripplevec.cluster.mesh import Mesh, MeshListener
from ripplevec.cluster.row_exchange import group_rows

TOKEN = b"token of this benchmark"
MESSAGE = np.arange(16.0)


class Peer:
    """One of two actors that talk to each other."""

    def __init__(self) -> None:
        self._listener = MeshListener("127.0.0.1")
        self._mesh: Mesh | None = None

    def address(self) -> tuple[str, int]:
        """Return the address at which this actor accepts a connection."""
        return self._listener.address

    def connect(self, index: int, addresses: list[tuple[str, int]]) -> None:
        """Connect to the other actor."""
        self._mesh = self._listener.connect(index, addresses, TOKEN, 30.0)

    def echo(self, message: Any) -> Any:
        """Return the message."""
        return message

    def time_calls(self, other: Any, repeats: int) -> float:
        """Return the median seconds of a Ray call to the other actor and its answer."""
        return time_repeats(lambda: ray.get(other.echo.remote(MESSAGE)), repeats)

    def time_exchanges(self, repeats: int) -> float:
        """Return the median seconds of an exchange with the other actor, which runs the same method."""
        mesh = self._mesh
        assert mesh is not None
        rows = group_rows([np.concatenate([MESSAGE, MESSAGE])], np.array([0, MESSAGE.size, 2 * MESSAGE.size]))
        return time_repeats(lambda: mesh.exchange_rows(rows), repeats)


def time_repeats(action: Any, repeats: int) -> float:
    """Return the median seconds of an action; the first tenth is not counted."""
    seconds = []
    for _ in range(repeats + repeats // 10):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[repeats // 10 :]))


def measure(repeats: int) -> dict[str, Any]:
    """Measure Ray calls, then exchanges."""
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    peers = [ray.remote(Peer).remote() for _ in range(2)]
    addresses = ray.get([peer.address.remote() for peer in peers])
    ray.get([peer.connect.remote(index, addresses) for index, peer in enumerate(peers)])
    calls = ray.get(peers[0].time_calls.remote(peers[1], repeats))
    exchanges = float(np.median(ray.get([peer.time_exchanges.remote(repeats) for peer in peers])))
    ray.shutdown()
    return {
        "repeats": repeats,
        "call_us": 1e6 * calls,
        "exchange_us": 1e6 * exchanges,
        "call_over_exchange": calls / exchanges,
    }


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "repeats", 500)
