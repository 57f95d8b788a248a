from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Op
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.protocols import (
    Arrivals,
    measure_latency,
    score_at_checkpoints,
    score_at_end,
    score_on_arrival,
    stream,
)

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)
SPARSE = Dataset.from_pairs("sparse", [[0, 1], [2, 1], [5, 0]], [0, 1, 0, 1, 0, 1, 0, 1])


def pairs(edges: Any) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in np.asarray(edges).tolist()}


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(0, 89), st.integers(0, 90))
def test_arrivals_batch_names_vertex_before_its_edges(seed: int, begin: int, length: int) -> None:
    arrivals, end = Arrivals.from_dataset(GRAPH, seed), min(begin + length, 90)
    batch = arrivals.batch(begin, end)
    seen = set(arrivals.order[:begin].tolist())
    named = []
    for src, dst, op in zip(batch.src.tolist(), batch.dst.tolist(), batch.op.tolist(), strict=True):
        if op == Op.VERTEX:
            assert src == dst
            named.append(src)
            seen.add(src)
        else:
            assert src == named[-1]
            assert dst in seen
    assert named == arrivals.order[begin:end].tolist()


@given(st.integers(0, 1000))
def test_arrivals_neighbors_cover_all_edges(seed: int) -> None:
    arrivals = Arrivals.from_dataset(GRAPH, seed)
    edges = [(int(v), u) for position, v in enumerate(arrivals.order) for u in arrivals.neighbors(position)]
    assert len(edges) == len(GRAPH.edges)
    assert pairs(edges) == pairs(GRAPH.edges)


def test_arrivals_without_seed_follow_index() -> None:
    assert Arrivals.from_dataset(SPARSE, None).order.tolist() == list(range(8))
    assert Arrivals.from_dataset(SPARSE, None).neighbors(5) == [0]


def test_arrivals_order_is_permutation_of_seed() -> None:
    np.testing.assert_array_equal(Arrivals.from_dataset(GRAPH, 7).order, np.random.default_rng(7).permutation(90))


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_stream_delivers_all_vertices_and_edges(neighbor_mean: Any, batch: int) -> None:
    for graph in (GRAPH, SPARSE):
        model = neighbor_mean()
        result = stream(model, graph, start=0.5, seed=1, batch=batch)
        assert set(model.rows) == set(range(graph.vertices))
        assert pairs(list(model.edges)) == pairs(graph.edges)
        assert len(result.start_vectors) == result.start == graph.vertices // 2
        assert len(result.start_vectors) + len(result.arrival_vectors) == len(result.final_vectors)


def test_stream_uses_add_vertex_for_single_arrivals_and_partial_fit_for_batches(neighbor_mean: Any) -> None:
    single, several = neighbor_mean(), neighbor_mean()
    stream(single, SPARSE, seed=None)
    stream(several, SPARSE, seed=None, batch=2)
    assert single.calls == ["fit"] + ["add_vertex"] * 4
    assert several.calls == ["fit"] + ["partial_fit"] * 2


def test_stream_result_rows_are_in_order_of_arrival(neighbor_mean: Any) -> None:
    model = neighbor_mean()
    result = stream(model, GRAPH, start=0.3, seed=5)
    np.testing.assert_array_equal(result.labels, GRAPH.labels[result.order])
    np.testing.assert_array_equal(result.final_vectors, model.vectors(result.order))
    np.testing.assert_array_equal(result.arrival_vectors, result.final_vectors[result.start :])


def test_stream_arrival_vectors_are_copies_before_later_anchor(neighbor_mean: Any) -> None:
    model = neighbor_mean(anchor_every=90, angle=1.0)
    result = stream(model, GRAPH, batch=15)
    last = slice(-15, None)
    np.testing.assert_array_equal(result.arrival_vectors[last], result.final_vectors[last])
    assert not np.allclose(result.arrival_vectors[:15], result.final_vectors[result.start : result.start + 15])


def test_stream_progress_counts_arrivals(neighbor_mean: Any) -> None:
    reported: list[int] = []
    stream(neighbor_mean(), SPARSE, batch=3, progress=reported.append)
    assert reported == [3, 4]


