"""Tests of a shard: read snapshots, vectors set by the driver, traffic, and the vectors that a batch changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.shard import SNAPSHOT_GONE, Shard

EDGES = [(vertex, (vertex + step) % 40) for vertex in range(40) for step in (1, 3, 8)]


@pytest.fixture(params=[1, 3])
def cluster(request: pytest.FixtureRequest, new_cluster: Any) -> ClusterEngine:
    cluster: ClusterEngine = new_cluster(request.param, depth=2)
    cluster.start(Batch.from_any(EDGES))
    return cluster


def shards_of(cluster: Any) -> list[Shard]:
    return list(cluster.transport.shards)


def test_snapshot_after_a_batch_still_has_the_old_state(cluster: ClusterEngine) -> None:
    shards = shards_of(cluster)
    before = [shard.store.vectors[: shard.graph.row_count].copy() for shard in shards]
    for shard in shards:
        shard.create_read_snapshot(7)
    cluster.apply(Batch.from_any([("new", 0), ("new", 1), (0, 20)]))
    for shard, vectors in zip(shards, before, strict=True):
        rows = np.arange(len(vectors))
        arguments: dict[str, Any] = {"snapshot": 7, "read_method": "read_rows", "constants": {"attribute": "vectors"}}
        assert np.array_equal(shard.query_read_snapshot(rows, **arguments), vectors)
    total = sum(
        shard.query_read_snapshot(snapshot=7, read_method="sizes", constants={})["vertices"] for shard in shards
    )
    assert (total, len(cluster)) == (40, 41)


def test_query_of_dropped_snapshot_reports_that_it_is_gone(cluster: ClusterEngine) -> None:
    shard = shards_of(cluster)[0]
    shard.create_read_snapshot(1)
    shard.drop_read_snapshot(1)
    shard.drop_read_snapshot(1)
    assert shard.query_read_snapshot(snapshot=1, read_method="sizes", constants={}) == SNAPSHOT_GONE


def test_set_vectors_places_only_rows_with_edges(new_cluster: Any) -> None:
    cluster = new_cluster(1)
    cluster.apply(Batch.from_any([("a", "b"), ("isolated", "isolated")]))
    (shard,) = shards_of(cluster)
    rows, vectors = cluster.rows_of(["a", "isolated"]), np.arange(8, dtype=np.float32).reshape(2, 4)
    shard.set_vectors(rows, vectors)
    assert np.array_equal(shard.read_rows(rows, "vectors"), vectors)
    assert shard.read_rows(rows, "placed").tolist() == [1, 0]


def test_traffic_on_one_shard_is_zero_and_on_several_is_not(new_cluster: Any) -> None:
    for shards in (1, 3):
        cluster = new_cluster(shards)
        cluster.start(Batch.from_any(EDGES))
        cluster.apply(Batch.from_any([(f"new {i}", j) for i in range(20) for j in (i, i + 7)]))
        traffic = cluster.query("traffic")
        sent, needed = (sum(part[name] for part in traffic) for name in ("sent", "needed"))
        assert 0 <= needed <= sent
        assert (sent > 0) == (shards > 1)


def test_batch_leaves_no_recorded_changes_and_no_halo(cluster: ClusterEngine) -> None:
    cluster.apply(Batch.from_any([("new", 0), ("new", 13), (5, 25)]))
    for shard in shards_of(cluster):
        changes = shard.take_changes()
        assert (changes.edges, changes.endpoints.shape) == (0, (0, 2))
        rows = shard.graph.row_count
        assert (shard.graph.arrival[rows:] == -1).all()
        assert not shard.store.placed[rows:].any()
        assert shard.find_fault() == ""


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_changed_vectors_stay_readable_after_later_batches(
    cluster: ClusterEngine, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("ripplevec.cluster.shard.MAX_SUMMARY_BYTES", limit)
    changes = cluster.build_changes(cluster.apply(Batch.from_any([("new", 0), ("new", 13)])))
    expected = cluster.get_vectors(cluster.rows_of(changes.ids))
    cluster.apply(Batch.from_any([("other", "new"), ("other", 0), ("other", 13)]))
    assert np.array_equal(changes.vectors, expected)


def test_changed_vectors_that_are_not_read_any_more_are_dropped(
    cluster: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ripplevec.cluster.shard.MAX_SUMMARY_BYTES", 0)
    for number in range(10):
        outcome = cluster.apply(Batch.from_any([(f"new {number}", 0)]))
        if number % 2:  # other changes are never asked for, as in a recovery
            cluster.build_changes(outcome)
    assert all(len(shard.changed_vectors) <= 2 for shard in shards_of(cluster))
