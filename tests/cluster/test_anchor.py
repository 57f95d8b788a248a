"""Tests of anchors and starts on shards: their results match those of one machine."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.batch import Batch, Op
from ripplevec.cluster import engine as engines
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.transport import LocalTransport
from ripplevec.embedder import Embedder
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.views import graph_sample, large_start, solvers, view_choice

DATA = planted_partition(communities=4, size=50, inside=8, elsewhere=2, seed=3)


def max_difference(single: Embedder, cluster: ClusterEngine) -> float:
    """Return the largest difference between the served vectors of a cluster and of one machine."""
    return float(np.abs(single.to_numpy() - cluster.get_vectors(cluster.rows_by_arrival())).max())


def inner_products(vectors: NDArray[Any]) -> NDArray[np.float64]:
    exact = vectors.astype(np.float64)
    return exact @ exact.T


def start_both(new_cluster: Any, shards: int, edges: Any, **parameters: Any) -> tuple[Embedder, ClusterEngine]:
    """Return a model on one machine and one on shards, started with these edges."""
    arguments = {"dim": 3, "threads": 1, "anchor_growth": 0, "anchor_pace": "immediate", **parameters}
    single, cluster = Embedder(**arguments).fit(edges), new_cluster(shards, **arguments)
    cluster.start(Batch.from_any(edges))
    assert single.digest() == cluster.digest()
    return single, cluster


def serialize(value: Any) -> Any:
    """Return a copy as another process would receive it: its arrays are read-only."""
    buffers: list[pickle.PickleBuffer] = []
    plain = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return pickle.loads(plain, buffers=[bytes(buffer) for buffer in buffers])


class SerializingTransport(LocalTransport):
    """Shards that share no memory with the driver or with each other."""

    def call(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        return serialize(super().call(method, *serialize(columns), **serialize(constants)))

    def run(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        return serialize(super().run(method, *serialize(columns), **serialize(constants)))


def force_start_on_shards(patch: pytest.MonkeyPatch) -> None:
    """Compute starts of even the smallest graphs on the shards, and fail if a graph is gathered on the driver."""
    patch.setattr(engines, "MAX_DRIVER_START_EDGES", 0)
    patch.setattr(engines, "MAX_DENSE_SIZE", 50)
    patch.setattr(solvers, "MAX_DENSE_SIZE", 50)
    patch.delattr(engines, "gather_graph")


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize(
    ("parameters", "tolerance"),
    [
        ({}, 1e-5),
        ({"dim": 12, "views": "communities+strong-hubs"}, 1e-5),
        ({"dim": 12}, 1e-4),  # a filter of degree 10 amplifies rounding more than one of degree 6
        ({"directed": True}, 1e-5),
        ({"normalize": False}, 1e-5),
        ({"storage": "float16"}, 1e-3),
    ],
)
def test_anchor_matches_single_machine(new_cluster: Any, shards: int, parameters: Any, tolerance: float) -> None:
    single, cluster = start_both(new_cluster, shards, DATA.edges[:700], **parameters)
    single.partial_fit(DATA.edges[700:])
    cluster.apply(Batch.from_any(DATA.edges[700:]))
    before = single.to_numpy()
    for _ in range(2):
        changes, moved = single.anchor(), cluster.anchor()
        assert set(cluster.ids_of(moved)) == set(changes.ids)
        assert max_difference(single, cluster) < tolerance
    assert np.abs(single.to_numpy() - before).max() > 10 * tolerance
    assert cluster.counters() == single._engine.counters()
    np.testing.assert_allclose(cluster.rule.coordinates.mu, single._engine.rule.coordinates.mu, atol=tolerance)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_anchors_with_removals_occur_in_the_same_batches(new_cluster: Any, storage: str) -> None:
    rng, edges = np.random.default_rng(0), DATA.edges[np.random.default_rng(1).permutation(len(DATA.edges))]
    single, cluster = start_both(new_cluster, 3, edges[:500], anchor_growth=0.1, storage=storage)
    for first in range(500, 900, 80):
        removed = rng.choice(np.array(single.ids), 2, replace=False)
        new = edges[first : first + 80]
        new = new[~np.isin(new, removed).any(axis=1)]
        op = np.repeat(np.array([Op.ADD, Op.REMOVE_VERTEX], np.int8), [len(new), 2])
        batch = Batch.of(np.append(new[:, 0], removed), np.append(new[:, 1], removed), op=op)
        assert single._engine.apply(batch).anchored == cluster.apply(batch).anchored
        assert single.ids == cluster.ids_of(cluster.rows_by_arrival())
        assert max_difference(single, cluster) < (1e-4 if storage == "float32" else 1e-2)
    assert single._engine.anchors == cluster.anchors >= 2


@pytest.mark.parametrize("expire_after", [None, 20.0])
def test_anchors_with_aging_edges_match_single_machine(new_cluster: Any, expire_after: float | None) -> None:
    edges = DATA.edges[np.random.default_rng(1).permutation(len(DATA.edges))]
    parameters: dict[str, Any] = {"half_life": 3.0, "expire_after": expire_after, "anchor_growth": 0.2}
    single, cluster = start_both(new_cluster, 3, edges[:500], **parameters)
    for number, first in enumerate(range(500, 900, 80)):
        new = edges[first : first + 80]
        batch = Batch.of(new[:, 0], new[:, 1], time=np.full(len(new), 15.0 * number))
        assert single._engine.apply(batch).anchored == cluster.apply(batch).anchored
        assert max_difference(single, cluster) < 1e-4
        assert single._engine.counters() == cluster.counters()
    assert single._engine.anchors == cluster.anchors >= 2


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3])
def test_anchor_returns_rows_moved_beyond_threshold(new_cluster: Any, threshold: float) -> None:
    cluster = new_cluster(3, dim=6, change_threshold=threshold)
    cluster.start(Batch.from_any(DATA.edges[:700]))
    cluster.apply(Batch.from_any(DATA.edges[700:]))
    rows = cluster.rows_by_arrival()
    before = cluster.get_vectors(rows)
    reported = np.isin(rows, cluster.anchor())
    distance = np.linalg.norm(cluster.get_vectors(rows) - before, axis=1)
    clear = np.abs(distance - threshold) > 1e-5
    assert np.array_equal(reported[clear], (distance > threshold)[clear])


@pytest.mark.parametrize("shards", [1, 3])
def test_anchor_reconsiders_views_like_one_machine(
    new_cluster: Any, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    monkeypatch.setattr(view_choice, "MIN_GAIN", 0.0)
    rng, weights = np.random.default_rng(0), 1 / np.arange(1, 301)
    edges = rng.choice(300, (9_000, 2), p=weights / weights.sum())
    edges = edges[edges[:, 0] != edges[:, 1]]
    single, cluster = start_both(new_cluster, shards, edges[:300], dim=8)
    assert single.diagnostics()["views"] == "sparse"
    batch = Batch.from_any(edges[300:])
    single._engine.apply(batch)
    cluster.apply(batch)
    single.anchor()
    cluster.anchor()
    assert cluster.rule.describe_choice()["views"] != "sparse"
    assert cluster.rule.choice == single._engine.rule.choice
    # Eigenvalues beyond the leading ones are close together, so their eigenvectors may rotate among themselves.
    products = [
        inner_products(vectors) for vectors in (single.to_numpy(), cluster.get_vectors(cluster.rows_by_arrival()))
    ]
    np.testing.assert_allclose(*products, atol=1e-2)
    # A late arrival is placed in the new coordinates, which all shards have received.
    batch = Batch.from_any([("late", 0), ("late", 3)])
    single._engine.apply(batch)
    cluster.apply(batch)
    vector, expected = cluster.get_vector(cluster.find_row("late")), single.vectors(["late"])[0]
    assert (vector * expected).sum() > 0.999


def test_start_on_shards_chooses_views_like_one_machine(new_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from a sample of a graph that is too large to be used as a whole."""
    monkeypatch.setattr(graph_sample, "MAX_VERTICES", 300)
    monkeypatch.setattr(solvers, "MAX_DENSE_SIZE", 50)  # as `force_start_on_shards` does
    data = planted_partition(communities=8, size=60, inside=16, elsewhere=1, seed=0)
    single, _ = start_both(new_cluster, 1, data.edges, dim=12)
    force_start_on_shards(monkeypatch)
    cluster = new_cluster(3, dim=12)
    cluster.start(Batch.from_any(data.edges))
    assert cluster.rule.choice.scores
    assert cluster.rule.choice == single._engine.rule.choice


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("inside", [6, 20])  # one view, and two views
def test_start_on_shards_reaches_single_machine_objective(
    new_cluster: Any, monkeypatch: pytest.MonkeyPatch, shards: int, inside: int
) -> None:
    data = planted_partition(communities=8, size=60, inside=inside, elsewhere=1, seed=0)
    single, _ = start_both(new_cluster, shards, data.edges, dim=12)
    force_start_on_shards(monkeypatch)
    cluster = new_cluster(shards, dim=12)
    cluster.start(Batch.from_any(data.edges))
    assert cluster.ready
    coordinates, rows = cluster.rule.coordinates, cluster.rows_by_arrival()
    vectors, graph = cluster.read_rows(rows, "vectors"), single._engine.graph
    for view, part in zip(coordinates.views, coordinates.parts, strict=True):
        reached = view.captured_spectrum(graph.adjacency, vectors[:, part], threads=1)
        assert reached >= 0.98 * view.attainable_spectrum(
            graph.adjacency, graph.row_count, part.stop - part.start, threads=1
        )
    assert cluster.placed(rows).all()


