from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Op
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.protocols import Arrivals, arrival, checkpoint, current, stream

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)
SPARSE = Dataset.from_pairs("sparse", [[0, 1], [2, 1], [5, 0]], [0, 1, 0, 1, 0, 1, 0, 1])


def pairs(edges: Any) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in np.asarray(edges).tolist()}


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(0, 89), st.integers(0, 90))
def test_a_batch_names_each_vertex_before_its_edges_to_earlier_ones(seed: int, begin: int, length: int) -> None:
    arrivals, end = Arrivals.of(GRAPH, seed), min(begin + length, 90)
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
def test_the_earlier_neighbors_of_all_are_the_edges(seed: int) -> None:
    arrivals = Arrivals.of(GRAPH, seed)
    told = [(int(v), u) for place, v in enumerate(arrivals.order) for u in arrivals.neighbors(place)]
    assert len(told) == len(GRAPH.edges)
    assert pairs(told) == pairs(GRAPH.edges)


def test_without_a_seed_the_order_is_the_index() -> None:
    assert Arrivals.of(SPARSE, None).order.tolist() == list(range(8))
    assert Arrivals.of(SPARSE, None).neighbors(5) == [0]


def test_the_order_is_the_permutation_of_the_seed() -> None:
    np.testing.assert_array_equal(Arrivals.of(GRAPH, 7).order, np.random.default_rng(7).permutation(90))


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_every_vertex_and_every_edge_reaches_the_model(neighbor_mean: Any, batch: int) -> None:
    for graph in (GRAPH, SPARSE):
        model = neighbor_mean()
        result = stream(model, graph, start=0.5, seed=1, batch=batch)
        assert set(model.rows) == set(range(graph.vertices))
        assert pairs(list(model.edges)) == pairs(graph.edges)
        assert len(result.start_vectors) == result.start == graph.vertices // 2
        assert len(result.start_vectors) + len(result.arrival_vectors) == len(result.final_vectors)


def test_one_at_a_time_is_add_vertex_and_more_are_partial_fit(neighbor_mean: Any) -> None:
    single, several = neighbor_mean(), neighbor_mean()
    stream(single, SPARSE, seed=None)
    stream(several, SPARSE, seed=None, batch=2)
    assert single.calls == ["fit"] + ["add_vertex"] * 4
    assert several.calls == ["fit"] + ["partial_fit"] * 2


def test_rows_are_in_order_of_arrival(neighbor_mean: Any) -> None:
    model = neighbor_mean()
    result = stream(model, GRAPH, start=0.3, seed=5)
    np.testing.assert_array_equal(result.labels, GRAPH.labels[result.order])
    np.testing.assert_array_equal(result.final_vectors, model.vectors(result.order))
    np.testing.assert_array_equal(result.arrival_vectors, result.final_vectors[result.start :])


def test_vectors_on_arrival_are_those_before_an_anchor_and_copies(neighbor_mean: Any) -> None:
    model = neighbor_mean(anchor_every=90, angle=1.0)
    result = stream(model, GRAPH, batch=15)
    last = slice(-15, None)
    np.testing.assert_array_equal(result.arrival_vectors[last], result.final_vectors[last])
    assert not np.allclose(result.arrival_vectors[:15], result.final_vectors[result.start : result.start + 15])


def test_progress_counts_arrivals(neighbor_mean: Any) -> None:
    told: list[int] = []
    stream(neighbor_mean(), SPARSE, batch=3, progress=told.append)
    assert told == [3, 4]


def test_a_watch_sees_the_start_and_every_step_and_alters_nothing(neighbor_mean: Any) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.seen: list[tuple[int, int, list[int]]] = []

        def begin(self, model: Any, present: np.ndarray) -> None:
            self.seen.append((len(present), 0, []))

        def step(self, model: Any, present: np.ndarray, arrived: int, changes: Any) -> None:
            assert changes.ids == present[-arrived:].tolist()
            self.seen.append((len(present), arrived, changes.ids))

    watch = Recorder()
    watched = stream(neighbor_mean(), SPARSE, batch=3, watch=watch)
    assert [seen[:2] for seen in watch.seen] == [(4, 0), (7, 3), (8, 1)]
    np.testing.assert_array_equal(watched.arrival_vectors, stream(neighbor_mean(), SPARSE).arrival_vectors)


def test_scores_of_a_model_that_knows_its_neighbors(neighbor_mean: Any) -> None:
    result = stream(neighbor_mean(), GRAPH)
    assert arrival(result).micro > 0.7
    assert current(result).micro > 0.7


def test_arrival_does_not_survive_a_turn_that_current_does(neighbor_mean: Any) -> None:
    still = stream(neighbor_mean(dim=3), GRAPH, batch=5)
    turned = stream(neighbor_mean(dim=3, anchor_every=50, angle=np.pi), GRAPH, batch=5)
    assert arrival(turned).micro < arrival(still).micro - 0.2
    assert current(turned).micro == pytest.approx(current(still).micro)


@pytest.mark.parametrize("start", [0.0, 1.0, -0.5])
def test_a_start_of_nothing_or_everything_is_refused(neighbor_mean: Any, start: float) -> None:
    with pytest.raises(InvalidValueError, match="start: expected a share"):
        stream(neighbor_mean(), GRAPH, start=start)


def test_an_empty_batch_is_refused(neighbor_mean: Any) -> None:
    with pytest.raises(InvalidValueError, match="batch"):
        stream(neighbor_mean(), GRAPH, batch=0)


# ---------------------------------------------------------------------- spread


