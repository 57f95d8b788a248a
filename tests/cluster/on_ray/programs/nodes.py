"""Lose one of two machines with shards during a batch; print the outcome as JSON."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from tempfile import mkdtemp
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

from ripplevec import Embedder, Session
from ripplevec.cluster import Sharded

PARAMETERS: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}
SIZE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}


def edges(seed: int, count: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, 80, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


def call_during_batch(model: Any, shard: int, action: Any) -> None:
    """Call `action` during the next batch, in which a shard waits until its process is killed."""
    ray.get(model._actors.handles[shard].__ray_call__.remote(_wait_in_next_batch))
    run, timer = model.engine.transport.run, threading.Timer(1.0, action)

    def run_and_act(*arguments: Any, **constants: Any) -> Any:
        if not timer.is_alive() and not timer.finished.is_set():
            timer.start()
        return run(*arguments, **constants)

    model.engine.transport.run = run_and_act


def _wait_in_next_batch(actor: Any) -> None:
    from ripplevec.cluster.shard_step import ShardBackend

    ShardBackend.refresh_newcomers = lambda *_: time.sleep(600)  # type: ignore[method-assign]


def locate_shards(model: Any) -> list[tuple[str, int]]:
    """Return the machine and the process of every shard."""
    return [ray.get(handle.__ray_call__.remote(_locate)) for handle in model._actors.handles]


def _locate(actor: Any) -> tuple[str, int]:
    return str(ray.get_runtime_context().get_node_id()), os.getpid()


def count_machines(locations: list[tuple[str, int]]) -> int:
    """Return the number of distinct machines."""
    return len({machine for machine, _ in locations})


def remove_machine(cluster: Any, node: Any, locations: list[tuple[str, int]]) -> None:
    """Remove a machine with all its processes; in this simulation, those of its shards would outlive it briefly."""
    cluster.remove_node(node, allow_graceful=False)
    for machine, process in locations:
        if machine == node.node_id:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={**SIZE, "include_dashboard": False})
    second = cluster.add_node(**SIZE)
    cluster.wait_for_nodes()
    session, single = Session(mkdtemp(), model=Sharded(2, cluster.address), **PARAMETERS), Embedder(**PARAMETERS)
    model: Any = session.model
    for batch in (edges(0, 200), edges(1)):
        session.apply(batch)
        single.partial_fit(batch)
    before = locate_shards(model)
    shard = [machine for machine, _ in before].index(second.node_id)
    call_during_batch(model, shard, lambda: remove_machine(cluster, second, before))
    for seed in range(2, 6):
        session.apply(edges(seed))
        single.partial_fit(edges(seed))
    result = {
        "same": model.digest() == single.digest(),
        "machines_before": count_machines(before),
        "machines_after": count_machines(locate_shards(model)),
        "recoveries": session.recoveries,
    }
    session.close()
    ray.shutdown()
    cluster.shutdown()
    print("\n" + json.dumps(result))
