"""Tests of lost shards on Ray: the final digest is that of an uninterrupted run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from ripplevec import Embedder
from ripplevec.cluster import ShardedEmbedder
from ripplevec.cluster.fault_tolerance import FaultTolerantEngine

PARAMETERS: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}


def edges(seed: int, count: int = 60, vertices: int = 80) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


@pytest.fixture
def model() -> Any:
    model = ShardedEmbedder(shards=2, **PARAMETERS)
    yield model
    model.close()


@pytest.fixture
def single() -> Embedder:
    return Embedder(**PARAMETERS).fit(edges(0, 200))


def kill(model: ShardedEmbedder, shard: int) -> None:
    ray.kill(model._actors.handles[shard], no_restart=False)


@pytest.mark.parametrize("snapshot_every", [10**9, 100])
def test_actor_killed_between_batches_is_recovered(model: Any, single: Embedder, snapshot_every: int) -> None:
    model.fit(edges(0, 200))
    engine: FaultTolerantEngine = model.engine
    engine.snapshot_every = snapshot_every
    for seed in range(1, 7):
        single.partial_fit(edges(seed))
        model.partial_fit(edges(seed))
        if seed in (2, 4):
            kill(model, seed // 2 - 1)
    assert model.digest() == single.digest()
    assert engine.recoveries == 2


def exit_process(*_: Any) -> None:
    os._exit(1)


def run_out_of_memory(*_: Any) -> None:
    raise MemoryError("no room for this step")


def patch_step(model: Any, shard: int, method: str, replacement: Any) -> Callable[[], None]:
    """Replace an operation of the batch step in the process of one shard; return a function that restores it."""

    def patch(actor: Any, function: Any) -> None:
        from ripplevec.cluster.shard_step import ShardBackend

        if function is None:
            setattr(ShardBackend, method, actor.original)
        else:
            actor.original = getattr(ShardBackend, method)
            setattr(ShardBackend, method, function)

    handle = model._actors.handles[shard]
    ray.get(handle.__ray_call__.remote(patch, replacement))
    return lambda: ray.get(handle.__ray_call__.remote(patch, None))


def test_read_after_lost_shard_recovers_it(model: Any, single: Embedder) -> None:
    model.fit(edges(0, 200))
    kill(model, 1)
    np.testing.assert_array_equal(model.to_numpy(), single.to_numpy())


@pytest.mark.parametrize("shard", [0, 1])
@pytest.mark.parametrize("method", ["admit", "refresh_frontier", "spread_influence", "refresh_newcomers"])
def test_actor_killed_during_batch_is_recovered(model: Any, single: Embedder, method: str, shard: int) -> None:
    model.fit(edges(0, 200))
    recoveries = model.engine.recoveries
    patch_step(model, shard, method, exit_process)
    for seed in range(1, 4):
        single.partial_fit(edges(seed))
        model.partial_fit(edges(seed))
    assert model.engine.recoveries == recoveries + 1
    assert model.digest() == single.digest()


@pytest.mark.parametrize("shard", [0, 1])
def test_failed_step_changes_nothing_and_raises_cause(model: Any, single: Embedder, shard: int) -> None:
    model.fit(edges(0, 200))
    restore = patch_step(model, shard, "refresh_newcomers", run_out_of_memory)
    with pytest.raises(MemoryError, match="no room for this step"):
        model.partial_fit(edges(1))
    restore()
    assert model.digest() == single.digest()
    model.partial_fit(edges(1))
    single.partial_fit(edges(1))
    assert model.digest() == single.digest()


def test_program_whose_actors_are_killed_prints_no_unhandled_errors() -> None:
    command = [sys.executable, str(Path(__file__).parent / "programs" / "losses.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '{"recovered": 3}'
    assert "Unhandled error" not in done.stdout + done.stderr