@given(st.one_of(st.none(), st.integers(0, 1000)))
def test_spread_edges_are_the_same_edges_at_their_time(seed: int | None) -> None:
    together, spread = Arrivals.of(GRAPH, seed), Arrivals.of(GRAPH, seed, "spread")
    np.testing.assert_array_equal(together.order, spread.order)
    assert len(spread.edges) == len(GRAPH.edges)
    assert pairs(spread.edges) == pairs(GRAPH.edges)
    place = np.argsort(spread.order)
    for here in range(GRAPH.vertices):
        own, late = spread.neighbors(here), spread.late(here)
        assert set(own) <= set(together.neighbors(here))
        assert bool(own) == bool(together.neighbors(here))
        assert (place[late] < here).all()
    assert len(together.late(50)) == 0


def test_about_half_of_the_edges_come_later_and_not_all_at_once() -> None:
    graph = planted_partition(communities=3, size=200, inside=30, elsewhere=5)
    spread = Arrivals.of(graph, 0, "spread")
    late = np.array([len(spread.late(place)) for place in range(graph.vertices)])
    assert 0.4 < late.sum() / len(graph.edges) < 0.5
    assert (late[300:] > 0).mean() > 0.95
    assert (spread.edges != Arrivals.of(graph, 1, "spread").edges).any()


@pytest.mark.parametrize("batch", [1, 7])
def test_late_edges_reach_the_model(neighbor_mean: Any, batch: int) -> None:
    model = neighbor_mean()
    stream(model, GRAPH, seed=1, batch=batch, edges="spread")
    assert pairs(list(model.edges)) == pairs(GRAPH.edges)


def test_vectors_on_arrival_are_those_before_late_edges(neighbor_mean: Any) -> None:
    class Restless(neighbor_mean):  # type: ignore[misc]
        def partial_fit(self, batch: Any) -> Any:
            self.rows = {vertex: row + 1 for vertex, row in self.rows.items()}
            return super().partial_fit(batch)

    result = stream(Restless(), GRAPH, edges="spread")
    late = [len(Arrivals.of(GRAPH, 0, "spread").late(place)) > 0 for place in range(45, 90)]
    steps = np.cumsum(late[::-1])[::-1]
    np.testing.assert_allclose(result.final_vectors[45:, 0] - result.arrival_vectors[:, 0], steps, atol=1e-9)
    assert result.stream_seconds > result.arrival_seconds.sum()


def test_edges_come_together_or_spread(neighbor_mean: Any) -> None:
    with pytest.raises(InvalidValueError, match="edges: expected one of 'together', 'spread'"):
        stream(neighbor_mean(), GRAPH, edges="scattered")


# ---------------------------------------------------------------------- checkpoint


@pytest.mark.parametrize("edges", ["together", "spread"])
@pytest.mark.parametrize("seed", [None, 4])
def test_a_graph_is_what_the_batches_have_brought(neighbor_mean: Any, seed: int | None, edges: str) -> None:
    arrivals, model = Arrivals.of(GRAPH, seed, edges), neighbor_mean()
    model.fit(arrivals.batch(0, 60))
    graph = arrivals.graph(60)
    assert graph.shape == (60, 60)
    assert (graph != graph.T).nnz == 0
    assert pairs(arrivals.order[np.column_stack(graph.nonzero())]) == pairs(list(model.edges))
    assert (graph.data == 1).all()


@pytest.mark.parametrize(("every", "sizes"), [(0.25, [57, 68, 79, 90]), (0.4, [63, 90]), (1.0, [90])])
def test_it_is_retrained_after_every_share_of_the_stream(every: float, sizes: list[int]) -> None:
    told: list[int] = []
    seen: list[int] = []

    def embed(graph: Any) -> np.ndarray:
        seen.append(graph.shape[0])
        return np.eye(graph.shape[0])

    result = checkpoint(embed, GRAPH, every=every, progress=told.append)
    assert seen == sizes
    assert told == [size - 45 for size in sizes]
    assert len(result.retrain_seconds) == len(sizes)


def test_every_arrival_is_judged_by_the_first_vectors_it_has() -> None:
    labels = GRAPH.labels[Arrivals.of(GRAPH, 2).order]

    def embed(graph: Any) -> np.ndarray:
        """Right about those of the last 5 %, wrong about all that came before them."""
        size = graph.shape[0]
        shown = (labels[:size] + 1) % 3
        shown[:45] = labels[:45]
        shown[-3:] = labels[size - 3 : size]
        return np.eye(3)[shown] @ np.linalg.qr(np.random.default_rng(size).standard_normal((3, 3)))[0]

    assert checkpoint(embed, GRAPH, seed=2, every=3 / 45).scores.micro == 1.0
    assert checkpoint(embed, GRAPH, seed=2, every=1.0).scores.micro == pytest.approx(3 / 45)


def test_only_the_start_teaches() -> None:
    noise = np.random.default_rng(0).standard_normal((90, 120))
    assert checkpoint(lambda graph: noise[: graph.shape[0]], GRAPH, every=0.5).scores.micro < 0.7


def test_a_retrained_method_is_good_at_every_checkpoint(neighbor_mean: Any) -> None:
    def embed(graph: Any) -> np.ndarray:
        return np.linalg.eigh(graph.toarray())[1][:, -4:]

    for seed in (None, 0):
        assert checkpoint(embed, GRAPH, seed=seed, every=0.2).scores.micro > 0.6


@pytest.mark.parametrize("every", [0.0, 1.5])
def test_checkpoints_need_a_share(every: float) -> None:
    with pytest.raises(InvalidValueError, match="every: expected a share"):
        checkpoint(lambda graph: np.eye(graph.shape[0]), GRAPH, every=every)
