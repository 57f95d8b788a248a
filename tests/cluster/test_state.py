"""A model on shards that was saved goes on as if never interrupted."""

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
@pytest.mark.parametrize("parameters", [{}, {"directed": True}, {"storage": "float16", "duplicates": "replace"}])
def test_it_goes_on_in_the_same_bits(new: Any, grown: Any, same: Any, shards: int, parameters: dict[str, Any]) -> None:
    one, saved = grown(shards, **parameters)
    _, other = new(shards, **parameters)
    other.engine.restore(saved.engine.state())
    assert other.digest() == saved.digest()
    assert other.diagnostics() | {"bytes": 0} == saved.diagnostics() | {"bytes": 0}
    other.check()
    for batch in NEXT:
        changes = one.partial_fit(batch)
        assert same(changes, other.partial_fit(batch))
        assert same(changes, saved.partial_fit(batch))
        assert one.digest() == other.digest() == saved.digest()
        other.check()


@pytest.mark.parametrize("kind", ["text", "mixed"])
def test_names_of_all_kinds(new: Any, grown: Any, kind: str) -> None:
    _, saved = grown(kind=kind)
    _, other = new(3)
    other.engine.restore(saved.engine.state())
    assert (other.ids, other.digest()) == (saved.ids, saved.digest())


def test_before_the_start(new: Any) -> None:
    one, saved = new(3)
    for model in (one, saved):
        model.partial_fit([(0, 1), (1, 2)])
    _, other = new(3)
    other.engine.restore(saved.engine.state())
    path = [(number, number + 1) for number in range(20)]
    for model in (one, other):
        model.partial_fit(path)
    assert one.digest() == other.digest()
    assert other.diagnostics()["ready"]


def test_plain_arrays_by_shard(grown: Any) -> None:
    _, saved = grown(2)
    state = saved.engine.state()
    assert {"shards", "next_arrival", "counters", "rule_mu", "shard0_graph_ids_key", "shard1_vectors"} <= set(state)
    assert not any(array.dtype.hasobject for array in state.values())
    assert not any(name.startswith("shard2_") for name in state)


def test_a_copy_is_of_its_moment(new: Any, grown: Any) -> None:
    _, saved = grown()
    copy, digest, sequence = saved.engine.snapshot(), saved.digest(), saved.sequence
    for batch in NEXT:
        saved.partial_fit(batch)
    assert (copy.sequence, copy.digest()) == (sequence, digest)
    assert saved.digest() != digest
    _, other = new(3)
    other.engine.restore(copy.state())
    assert (other.sequence, other.digest()) == (sequence, digest)


def test_another_number_of_shards_is_refused(new: Any, grown: Any) -> None:
    one, saved = grown(3)
    _, other = new(2)
    with pytest.raises(FormatError, match="was on 3 shards and this cluster has 2: take as many shards"):
        other.engine.restore(saved.engine.state())
    assert len(other) == 0
    with pytest.raises(FormatError, match="not on a cluster: load it on one machine"):
        other.engine.restore(one.engine.state())


def test_files_and_copies(grown: Any, tmp_path: Path) -> None:
    _, saved = grown()
    saved.save(tmp_path / "model")
    loaded, copied = type(saved).load(tmp_path / "model"), deepcopy(saved)
    assert loaded.digest() == copied.digest() == saved.digest()


def test_self_loops_are_news_again(new: Any, grown: Any) -> None:
    """As on one machine: what has been warned of is not saved."""
    for model, fresh in zip(grown(), new(3), strict=True):
        fresh.engine.restore(model.engine.state())
        fresh.partial_fit([(0, 1)])
        with pytest.warns(SelfLoopWarning):
            fresh.partial_fit([(1, 1)])


def test_a_copy_can_be_a_snapshot(new: Any, grown: Any, tmp_path: Path) -> None:
    _, saved = grown()
    snapshots = SnapshotStore(tmp_path)
    snapshots.write(saved.engine.snapshot())
    found = snapshots.read(saved.sequence)
    _, other = new(3)
    other.engine.restore(found.arrays)
    assert other.digest() == found.digest == saved.digest()
