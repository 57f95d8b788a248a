"""A model on shards as arrays: the same whether they are here all at once or those of one shard at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.cluster.checkpoint import gather_state, lazy_state, saved_shard_count, split_state
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.embedder import Embedder
from ripplevec.errors import FormatError
from ripplevec.util.checked_directory import read_arrays, write_arrays


def on_shards(shards: int, **parameters: Any) -> ClusterEngine:
    known = Embedder(**{"dim": 4, "threads": 1, "anchor_growth": 0, **parameters})._parameters()
    return ClusterEngine(LocalTransport(shards, lambda number: Shard(number, shards, known)), known)


def test_pieces_are_the_state_and_every_shard_is_fetched_once(grown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = grown(3)[1]._engine
    whole, fetched = gather_state(engine), 0
    get = engine.transport.get

    def counted(answers: Sequence[Any]) -> list[Any]:
        nonlocal fetched
        fetched += len(answers)
        return get(answers)

    monkeypatch.setattr(engine.transport, "get", counted)
    found = {name: array.copy() for name, array in lazy_state(engine).items()}
    assert fetched == 3
    assert list(found) == list(whole)
    assert all(np.array_equal(found[name], whole[name]) for name in whole)


def test_a_piece_can_be_asked_for_by_name(grown: Any) -> None:
    engine = grown(3)[1]._engine
    pieces, whole = lazy_state(engine), gather_state(engine)
    assert len(pieces) == len(whole)
    for name in ("shard2_vectors", "shards", "shard0_placed", "counters"):
        assert np.array_equal(pieces[name], whole[name])
    for name in ("shard0_nothing", "nothing", "shards_", "shardy_placed"):
        with pytest.raises(KeyError):
            pieces[name]


def test_what_is_of_one_moment_stays_so_while_batches_go_on(grown: Any) -> None:
    model = grown(3)[1]
    whole, pieces = gather_state(model._engine), lazy_state(model._engine)
    model.partial_fit([("new", name) for name in model.ids[:20]])
    assert all(np.array_equal(array, whole[name]) for name, array in pieces.items())


def test_pieces_can_be_written_and_read_from_the_disk_as_they_are_needed(grown: Any, tmp_path: Path) -> None:
    one, other = grown(3)
    write_arrays(tmp_path / "state", lazy_state(other._engine), {})
    arrays, _ = read_arrays(tmp_path / "state", mapped=True)
    assert isinstance(arrays["shard0_vectors"], np.memmap)
    digest = other.digest()
    other.partial_fit([("new", name) for name in other.ids[:20]])
    other._engine.restore(arrays)
    assert other.digest() == digest == one.digest()


def test_a_state_of_other_shards_or_of_none_is_refused(grown: Any) -> None:
    state = gather_state(grown(3)[1]._engine)
    assert saved_shard_count(state) == len(split_state(state, 3)) == 3
    with pytest.raises(FormatError, match="was on 3 shards and this cluster has 2"):
        split_state(state, 2)
    with pytest.raises(FormatError, match="was not on a cluster"):
        saved_shard_count({})


@pytest.mark.parametrize("directed", [False, True])
def test_restore_of_tampered_shards_is_refused(directed: bool) -> None:
    random = np.random.default_rng(5)
    engine = on_shards(3, directed=directed)
    engine.apply(Batch.from_any(random.integers(0, 40, (120, 2))))
    state = gather_state(engine)
    other = on_shards(3, directed=directed)
    other.restore(state)
    assert other.digest() == engine.digest()
    changes: dict[str, tuple[int, Any]] = {
        "shard1_graph_edges_neighbor": (2, 10**6),  # a row that is not there
        "shard2_graph_edges_neighbor": (1, -(10**6)),  # one of another shard that is not there
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
            on_shards(3, directed=directed).restore(tampered)
    edge = state["shard0_graph_edges_neighbor"].copy()
    first, second = (np.flatnonzero(edge < 0)[[0, -1]]).tolist()
    edge[[first, second]] = edge[[second, first]]  # ends that are there, of edges that the other shards do not know
    with pytest.raises(FormatError, match="damaged"):
        on_shards(3, directed=directed).restore({**state, "shard0_graph_edges_neighbor": edge})
