"""Kill an actor during several batches, then drop all references: Ray prints errors of results never read."""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np
import ray

from ripplevec.cluster import ShardedEmbedder


def edges(seed: int) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, 80, (60, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


if __name__ == "__main__":
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
    model = ShardedEmbedder(shards=2, dim=8, anchor_growth=0, threads=1).fit(edges(0))
    transport: Any = model.engine.transport
    call, lethal_methods = transport.call, ["apply_operations", "refresh", "finish_batch"]

    def kill_after(called: str, *columns: Any, **constants: Any) -> Any:
        results = call(called, *columns, **constants)
        if lethal_methods and called == lethal_methods[0]:
            lethal_methods.pop(0)
            ray.kill(model._actors.handles[1], no_restart=False)
        return results

    transport.call = kill_after
    for seed in range(1, 4):
        model.partial_fit(edges(seed))
        gc.collect()
    recovered = model.engine.recoveries  # type: ignore[attr-defined]
    model.close()
    del model, transport, call, kill_after
    gc.collect()
    ray.shutdown()
    print(json.dumps({"recovered": recovered}))
