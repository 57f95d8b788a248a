"""Tests of lost shards on Ray: the final digest is that of an uninterrupted run."""

from __future__ import annotations

import subprocess
import sys
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


def test_read_after_lost_shard_recovers_it(model: Any, single: Embedder) -> None:
    model.fit(edges(0, 200))
    kill(model, 1)
    np.testing.assert_array_equal(model.to_numpy(), single.to_numpy())


@pytest.mark.parametrize("method", ["apply_operations", "pull_rows", "refresh", "finish_batch"])
def test_actor_killed_during_batch_is_recovered(
    model: Any, single: Embedder, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.fit(edges(0, 200))
    transport, killed = model.engine.transport, []
    call = transport.call

    def kill_after_call(called: str, *columns: Any, **constants: Any) -> Any:
        results = call(called, *columns, **constants)
        if called == method and not killed:
            killed.append(method)
            kill(model, 1)
        return results

    monkeypatch.setattr(transport, "call", kill_after_call)
    for seed in range(1, 4):
        single.partial_fit(edges(seed))
        model.partial_fit(edges(seed))
    assert killed
    assert model.digest() == single.digest()


def test_failed_step_changes_nothing_and_raises_cause(
    model: Any, single: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.fit(edges(0, 200))
    transport = model.engine.transport
    call = transport.call
    monkeypatch.setattr(
        transport, "call", lambda called, *c, **k: call("no_such_step" if called == "finish_batch" else called, *c, **k)
    )
    with pytest.raises(AttributeError, match="no_such_step"):
        model.partial_fit(edges(1))
    monkeypatch.undo()
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
