"""Tests of the cluster engine: counts, removals, self-loops, snapshots and state. Vectors: test_same_answer.py."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op, id_column
from ripplevec.errors import SelfLoopWarning, UnknownEdgeError
from ripplevec.graph.batch_validation import check_batch

RING = [(vertex, (vertex + step) % 30) for vertex in range(30) for step in (1, 4)]
SHARDS = pytest.mark.parametrize("shards", [1, 2, 5])


@SHARDS
def test_start_counts_vertices_edges_and_events(new_cluster: Any, shards: int) -> None:
    cluster = new_cluster(shards)
    cluster.start(Batch.from_any(RING))
    assert (len(cluster), cluster.edges, cluster.next_arrival, cluster.events) == (30, 60, 30, 60)
    assert cluster.ready
    assert cluster.placed(cluster.rows_by_arrival()).all()
    cluster.check()


def test_start_with_empty_batch_is_not_ready(new_cluster: Any) -> None:
    cluster = new_cluster(3)
    cluster.start(Batch.from_any([]))
    assert (len(cluster), cluster.edges, cluster.ready) == (0, 0, False)


@SHARDS
def test_apply_returns_moved_rows_and_first_new_number(new_cluster: Any, shards: int) -> None:
    cluster = new_cluster(shards)
    cluster.start(Batch.from_any(RING))
    outcome = cluster.apply(Batch.from_any([("new", 0), ("newer", "new")]))
    assert (outcome.first_new, outcome.removed, outcome.anchored) == (30, [], False)
    assert {"new", "newer"} <= set(cluster.ids_of(outcome.moved))
    assert np.unique(outcome.moved).size == outcome.moved.size
    assert (len(cluster), cluster.edges, cluster.sequence) == (32, 62, 1)


@SHARDS
def test_vertex_removed_and_added_again_is_not_reported_as_removed(new_cluster: Any, shards: int) -> None:
    cluster = new_cluster(shards)
    cluster.start(Batch.from_any(RING))
    op = [Op.REMOVE_VERTEX, Op.REMOVE_VERTEX, Op.ADD]
    outcome = cluster.apply(Batch.of([3, 9, 3], [3, 9, 12], op=op))
    assert outcome.removed == [9]
    assert cluster.find_row(9) == -1
    assert (len(cluster), cluster.edges) == (29, 60 - 8 + 1)
    assert cluster.arrival_numbers(cluster.rows_of(id_column([3]))).tolist() == [30]
    cluster.check()


@SHARDS
def test_new_vertex_removed_in_the_same_batch_leaves_no_trace(new_cluster: Any, shards: int) -> None:
    cluster = new_cluster(shards)
    cluster.start(Batch.from_any(RING))
    op = [Op.ADD, Op.ADD, Op.REMOVE_VERTEX, Op.ADD]
    outcome = cluster.apply(Batch.of(["x", "x", "x", "y"], [0, 1, "x", 2], op=op))
    assert outcome.removed == ["x"]
    assert "y" in cluster.ids_of(outcome.moved)
    assert (len(cluster), cluster.edges) == (31, 61)
    cluster.check()


def test_refused_batch_changes_nothing(new_cluster: Any) -> None:
    cluster = new_cluster(3)
    cluster.start(Batch.from_any(RING))
    digest, counters = cluster.digest(), cluster.counters()
    with pytest.raises(UnknownEdgeError):
        check_batch(cluster.graph_lookup, Batch.of(["new", 0], [0, 15], op=[Op.ADD, Op.REMOVE]))
    assert (cluster.digest(), cluster.counters(), len(cluster)) == (digest, counters, 30)


def test_self_loops_are_ignored_and_warned_about_once(new_cluster: Any) -> None:
    cluster = new_cluster(2)
    cluster.start(Batch.from_any(RING))
    cluster.apply(Batch.from_any([(1, 1), (2, 2)]))
    assert (cluster.loops, cluster.edges) == (2, 60)
    with pytest.warns(SelfLoopWarning, match="Self-loops are ignored"):
        cluster.warn_self_loops()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster.warn_self_loops()


def test_apply_arrival_has_no_fast_path(new_cluster: Any) -> None:
    assert new_cluster(2).apply_arrival(id_column(["new", 0]), None) == -1


def test_may_trigger_anchor_only_if_growth_may_be_exceeded(new_cluster: Any) -> None:
    cluster = new_cluster(2, anchor_growth=0.5)
    cluster.start(Batch.from_any(RING))
    cluster.apply(Batch.from_any([("first", 0)]))
    assert not cluster.may_trigger_anchor(Batch.from_any([("new", 0)]))
    large = Batch.from_any([(f"new {number}", number) for number in range(30)])
    assert cluster.may_trigger_anchor(large)
    assert cluster.apply(large).anchored
    never = new_cluster(2, anchor_growth=0)
    never.start(Batch.from_any(RING))
    assert not never.may_trigger_anchor(large)


def test_fork_for_update_returns_snapshot_of_the_state_before(new_cluster: Any) -> None:
    cluster = new_cluster(3)
    cluster.start(Batch.from_any(RING))
    rows = cluster.rows_by_arrival()
    snapshot, engine = cluster.fork_for_update()
    assert engine is cluster
    vectors = cluster.get_vectors(rows)
    cluster.apply(Batch.from_any([("new", 0), (3, 17)]))
    assert (len(snapshot), snapshot.edges, snapshot.sequence) == (30, 60, 0)
    assert np.array_equal(snapshot.get_vectors(snapshot.rows_by_arrival()), vectors)


def test_removal_of_last_edge_resets_the_start(new_cluster: Any) -> None:
    cluster = new_cluster(2)
    cluster.start(Batch.from_any(RING))
    pairs = np.array(RING)
    cluster.apply(Batch.of(pairs[:, 0], pairs[:, 1], op=np.full(len(RING), Op.REMOVE, np.int8)))
    assert (cluster.edges, cluster.ready, len(cluster)) == (0, False, 30)
    assert not cluster.placed(cluster.rows_by_arrival()).any()


def test_restore_brings_back_counts_and_digest(new_cluster: Any) -> None:
    cluster, restored = new_cluster(3), new_cluster(3)
    cluster.start(Batch.from_any(RING))
    cluster.apply(Batch.from_any([("new", 0), (2, 2)]))
    restored.restore(cluster.state())
    assert (len(restored), restored.edges, restored.next_arrival) == (31, 61, 31)
    assert restored.counters() == cluster.counters()
    assert restored.digest() == cluster.digest() == cluster.snapshot().digest()
