"""Tests of the batch step on shards: waves, frontiers and rounds, as seen in the operations that the shards run."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.batch import Batch, Op
from ripplevec.cluster import ShardedEmbedder
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.routing import assign_shards
from ripplevec.cluster.shard_step import ShardBackend
from ripplevec.rules.batch_step import RowWorker

RING = [(vertex, (vertex + step) % 30) for vertex in range(30) for step in (1, 2, 5)]


@pytest.fixture
def start(new_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that starts a cluster with a ring, and counts the operations of its first shard."""

    def start(shards: int = 2, **parameters: Any) -> tuple[ClusterEngine, Counter[str]]:
        cluster, counts = new_cluster(shards, **parameters), Counter[str]()
        cluster.start(Batch.from_any(RING))
        for name in ("_place_frontier", "refresh_frontier", "spread_influence"):
            monkeypatch.setattr(ShardBackend, name, counted(getattr(ShardBackend, name), name, counts))
        return cluster, counts

    return start


def counted(function: Any, name: str, counts: Counter[str]) -> Any:
    def call(backend: ShardBackend, *arguments: Any, **options: Any) -> Any:
        counts[name] += backend.mesh.index == 0
        return function(backend, *arguments, **options)

    return call


def ids_on_shard(shard: int, shards: int, count: int, first: int = 1000) -> list[int]:
    """Return integer ids from `first` on that are assigned to a shard."""
    candidates = np.arange(first, first + 100 * shards)
    return candidates[assign_shards(candidates, shards) == shard][:count].tolist()


@pytest.mark.parametrize(("alternating", "waves"), [(True, 5), (False, 1)])
def test_chain_of_new_vertices_takes_a_wave_per_change_of_shard(
    start: Any, monkeypatch: pytest.MonkeyPatch, alternating: bool, waves: int
) -> None:
    cluster, _ = start()
    pushes, push = Counter[int](), ShardBackend._push_placed

    def count_push(backend: ShardBackend, *arguments: Any) -> None:
        pushes[backend.mesh.index] += 1
        push(backend, *arguments)

    monkeypatch.setattr(ShardBackend, "_push_placed", count_push)
    on_first, on_second = ids_on_shard(0, 2, 5), ids_on_shard(1, 2, 5)
    chain = [(on_first if i % 2 and alternating else on_second)[i] for i in range(5)]
    cluster.apply(Batch.from_any([(0, chain[0]), *itertools.pairwise(chain)]))
    assert pushes[0] == pushes[1] == waves + 1  # before each wave, and before the second refresh
    assert cluster.placed(cluster.rows_of(chain)).all()