def test_stream_observer_sees_every_step_without_effect(neighbor_mean: Any) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.steps: list[tuple[int, int, list[int]]] = []

        def begin(self, model: Any, present: np.ndarray) -> None:
            self.steps.append((len(present), 0, []))

        def step(self, model: Any, present: np.ndarray, arrived: int, changes: Any) -> None:
            assert changes.ids == present[-arrived:].tolist()
            self.steps.append((len(present), arrived, changes.ids))

    observer = Recorder()
    watched = stream(neighbor_mean(), SPARSE, batch=3, observer=observer)
    assert [step[:2] for step in observer.steps] == [(4, 0), (7, 3), (8, 1)]
    np.testing.assert_array_equal(watched.arrival_vectors, stream(neighbor_mean(), SPARSE).arrival_vectors)


def test_stream_scores_of_neighbor_mean_are_high(neighbor_mean: Any) -> None:
    result = stream(neighbor_mean(), GRAPH)
    assert score_on_arrival(result).micro > 0.7
    assert score_at_end(result).micro > 0.7


def test_score_on_arrival_drops_after_rotation_but_not_score_at_end(neighbor_mean: Any) -> None:
    stable = stream(neighbor_mean(dim=3), GRAPH, batch=5)
    rotated = stream(neighbor_mean(dim=3, anchor_every=50, angle=np.pi), GRAPH, batch=5)
    assert score_on_arrival(rotated).micro < score_on_arrival(stable).micro - 0.2
    assert score_at_end(rotated).micro == pytest.approx(score_at_end(stable).micro)


@pytest.mark.parametrize("start", [0.0, 1.0, -0.5])
def test_stream_with_empty_or_full_start_raises(neighbor_mean: Any, start: float) -> None:
    with pytest.raises(InvalidValueError, match="start: expected a share"):
        stream(neighbor_mean(), GRAPH, start=start)


def test_stream_with_batch_of_zero_raises(neighbor_mean: Any) -> None:
    with pytest.raises(InvalidValueError, match="batch"):
        stream(neighbor_mean(), GRAPH, batch=0)


@given(st.one_of(st.none(), st.integers(0, 1000)))
def test_arrivals_spread_keep_all_edges_and_come_no_earlier(seed: int | None) -> None:
    together, spread = Arrivals.from_dataset(GRAPH, seed), Arrivals.from_dataset(GRAPH, seed, "spread")
    np.testing.assert_array_equal(together.order, spread.order)
    assert len(spread.edges) == len(GRAPH.edges)
    assert pairs(spread.edges) == pairs(GRAPH.edges)
    position = np.argsort(spread.order)
    for here in range(GRAPH.vertices):
        neighbors, late = spread.neighbors(here), spread.late_edges(here)
        assert set(neighbors) <= set(together.neighbors(here))
        assert bool(neighbors) == bool(together.neighbors(here))
        assert (position[late] < here).all()
    assert len(together.late_edges(50)) == 0


def test_arrivals_spread_delay_about_half_of_the_edges() -> None:
    graph = planted_partition(communities=3, size=200, inside=30, elsewhere=5)
    spread = Arrivals.from_dataset(graph, 0, "spread")
    late = np.array([len(spread.late_edges(position)) for position in range(graph.vertices)])
    assert 0.4 < late.sum() / len(graph.edges) < 0.5
    assert (late[300:] > 0).mean() > 0.95
    assert (spread.edges != Arrivals.from_dataset(graph, 1, "spread").edges).any()


@pytest.mark.parametrize("batch", [1, 7])
def test_stream_delivers_late_edges(neighbor_mean: Any, batch: int) -> None:
    model = neighbor_mean()
    stream(model, GRAPH, seed=1, batch=batch, edges="spread")
    assert pairs(list(model.edges)) == pairs(GRAPH.edges)


def test_stream_arrival_vectors_precede_late_edges(neighbor_mean: Any) -> None:
    class MovingModel(neighbor_mean):  # type: ignore[misc]
        def partial_fit(self, batch: Any) -> Any:
            self.rows = {vertex: row + 1 for vertex, row in self.rows.items()}
            return super().partial_fit(batch)

    result = stream(MovingModel(), GRAPH, edges="spread")
    late = [len(Arrivals.from_dataset(GRAPH, 0, "spread").late_edges(position)) > 0 for position in range(45, 90)]
    steps = np.cumsum(late[::-1])[::-1]
    np.testing.assert_allclose(result.final_vectors[45:, 0] - result.arrival_vectors[:, 0], steps, atol=1e-9)
    assert result.stream_seconds > result.arrival_seconds.sum()


