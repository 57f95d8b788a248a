"""Shards go at any time, and nobody notices: the digest in the end is that of an uninterrupted run."""

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

HOW: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}


def edges(seed: int, count: int = 60, vertices: int = 80) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


@pytest.fixture
def model() -> Any:
    model = ShardedEmbedder(shards=2, **HOW)
    yield model
    model.close()


@pytest.fixture
def alone() -> Embedder:
    return Embedder(**HOW).fit(edges(0, 200))


def kill(model: ShardedEmbedder, shard: int) -> None:
    ray.kill(model._actors.handles[shard], no_restart=False)


@pytest.mark.parametrize("snapshot_every", [10**9, 100])
def test_an_actor_that_is_killed_between_batches_is_brought_back(
    model: Any, alone: Embedder, snapshot_every: int
) -> None:
    model.fit(edges(0, 200))
    engine: FaultTolerantEngine = model.engine
    engine.snapshot_every = snapshot_every
    for turn in range(1, 7):
        alone.partial_fit(edges(turn))
        model.partial_fit(edges(turn))
        if turn in (2, 4):
            kill(model, turn // 2 - 1)
    assert model.digest() == alone.digest()
    assert engine.recoveries == 2


def test_a_reader_brings_a_lost_shard_back_too(model: Any, alone: Embedder) -> None:
    model.fit(edges(0, 200))
    kill(model, 1)
    np.testing.assert_array_equal(model.to_numpy(), alone.to_numpy())


@pytest.mark.parametrize("method", ["apply_operations", "pull_rows", "refresh", "finish_batch"])
def test_an_actor_that_dies_in_the_middle_of_a_batch_is_brought_back(
    model: Any, alone: Embedder, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.fit(edges(0, 200))
    transport, died = model.engine.transport, []
    call = transport.call

    def deadly(asked: str, *columns: Any, **constants: Any) -> Any:
        answers = call(asked, *columns, **constants)
        if asked == method and not died:
            died.append(method)
            kill(model, 1)
        return answers

    monkeypatch.setattr(transport, "call", deadly)
    for turn in range(1, 4):
        alone.partial_fit(edges(turn))
        model.partial_fit(edges(turn))
    assert died
    assert model.digest() == alone.digest()


def test_a_step_that_fails_changes_nothing_and_says_why(
    model: Any, alone: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.fit(edges(0, 200))
    transport = model.engine.transport
    call = transport.call
    monkeypatch.setattr(
        transport, "call", lambda asked, *c, **k: call("no_such_step" if asked == "finish_batch" else asked, *c, **k)
    )
    with pytest.raises(AttributeError, match="no_such_step"):
        model.partial_fit(edges(1))
    monkeypatch.undo()
    assert model.digest() == alone.digest()
    model.partial_fit(edges(1))
    alone.partial_fit(edges(1))
    assert model.digest() == alone.digest()


def test_program_whose_actors_are_killed_prints_no_unhandled_errors() -> None:
    command = [sys.executable, str(Path(__file__).parent / "programs" / "losses.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '{"recovered": 3}'
    assert "Unhandled error" not in done.stdout + done.stderr
