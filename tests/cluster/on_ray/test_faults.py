"""Tests of lost shards on Ray: a session recovers them, and the digest is that of an uninterrupted run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from ripplevec import Embedder, Session
from ripplevec.cluster import Sharded, ShardedEmbedder
from ripplevec.errors import StateError

PARAMETERS: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}


def edges(seed: int, count: int = 60, vertices: int = 80) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    with Session(tmp_path, model=Sharded(2), snapshot_every=100, **PARAMETERS) as session:
        session.apply(edges(0, 200))
        yield session
    session.model.close()


@pytest.fixture
def single() -> Embedder:
    model = Embedder(**PARAMETERS)
    model.partial_fit(edges(0, 200))
    return model


def test_actors_killed_between_batches_are_recovered(session: Any, single: Embedder, kill_shard: Any) -> None:
    for seed in range(1, 7):
        single.partial_fit(edges(seed))
        session.apply(edges(seed))
        if seed in (2, 4):
            kill_shard(session.model._actors, seed // 2 - 1)
    assert session.model.digest() == single.digest()
    assert session.recoveries == 2


def test_read_after_lost_shard_is_answered_after_recovery(
    session: Any, single: Embedder, kill_shard: Any, read_until_recovered: Callable[[Callable[[], Any]], Any]
) -> None:
    kill_shard(session.model._actors, 1)
    np.testing.assert_array_equal(read_until_recovered(session.model.to_numpy), single.to_numpy())
    assert session.recoveries == 1


def test_model_without_session_is_unusable_after_a_lost_shard(tmp_path: Path, kill_shard: Any) -> None:
    model = ShardedEmbedder(shards=2, **PARAMETERS).fit(edges(0, 200))
    model.save(tmp_path / "saved")
    digest = model.digest()
    kill_shard(model._actors, 1)
    for use in (model.to_numpy, lambda: model.partial_fit(edges(1))):
        with pytest.raises(StateError, match="Load the last saved model; a session recovers lost shards"):
            use()
    model.close()
    loaded = ShardedEmbedder.load(tmp_path / "saved")
    assert loaded.digest() == digest
    loaded.close()


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


@pytest.mark.parametrize(
    ("method", "shard"),
    [
        ("admit", 0),
        ("refresh_frontier", 1),
        ("spread_influence", 0),
        ("refresh_newcomers", 0),
        ("refresh_newcomers", 1),
    ],
)
def test_actor_killed_during_batch_is_recovered(session: Any, single: Embedder, method: str, shard: int) -> None:
    patch_step(session.model, shard, method, exit_process)
    for seed in range(1, 4):
        single.partial_fit(edges(seed))
        assert session.apply(edges(seed)).sequence == seed + 1
    assert session.recoveries == 1
    assert session.model.digest() == single.digest()


def test_failed_step_raises_cause_and_fails_the_session(session: Any, single: Embedder) -> None:
    """As on one machine: the batch is on disk, and is applied when the directory is opened again."""
    restore = patch_step(session.model, 1, "refresh_newcomers", run_out_of_memory)
    with pytest.raises(MemoryError, match="no room for this step"):
        session.apply(edges(1))
    restore()
    with pytest.raises(StateError, match="Open the directory again"):
        session.apply(edges(2))
    session.close()
    single.partial_fit(edges(1))
    with Session(session.directory, model=Sharded(2)) as again:
        assert again.model.digest() == single.digest()
        again.model.close()


def test_program_whose_actors_are_killed_prints_no_unhandled_errors() -> None:
    command = [sys.executable, str(Path(__file__).parent / "programs" / "losses.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '{"recovered": 3}'
    assert "Unhandled error" not in done.stdout + done.stderr
