"""Tests of the batch protocol: which calls a batch makes, and what it reports."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.routing import assign_shards
from ripplevec.cluster.transport import LocalTransport

RING = [(vertex, (vertex + step) % 30) for vertex in range(30) for step in (1, 2, 5)]


class CallLog:
    """Wraps a transport and records the methods that are called."""

    def __init__(self, transport: LocalTransport) -> None:
        self.size, self._transport = transport.size, transport
        self.methods: list[str] = []

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        self.methods.append(method)
        return self._transport.call(method, *columns, parts=parts, **constants)

    def get(self, results: Sequence[Any]) -> list[Any]:
        return self._transport.get(results)

    def reset(self) -> None:
        self._transport.reset()


@pytest.fixture
def log_calls(new_cluster: Any) -> Any:
    """Return a function that starts a cluster with a ring, and records the calls from then on."""

    def start(shards: int = 2, **parameters: Any) -> tuple[ClusterEngine, CallLog]:
        cluster = new_cluster(shards, **parameters)
        cluster.start(Batch.from_any(RING))
        log = CallLog(cluster.transport)
        cluster.transport = log
        return cluster, log

    return start


def ids_on_shard(shard: int, shards: int, count: int, first: int = 1000) -> list[int]:
    """Return integer ids from `first` on that are assigned to a shard."""
    candidates = np.arange(first, first + 100 * shards)
    return candidates[assign_shards(candidates, shards) == shard][:count].tolist()


def test_batch_with_arrival_admits_refreshes_and_finishes(log_calls: Any) -> None:
    cluster, log = log_calls()
    cluster.apply(Batch.from_any([("new", 0), ("new", 7)]))
    protocol = log.methods[log.methods.index("begin_batch") :]
    assert protocol[:3] == ["begin_batch", "admit_wave", "begin_refresh"]
    assert protocol[-1] == "finish_batch"
    assert not {"place_frontier", "request_late_rows"} & set(protocol)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_chain_of_new_vertices_on_alternating_shards_takes_one_wave_each(log_calls: Any, length: int) -> None:
    cluster, log = log_calls()
    on_first, on_second = ids_on_shard(0, 2, length), ids_on_shard(1, 2, length)
    chain = [on_first[i // 2] if i % 2 == 0 else on_second[i // 2] for i in range(length)]
    cluster.apply(Batch.from_any([(0, chain[0]), *itertools.pairwise(chain)]))
    assert log.methods.count("admit_wave") == length
    assert cluster.placed(cluster.rows_of(chain)).all()


def test_chain_of_new_vertices_on_one_shard_takes_one_wave(log_calls: Any) -> None:
    cluster, log = log_calls()
    chain = ids_on_shard(1, 2, 5)
    cluster.apply(Batch.from_any([(0, chain[0]), *itertools.pairwise(chain)]))
    assert log.methods.count("admit_wave") == 1
    assert cluster.placed(cluster.rows_of(chain)).all()


def test_existing_unplaced_path_is_placed_frontier_by_frontier(log_calls: Any) -> None:
    cluster, log = log_calls(3)
    cluster.apply(Batch.from_any([("p0", "p1"), ("p1", "p2"), ("p2", "p3")]))
    assert not cluster.placed(cluster.rows_of(["p0", "p1", "p2", "p3"])).any()
    log.methods.clear()
    cluster.apply(Batch.from_any([(0, "p0")]))
    assert cluster.placed(cluster.rows_of(["p0", "p1", "p2", "p3"])).all()
    assert log.methods.count("place_frontier") == 4
    assert log.methods.count("request_late_rows") == 1


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_influence_spreads_at_most_to_the_depth_of_the_rule(log_calls: Any, depth: int) -> None:
    cluster, log = log_calls(depth=depth)
    for seed in range(5):
        log.methods.clear()
        pairs = np.random.default_rng(seed).integers(0, 30, (20, 2))
        cluster.apply(Batch.from_any(pairs[pairs[:, 0] != pairs[:, 1]]))
        assert log.methods.count("send_influence") <= depth
        assert log.methods.count("refresh") <= depth + 1
        if depth == 0:
            assert "draw_influenced" not in log.methods


def test_batch_without_reads_left_refreshes_nothing(log_calls: Any) -> None:
    cluster, log = log_calls(max_reads=1, depth=3)
    cluster.apply(Batch.from_any([("new", 0)]))
    assert "refresh" not in log.methods
    assert log.methods[-3:].count("finish_batch") == 1


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_result_counts_edges_like_a_plain_set(new_cluster: Any, shards: int) -> None:
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
