"""Whoever reads a model on shards beside a change that takes long sees the state before it."""

from __future__ import annotations

import gc
import threading
from typing import Any, cast

import pytest
from histories import Reference, State, seen, stream

from ripplevec import Embedder
from ripplevec.cluster import anchor as anchors
from ripplevec.cluster.fault_tolerance import FaultTolerantEngine
from ripplevec.cluster.read_snapshot import ReadSnapshot
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport, ShardLostError
from ripplevec.engine.engine import Engine
from ripplevec.parameters import Parameters

HOW: dict[str, Any] = {"dim": 6, "anchor_growth": 0.1, "change_threshold": 0.0, "seed": 3, "threads": 1}
BATCHES = stream(12)


class OnShards(Embedder):
    def _create_engine(self, parameters: Parameters) -> Engine:
        return cast(
            Engine, FaultTolerantEngine(LocalTransport(3, lambda number: Shard(number, 3, parameters)), parameters)
        )

    @property
    def shards(self) -> list[Shard]:
        return list(cast(Any, self.engine).transport.shards)


def test_readers_during_a_correction_on_shards_see_the_batch_before(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = OnShards(**HOW)
    reference = Reference.of(alone, alone.partial_fit, BATCHES)
    assert alone.engine.anchors >= 2
    model, states, work = OnShards(**HOW), list[State](), anchors.anchor

    def looking(*arguments: Any) -> Any:
        found = work(*arguments)
        reader = threading.Thread(target=lambda: states.append(seen(model)), daemon=True)
        reader.start()
        reader.join(30)
        return found

    monkeypatch.setattr(anchors, "anchor", looking)
    for number, batch in enumerate(BATCHES):
        looks = len(states)
        anchored = model.partial_fit(batch).anchored
        if len(states) > looks:
            assert anchored
            assert states[-1].sequence == number
        reference.check(seen(model))
    assert len(states) >= 1
    for state in states:
        reference.check(state)
    assert model.digest() == alone.digest()


def test_copies_on_shards_are_dropped_after_the_change() -> None:
    model = OnShards(**HOW)
    model.fit(BATCHES[0])
    model.anchor()
    gc.collect()
    assert [len(shard.snapshots) for shard in model.shards] == [0, 0, 0]


def test_copies_that_have_gone_are_to_be_asked_for_again() -> None:
    model = OnShards(**HOW).fit(BATCHES[0])
    held = ReadSnapshot(cast(Any, model.engine))
    assert held.serve(held.rows_by_arrival()).tobytes() == model.to_numpy().tobytes()
    cast(Any, model.engine).transport.reset()
    with pytest.raises(ShardLostError, match="ask again"):
        held.rows_by_arrival()


def test_a_change_on_shards_that_fails_leaves_the_state_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnShards(**HOW).fit(BATCHES[0])
    digest = model.digest()

    def fail(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(anchors, "anchor", fail)
        with pytest.raises(MemoryError):
            model.anchor()
    assert model.digest() == digest
    assert isinstance(model.engine, FaultTolerantEngine)
    model.check()