@pytest.mark.parametrize("shards", [2, 5])
def test_arrivals_that_do_not_read_each_other_take_seven_exchanges(
    start: Any, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    cluster, counts = start(shards)
    mesh = type(cluster.transport.shards[0].mesh)
    exchanges = Counter[int]()

    def count_calls(exchange: Any) -> Any:
        def count_exchange(mesh: Any, *parts: Any, **numbers: Any) -> Any:
            exchanges[mesh.index] += 1
            return exchange(mesh, *parts, **numbers)

        return count_exchange

    for method in (mesh.exchange, mesh.exchange_rows):
        monkeypatch.setattr(mesh, method.__name__, count_calls(method))
    cluster.apply(Batch.from_any([(f"new {i}", vertex) for i in range(20) for vertex in (i, i + 3, i + 7)]))
    assert counts["refresh_frontier"] == counts["spread_influence"] == 1
    assert exchanges == dict.fromkeys(range(shards), 7)


@pytest.mark.parametrize(("max_reads", "again"), [(4096, 0), (3, 2)])
def test_requests_of_a_frontier_are_sent_again_if_it_reads_a_sample(
    start: Any, monkeypatch: pytest.MonkeyPatch, max_reads: int, again: int
) -> None:
    cluster, counts = start(2, max_reads=max_reads, depth=1)
    monkeypatch.setattr(ShardBackend, "_fetch_halo", counted(ShardBackend._fetch_halo, "_fetch_halo", counts))
    pairs = [(vertex, vertex + 3) for vertex in range(27)]  # changed edges, of vertices with six neighbors or more
    cluster.apply(Batch.from_any(pairs))
    assert counts["refresh_frontier"] == 2
    assert counts["_fetch_halo"] == again


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_arrivals_that_place_existing_vertices_give_the_bits_of_one_machine(depth: int) -> None:
    ring = [(vertex, (vertex + step) % 40) for vertex in range(40) for step in (1, 2, 5)]
    arrivals = [("n0", 3), ("n0", "a"), ("n1", 4), ("n1", 3), ("n2", "n1"), ("n2", 9)]
    models = (
        Embedder(dim=4, anchor_growth=0, depth=depth),
        ShardedEmbedder(shards=3, address="in-process", dim=4, anchor_growth=0, depth=depth),
    )
    for model in models:
        model.fit(ring)
        model.partial_fit([("m", 3), ("m", 8)])
        model.partial_fit([("a", "b"), ("b", "c")])  # not connected to the ring: unplaced
        model.partial_fit(arrivals)
    assert models[0].digest() == models[1].digest()
    assert read_stamps(models[0]) == read_stamps(
        models[1]
    )  # an approximate index looks for changed vectors by these stamps


def read_stamps(model: Any) -> list[int]:
    """Return, for each vertex in order of arrival, the stamp of the last batch that reached it."""
    if not isinstance(model, ShardedEmbedder):
        return model.engine.store.seen[model.engine.graph.rows_by_arrival()].tolist()
    shards = model.engine.transport.shards
    codes = model.engine.rows_by_arrival().tolist()
    return [int(shards[code % len(shards)].store.seen[code // len(shards)]) for code in codes]


def test_existing_unplaced_path_is_placed_frontier_by_frontier(start: Any) -> None:
    cluster, counts = start(3)
    cluster.apply(Batch.from_any([("p0", "p1"), ("p1", "p2"), ("p2", "p3")]))
    assert not cluster.placed(cluster.rows_of(["p0", "p1", "p2", "p3"])).any()
    counts.clear()
    cluster.apply(Batch.from_any([(0, "p0")]))
    assert cluster.placed(cluster.rows_of(["p0", "p1", "p2", "p3"])).all()
    assert counts["_place_frontier"] == 4


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_influence_spreads_at_most_to_the_depth_of_the_rule(start: Any, depth: int) -> None:
    cluster, counts = start(depth=depth)
    for seed in range(5):
        counts.clear()
        pairs = np.random.default_rng(seed).integers(0, 30, (20, 2))
        cluster.apply(Batch.from_any(pairs[pairs[:, 0] != pairs[:, 1]]))
        assert counts["spread_influence"] <= depth
        assert counts["refresh_frontier"] <= depth + 1


def test_batch_without_reads_left_refreshes_no_existing_vertex(start: Any) -> None:
    cluster, counts = start(max_reads=1, depth=3)
    cluster.apply(Batch.from_any([("new", 0)]))
    assert counts["refresh_frontier"] == 0
    assert cluster.placed(cluster.rows_of(["new"])).all()


@pytest.mark.parametrize("failing", [0, 1])
def test_error_on_one_shard_stops_all(start: Any, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    cluster, _ = start(2)
    refresh = RowWorker.refresh

    def fail(worker: RowWorker, *arguments: Any) -> None:
        if worker.seen is cluster.transport.shards[failing].store.seen:  # type: ignore[attr-defined]
            raise MemoryError("no room")
        refresh(worker, *arguments)

    monkeypatch.setattr(RowWorker, "refresh", fail)
    with pytest.raises(MemoryError, match="no room"):
        cluster.apply(Batch.from_any([("new", 0), ("new", 3), ("other", "new")]))


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_edge_count_after_batches_matches_a_plain_set(new_cluster: Any, shards: int) -> None:
    cluster, edges = new_cluster(shards), {frozenset(edge) for edge in RING}
    cluster.start(Batch.from_any(RING))
    rng = np.random.default_rng(0)
    for _ in range(3):
        pairs = rng.integers(0, 40, (15, 2))
        added = pairs[pairs[:, 0] != pairs[:, 1]]
        existing = [tuple(edge) for edge in sorted(map(sorted, edges))][:4]
        edges |= {frozenset(edge) for edge in added.tolist()}
        batch = np.concatenate([added, np.array(existing)])
        op = np.repeat(np.array([Op.ADD, Op.REMOVE], np.int8), [len(added), len(existing)])
        cluster.apply(Batch.of(batch[:, 0], batch[:, 1], op=op))
        edges -= {frozenset(edge) for edge in existing}
        assert cluster.edges == len(edges)