def test_stream_with_unknown_edge_timing_raises(neighbor_mean: Any) -> None:
    with pytest.raises(InvalidValueError, match="edges: expected one of 'together', 'spread'"):
        stream(neighbor_mean(), GRAPH, edges="scattered")


@pytest.mark.parametrize("edges", ["together", "spread"])
@pytest.mark.parametrize("seed", [None, 4])
def test_arrivals_graph_equals_delivered_batches(neighbor_mean: Any, seed: int | None, edges: str) -> None:
    arrivals, model = Arrivals.from_dataset(GRAPH, seed, edges), neighbor_mean()
    model.fit(arrivals.batch(0, 60))
    graph = arrivals.graph(60)
    assert graph.shape == (60, 60)
    assert (graph != graph.T).nnz == 0
    assert pairs(arrivals.order[np.column_stack(graph.nonzero())]) == pairs(list(model.edges))
    assert (graph.data == 1).all()


@pytest.mark.parametrize(("every", "sizes"), [(0.25, [57, 68, 79, 90]), (0.4, [63, 90]), (1.0, [90])])
def test_score_at_checkpoints_retrains_after_every_share(every: float, sizes: list[int]) -> None:
    reported: list[int] = []
    sizes_seen: list[int] = []

    def embed(graph: Any) -> np.ndarray:
        sizes_seen.append(graph.shape[0])
        return np.eye(graph.shape[0])

    result = score_at_checkpoints(embed, GRAPH, every=every, progress=reported.append)
    assert sizes_seen == sizes
    assert reported == [size - 45 for size in sizes]
    assert len(result.retrain_seconds) == len(sizes)


def test_score_at_checkpoints_scores_arrival_at_next_checkpoint() -> None:
    labels = GRAPH.labels[Arrivals.from_dataset(GRAPH, 2).order]

    def embed(graph: Any) -> np.ndarray:
        """Return vectors that are right for the last 5 % of the vertices and wrong for earlier arrivals."""
        size = graph.shape[0]
        classes = (labels[:size] + 1) % 3
        classes[:45] = labels[:45]
        classes[-3:] = labels[size - 3 : size]
        return np.eye(3)[classes] @ np.linalg.qr(np.random.default_rng(size).standard_normal((3, 3)))[0]

    assert score_at_checkpoints(embed, GRAPH, seed=2, every=3 / 45).scores.micro == 1.0
    assert score_at_checkpoints(embed, GRAPH, seed=2, every=1.0).scores.micro == pytest.approx(3 / 45)


def test_score_at_checkpoints_trains_on_start_only() -> None:
    noise = np.random.default_rng(0).standard_normal((90, 120))
    assert score_at_checkpoints(lambda graph: noise[: graph.shape[0]], GRAPH, every=0.5).scores.micro < 0.7


def test_score_at_checkpoints_of_spectral_method_is_high(neighbor_mean: Any) -> None:
    def embed(graph: Any) -> np.ndarray:
        return np.linalg.eigh(graph.toarray())[1][:, -4:]

    for seed in (None, 0):
        assert score_at_checkpoints(embed, GRAPH, seed=seed, every=0.2).scores.micro > 0.6


@pytest.mark.parametrize("every", [0.0, 1.5])
def test_score_at_checkpoints_with_invalid_interval_raises(every: float) -> None:
    with pytest.raises(InvalidValueError, match="every: expected a share"):
        score_at_checkpoints(lambda graph: np.eye(graph.shape[0]), GRAPH, every=every)


def test_measure_latency_returns_microseconds(neighbor_mean: Any) -> None:
    seconds = np.random.default_rng(0).permutation(np.arange(1001)) * 1e-6
    latency = measure_latency(replace(stream(neighbor_mean(), GRAPH), arrival_seconds=seconds))
    assert (latency.p50, latency.p99, latency.maximum) == pytest.approx((500, 990, 1000))


def test_stream_times_every_step(neighbor_mean: Any) -> None:
    single, several = stream(neighbor_mean(), GRAPH), stream(neighbor_mean(), GRAPH, batch=10)
    assert (len(single.arrival_seconds), len(several.arrival_seconds)) == (45, 5)
    assert single.stream_seconds == pytest.approx(single.arrival_seconds.sum())
    assert 0 < measure_latency(single).p50 <= measure_latency(single).p99 <= measure_latency(single).maximum