@pytest.mark.parametrize("min_large", [large_start.MIN_VERTICES, 0])
def test_start_on_shards_matches_single_machine_up_to_rounding(
    new_cluster: Any, monkeypatch: pytest.MonkeyPatch, min_large: int
) -> None:
    """Both iterate from the same noise, so the number of shards does not change the result."""
    monkeypatch.setattr(solvers, "MAX_DENSE_SIZE", 50)
    monkeypatch.setattr(large_start, "MIN_VERTICES", min_large)
    single, _ = start_both(new_cluster, 1, DATA.edges)
    force_start_on_shards(monkeypatch)
    cluster = new_cluster(3, dim=3)
    cluster.start(Batch.from_any(DATA.edges))
    assert max_difference(single, cluster) < 1e-4


def test_anchor_with_serialized_messages_gives_same_vectors(new_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, serialized = new_cluster(3), new_cluster(3)
    serialized.transport = SerializingTransport(3, serialized.transport.shards.__getitem__)
    force_start_on_shards(monkeypatch)
    for each in (cluster, serialized):
        each.start(Batch.from_any(DATA.edges[:700]))
        each.apply(Batch.from_any(DATA.edges[700:]))
        each.anchor()
    assert np.array_equal(
        cluster.get_vectors(cluster.rows_by_arrival()), serialized.get_vectors(serialized.rows_by_arrival())
    )


def test_start_after_removals_matches_single_machine_digest(new_cluster: Any) -> None:
    single, cluster = Embedder(dim=4, threads=1, start_size=150).fit([]), new_cluster(3, start_size=150)
    removed = Batch.vertices([3, 40, 17], Op.REMOVE_VERTEX)
    for batch in (Batch.from_any(DATA.edges[:60]), removed, Batch.from_any(DATA.edges[60:])):
        single._engine.apply(batch)
        cluster.apply(batch)
    order = single._engine.graph.rows_by_arrival()
    assert not np.array_equal(order, np.sort(order))
    assert cluster.ready
    assert cluster.digest() == single.digest()


def test_failed_anchor_leaves_state_unchanged(new_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    single, cluster = start_both(new_cluster, 3, DATA.edges)
    shards = cluster.transport.shards
    before, digest = [shard.graph.adjacency.links.neighbor.copy() for shard in shards], cluster.digest()

    def fail(self: Any, *columns: Any, **constants: Any) -> None:
        if self.mesh.index == 2:
            raise MemoryError("no room for rows")

    with monkeypatch.context() as patch:
        patch.setattr("ripplevec.cluster.shard_operator.ShardOperator.transform_columns", fail)
        with pytest.raises(MemoryError, match="no room for rows"):
            cluster.anchor()
    for shard, neighbors in zip(shards, before, strict=True):
        assert np.array_equal(shard.graph.adjacency.links.neighbor, neighbors)
    assert cluster.digest() == digest
    single.anchor()
    cluster.anchor()
    assert cluster.anchors == 1
    assert max_difference(single, cluster) < 1e-5
