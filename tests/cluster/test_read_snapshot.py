"""Tests of read snapshots: a read during a long update sees the state before the update."""

from __future__ import annotations

import gc
import threading
from typing import Any, cast

import pytest
from histories import Reference, State, make_batches, read_state

from ripplevec import Embedder
from ripplevec.cluster.driver_reads import ReadSnapshot
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.engine.engine import Engine
from ripplevec.errors import StateError
from ripplevec.parameters import Parameters

PARAMETERS: dict[str, Any] = {
    "dim": 6, "anchor_growth": 0.1, "anchor_pace": "immediate", "change_threshold": 0.0, "seed": 3, "threads": 1
}  # fmt: skip
BATCHES = make_batches(12)


class LocalShardsEmbedder(Embedder):
    def _create_engine(self, parameters: Parameters) -> Engine:
        return cast(Engine, ClusterEngine(LocalTransport(3, lambda index: Shard(index, 3, parameters)), parameters))

    @property
    def shards(self) -> list[Shard]:
        return list(cast(Any, self.engine).transport.shards)


def test_reads_during_anchor_see_previous_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    reference_model = LocalShardsEmbedder(**PARAMETERS)
    reference = Reference.of(reference_model, reference_model.partial_fit, BATCHES)
    assert reference_model.engine.anchors >= 2
    model, states = LocalShardsEmbedder(**PARAMETERS), list[State]()
    original_anchor = Shard.anchor

    def read_during_anchor(shard: Shard, **arguments: Any) -> Any:
        summary = original_anchor(shard, **arguments)
        if shard.index:
            return summary
        reader = threading.Thread(target=lambda: states.append(read_state(model)), daemon=True)
        reader.start()
        reader.join(30)
        return summary

    monkeypatch.setattr(Shard, "anchor", read_during_anchor)
    for sequence, batch in enumerate(BATCHES):
        reads_before = len(states)
        anchored = model.partial_fit(batch).anchored
        if len(states) > reads_before:
            assert anchored
            assert states[-1].sequence == sequence
        reference.check(read_state(model))
    assert len(states) >= 1
    for state in states:
        reference.check(state)
    assert model.digest() == reference_model.digest()


def test_snapshots_on_shards_are_dropped_after_the_update() -> None:
    model = LocalShardsEmbedder(**PARAMETERS)
    model.fit(BATCHES[0])
    model.anchor()
    gc.collect()
    assert [len(shard.snapshots) for shard in model.shards] == [0, 0, 0]


def test_read_from_lost_snapshot_raises_shard_lost() -> None:
    model = LocalShardsEmbedder(**PARAMETERS).fit(BATCHES[0])
    snapshot = ReadSnapshot(cast(Any, model.engine))
    assert snapshot.get_vectors(snapshot.rows_by_arrival()).tobytes() == model.to_numpy().tobytes()
    for shard in model.shards:
        shard.snapshots.clear()
    with pytest.raises(ShardLostError, match=r"A shard is being recovered; retry\."):
        snapshot.rows_by_arrival()


def test_failed_anchor_makes_model_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some shards may have new vectors and others not: there is no copy to return to."""
    model = LocalShardsEmbedder(**PARAMETERS).fit(BATCHES[0])

    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Shard, "anchor", fail)
        with pytest.raises(MemoryError):
            model.anchor()
    with pytest.raises(StateError, match=r"unusable: an update was interrupted \(MemoryError.*Load a saved model"):
        model.to_numpy()
