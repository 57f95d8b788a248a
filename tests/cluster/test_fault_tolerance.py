"""Tests of recovery: shards are lost on purpose, and no read returns a wrong result."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from ripplevec.cluster import fault_tolerance
from ripplevec.cluster.fault_tolerance import FaultTolerantEngine
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.errors import FormatError, StateError
from ripplevec.parameters import Parameters

PARAMETERS: dict[str, Any] = {"dim": 4, "anchor_growth": 0, "threads": 1}


class FailingTransport(LocalTransport):
    """Shards that are lost while `down` is set, until they are reset; a reset waits for `may_continue`.

    `lose_next_results` makes a single `get` fail.
    """

    down = False
    lose_next_results = False
    reset_began = threading.Event()
    may_continue = threading.Event()
    reset_error: BaseException | None = None

    def reset(self) -> None:
        self.reset_began.set()
        self.may_continue.wait(30)
        if self.reset_error is not None:
            raise self.reset_error
        self.down = False
        super().reset()

    def run(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        if self.down:
            raise ShardLostError("gone")
        return super().run(method, *columns, **constants)

    def call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        if self.down:
            return [ShardLostError("gone")] * self.size
        return super().call(method, *columns, **constants)

    def get(self, results: Sequence[Any]) -> list[Any]:
        if self.lose_next_results:
            self.lose_next_results = False
            raise ShardLostError("gone")
        for result in results:
            if isinstance(result, ShardLostError):
                raise result
        return list(results)


class FailingShardsEmbedder(Embedder):
    def _create_engine(self, parameters: Parameters) -> Engine:
        engine = FaultTolerantEngine(FailingTransport(2, lambda index: Shard(index, 2, parameters)), parameters)
        return cast(Engine, engine)

    @property
    def transport(self) -> Any:
        return cast(Any, self.engine).transport


@pytest.fixture(autouse=True)
def let_resets_continue() -> None:
    FailingTransport.reset_began, FailingTransport.may_continue = threading.Event(), threading.Event()
    FailingTransport.may_continue.set()


def edges(seed: int, count: int = 60) -> list[tuple[int, int]]:
    return np.random.default_rng(seed).integers(0, 40, (count, 2)).tolist()


def fit_both() -> tuple[Embedder, FailingShardsEmbedder]:
    return Embedder(**PARAMETERS).fit(edges(0)), FailingShardsEmbedder(**PARAMETERS).fit(edges(0))


def test_recovery_after_restore_returns_to_restored_state() -> None:
    single, first = fit_both()
    model = FailingShardsEmbedder(**PARAMETERS)
    cast(Any, model.engine).restore(first.engine.state())
    for seed in (1, 2):
        model.transport.down = True
        assert model.digest() == single.digest()
        single.partial_fit(edges(seed))
        model.transport.down = True
        model.partial_fit(edges(seed))
    assert model.digest() == single.digest()
    model.check()


def test_failed_restore_leaves_empty_model() -> None:
    single, first = fit_both()
    model, state = FailingShardsEmbedder(**PARAMETERS), first.engine.state()
    with pytest.raises(FormatError):
        cast(Any, model.engine).restore({name: state[name] for name in state if name != "counters"})
    assert len(model) == 0
    model.fit(edges(0))
    assert model.digest() == single.digest()


def test_recovery_without_snapshot_replays_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    single, model = fit_both()
    cast(Any, model.engine).snapshot_every = 1

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(fault_tolerance, "write_arrays", full)
    for seed in (1, 2, 3):
        single.partial_fit(edges(seed))
        model.partial_fit(edges(seed))
    model.transport.down = True
    assert model.digest() == single.digest()


def test_reads_during_recovery_wait_and_see_unchanged_state() -> None:
    single, model = fit_both()
    vectors_read: list[Any] = []
    FailingTransport.reset_began.clear()
    FailingTransport.may_continue.clear()
    model.transport.down = True
    readers = [threading.Thread(target=lambda: vectors_read.append(model.to_numpy())) for _ in range(4)]
    for reader in readers:
        reader.start()
    FailingTransport.reset_began.wait(30)
    assert (model.sequence, len(model)) == (single.sequence, len(single))
    assert vectors_read == []
    FailingTransport.may_continue.set()
    for reader in readers:
        reader.join()
    assert all(np.array_equal(vectors, single.to_numpy()) for vectors in vectors_read)
    assert len(vectors_read) == 4
    assert cast(Any, model.engine).recoveries == 1


def test_lost_changes_are_read_again_until_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.cluster.shard.MAX_SUMMARY_BYTES", 0)
    single, model = fit_both()
    expected, changes = single.partial_fit(edges(1)), model.partial_fit(edges(1))
    for shard in model.transport.shards:
        shard.changed_vectors.clear()
    np.testing.assert_array_equal(expected.vectors, changes.vectors)
    outdated = model.partial_fit(edges(2))
    model.partial_fit(edges(3))
    for shard in model.transport.shards:
        shard.changed_vectors.clear()
    with pytest.raises(ShardLostError):
        outdated.vectors  # noqa: B018


def test_failed_recovery_raises_and_is_retried_later() -> None:
    single, model = fit_both()
    model.transport.down, model.transport.reset_error = True, StateError("no shards")
    with pytest.raises(StateError, match="no shards"):
        model.partial_fit(edges(1))
    with pytest.raises(StateError, match="no shards"):
        model.to_numpy()
    model.transport.reset_error = None
    assert model.digest() == single.digest()
    for embedder in (single, model):
        embedder.partial_fit(edges(1))
    assert model.digest() == single.digest()


def test_read_during_interrupted_anchor_is_told_to_retry() -> None:
    single, model = fit_both()
    transport, retried = model.transport, []
    run = transport.run

    def read() -> None:
        with pytest.raises(ShardLostError, match=r"A shard is being recovered; retry\."):
            model.to_numpy()
        retried.append(True)

    def lose_shards(method: str, *columns: Any, **constants: Any) -> Any:
        if method == "anchor" and not retried:
            transport.down = True
            reader = threading.Thread(target=read)
            reader.start()
            reader.join()
        return run(method, *columns, **constants)

    transport.run = lose_shards
    model.anchor()
    single.anchor()
    assert retried
    np.testing.assert_allclose(model.to_numpy(), single.to_numpy(), atol=1e-4)
