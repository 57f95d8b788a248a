"""Two machines hold shards, and one of them goes in the middle of a batch; what came of it, as JSON."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

from ripplevec import Embedder
from ripplevec.cluster import ShardedEmbedder

HOW: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}
SIZE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}


def edges(seed: int, count: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, 80, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


def going(model: Any, go: Any) -> None:
    """Have `go` called in the middle of the next batch."""
    transport = model.engine.transport
    call, went = transport.call, []

    def deadly(asked: str, *columns: Any, **constants: Any) -> Any:
        if asked == "refresh" and not went:
            went.append(asked)
            go()
        return call(asked, *columns, **constants)

    transport.call = deadly


def homes(model: Any) -> list[tuple[str, int]]:
    """The machine and the process of every shard."""
    return [ray.get(handle.__ray_call__.remote(_home)) for handle in model._actors.handles]


def _home(actor: Any) -> tuple[str, int]:
    return str(ray.get_runtime_context().get_node_id()), os.getpid()


def machines(found: list[tuple[str, int]]) -> int:
    """How many there are."""
    return len({machine for machine, _ in found})


def lose(cluster: Any, node: Any, found: list[tuple[str, int]]) -> None:
    """A machine goes with all its processes; here those of its shards would outlive it for a moment."""
    cluster.remove_node(node, allow_graceful=False)
    for machine, process in found:
        if machine == node.node_id:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={**SIZE, "include_dashboard": False})
    second = cluster.add_node(**SIZE)
    cluster.wait_for_nodes()
    model, alone = ShardedEmbedder(shards=2, address=cluster.address, **HOW), Embedder(**HOW)
    for one in (model, alone):
        one.fit(edges(0, 200))
        one.partial_fit(edges(1))
    before = homes(model)
    going(model, lambda: lose(cluster, second, before))
    for turn in range(2, 6):
        for one in (model, alone):
            one.partial_fit(edges(turn))
    found = {
        "same": model.digest() == alone.digest(),
        "machines_before": machines(before),
        "machines_after": machines(homes(model)),
        "recoveries": model.engine.recoveries,
    }
    ray.shutdown()
    cluster.shutdown()
    print("\n" + json.dumps(found))
