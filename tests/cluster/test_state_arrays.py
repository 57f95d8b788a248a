"""Tests of saved state as arrays: gathered at once, or fetched one shard at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.cluster.state_arrays import lazy_state, saved_shard_count, split_state
from ripplevec.errors import FormatError
from ripplevec.util.checked_directory import read_arrays, write_arrays


def test_lazy_state_equals_state_and_fetches_each_shard_once(
    grown_models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = grown_models(3)[1]._engine
    state, fetched = dict(lazy_state(engine)), 0
    get = engine.transport.get

    def count_fetched(results: Sequence[Any]) -> list[Any]:
        nonlocal fetched
        fetched += len(results)
        return get(results)

    monkeypatch.setattr(engine.transport, "get", count_fetched)
    copied = {name: array.copy() for name, array in lazy_state(engine).items()}
    assert fetched == 3
    assert list(copied) == list(state)
    assert all(np.array_equal(copied[name], state[name]) for name in state)


def test_lazy_state_returns_arrays_by_name(grown_models: Any) -> None:
    engine = grown_models(3)[1]._engine
    lazy, state = lazy_state(engine), dict(lazy_state(engine))
    assert len(lazy) == len(state)
    for name in ("shard2_vectors", "shards", "shard0_placed", "counters"):
        assert np.array_equal(lazy[name], state[name])
    for name in ("shard0_nothing", "nothing", "shards_", "shardy_placed"):
        with pytest.raises(KeyError):
            lazy[name]


def test_lazy_state_is_unaffected_by_later_batches(grown_models: Any) -> None:
    model = grown_models(3)[1]
    state, lazy = dict(lazy_state(model._engine)), lazy_state(model._engine)
    model.partial_fit([("new", name) for name in model.ids[:20]])
    assert all(np.array_equal(array, state[name]) for name, array in lazy.items())


def test_lazy_state_written_to_disk_restores_model(grown_models: Any, tmp_path: Path) -> None:
    single, sharded = grown_models(3)
    write_arrays(tmp_path / "state", lazy_state(sharded._engine), {})
    arrays, _ = read_arrays(tmp_path / "state", mapped=True)
    assert isinstance(arrays["shard0_vectors"], np.memmap)
    digest = sharded.digest()
    sharded.partial_fit([("new", name) for name in sharded.ids[:20]])
    sharded._engine.restore(arrays)
    assert sharded.digest() == digest == single.digest()


def test_split_state_with_wrong_shard_count_raises(grown_models: Any) -> None:
    state = dict(lazy_state(grown_models(3)[1]._engine))
    assert saved_shard_count(state) == len(split_state(state, 3)) == 3
    with pytest.raises(FormatError, match="expected 3 as in the saved model, got 2"):
        split_state(state, 2)
    with pytest.raises(FormatError, match="got one saved on one machine"):
        saved_shard_count({})


@pytest.mark.parametrize("directed", [False, True])
def test_restore_of_tampered_state_is_refused(new_cluster: Any, directed: bool) -> None:
    random = np.random.default_rng(5)
    engine = new_cluster(3, directed=directed)
    engine.apply(Batch.from_any(random.integers(0, 40, (120, 2))))
    state = dict(lazy_state(engine))
    sharded = new_cluster(3, directed=directed)
    sharded.restore(state)
    assert sharded.digest() == engine.digest()
    changes: dict[str, tuple[int, Any]] = {
        "shard1_graph_edges_neighbor": (2, 10**6),  # a row that does not exist
        "shard2_graph_edges_neighbor": (1, -(10**6)),  # a row code that does not exist
        "shard0_graph_edges_weight": (0, 7.5),
        "shard0_graph_arrival": (0, state["shard1_graph_arrival"][0]),
        "shard1_vectors": (0, np.nan),
        "shard2_placed": (0, 3),
        "counters": (0, -1),
    }
    for name, (at, value) in changes.items():
        tampered = {**state, name: state[name].copy()}
        tampered[name][at] = value
        with pytest.raises(FormatError, match="damaged"):
            new_cluster(3, directed=directed).restore(tampered)
    edge = state["shard0_graph_edges_neighbor"].copy()
    first, second = (np.flatnonzero(edge < 0)[[0, -1]]).tolist()
    edge[[first, second]] = edge[[second, first]]  # existing rows, but edges that the other shards have no record of
    with pytest.raises(FormatError, match="damaged"):
        new_cluster(3, directed=directed).restore({**state, "shard0_graph_edges_neighbor": edge})
