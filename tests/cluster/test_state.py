"""Tests of saved state: a restored model on shards continues as if it had never been interrupted."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.errors import FormatError, SelfLoopWarning

NEXT = [
    Batch.of([0, 1, "new", 70], [5, 9, 0, "new"], weight=np.array([0.3, 2.0, 1.0, 0.7])),
    Batch.of([2, 71, 3], [2, 0, 72], op=[Op.REMOVE_VERTEX, Op.ADD, Op.ADD]),
    Batch.of([73, 2, 4], [74, 75, 73]),
]


@pytest.mark.parametrize("shards", [1, 3, 5])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"directed": True},
        {"storage": "float16", "duplicates": "replace"},
        {"half_life": 3.0, "expire_after": 9.0},
        {"rule": "paper", "depth": 2, "reuse_influence": True},
    ],
)
def test_restored_model_continues_bit_for_bit(
    new_models: Any, grown_models: Any, changes_equal: Any, shards: int, parameters: dict[str, Any]
) -> None:
    single, saved = grown_models(shards, **parameters)
    _, sharded = new_models(shards, **parameters)
    sharded.engine.restore(saved.engine.state())
    assert sharded.digest() == saved.digest()
    assert sharded.diagnostics() | {"bytes": 0} == saved.diagnostics() | {"bytes": 0}
    sharded.check()
    for batch in NEXT:
        changes = single.partial_fit(batch)
        assert changes_equal(changes, sharded.partial_fit(batch))
        assert changes_equal(changes, saved.partial_fit(batch))
        assert single.digest() == sharded.digest() == saved.digest()
        sharded.check()


@pytest.mark.parametrize("kind", ["text", "mixed"])
def test_restore_preserves_all_kinds_of_ids(new_models: Any, grown_models: Any, kind: str) -> None:
    _, saved = grown_models(kind=kind)
    _, sharded = new_models(3)
    sharded.engine.restore(saved.engine.state())
    assert (sharded.ids, sharded.digest()) == (saved.ids, saved.digest())


def test_restore_before_the_start_continues_bit_for_bit(new_models: Any) -> None:
    single, saved = new_models(3)
    for model in (single, saved):
        model.partial_fit([(0, 1), (1, 2)])
    _, sharded = new_models(3)
    sharded.engine.restore(saved.engine.state())
    path = [(number, number + 1) for number in range(20)]
    for model in (single, sharded):
        model.partial_fit(path)
    assert single.digest() == sharded.digest()
    assert sharded.diagnostics()["ready"]


def test_state_has_plain_arrays_per_shard(grown_models: Any) -> None:
    _, saved = grown_models(2)
    state = saved.engine.state()
    assert {"shards", "next_arrival", "counters", "rule_mu", "shard0_graph_ids_key", "shard1_vectors"} <= set(state)
    assert not any(array.dtype.hasobject for array in state.values())
    assert not any(name.startswith("shard2_") for name in state)


def test_snapshot_is_unaffected_by_later_batches(new_models: Any, grown_models: Any) -> None:
    _, saved = grown_models()
    snapshot, digest, sequence = saved.engine.snapshot(), saved.digest(), saved.sequence
    for batch in NEXT:
        saved.partial_fit(batch)
    assert (snapshot.sequence, snapshot.digest()) == (sequence, digest)
    assert saved.digest() != digest
    _, sharded = new_models(3)
    sharded.engine.restore(snapshot.state())
    assert (sharded.sequence, sharded.digest()) == (sequence, digest)


def test_restore_on_other_shard_count_is_refused(new_models: Any, grown_models: Any) -> None:
    single, saved = grown_models(3)
    _, sharded = new_models(2)
    with pytest.raises(FormatError, match=r"expected 3 as in the saved model, got 2\. Open the model with 3 shards"):
        sharded.engine.restore(saved.engine.state())
    assert len(sharded) == 0
    with pytest.raises(FormatError, match=r"got one saved on one machine\. Load it with Embedder\.load"):
        sharded.engine.restore(single.engine.state())


def test_saved_and_copied_models_have_equal_digests(grown_models: Any, tmp_path: Path) -> None:
    _, saved = grown_models()
    saved.save(tmp_path / "model")
    loaded, copied = type(saved).load(tmp_path / "model"), deepcopy(saved)
    assert loaded.digest() == copied.digest() == saved.digest()


def test_restored_model_warns_about_self_loops_again(new_models: Any, grown_models: Any) -> None:
    """As on one machine, the saved state does not record whether a warning was given."""
    for model, fresh in zip(grown_models(), new_models(3), strict=True):
        fresh.engine.restore(model.engine.state())
        fresh.partial_fit([(0, 1)])
        with pytest.warns(SelfLoopWarning):
            fresh.partial_fit([(1, 1)])


def test_snapshot_can_be_written_and_restored(new_models: Any, grown_models: Any, tmp_path: Path) -> None:
    _, saved = grown_models()
    snapshots = SnapshotStore(tmp_path)
    snapshots.write(saved.engine.snapshot())
    snapshot = snapshots.read(saved.sequence)
    _, sharded = new_models(3)
    sharded.engine.restore(snapshot.arrays)
    assert sharded.digest() == snapshot.digest == saved.digest()
