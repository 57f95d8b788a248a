from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import score_at_end, stream
from ripplevec.rules import _kernels as kernels
from ripplevec.rules import batch_step, ripple
from ripplevec.rules._kernels import BatchContext
from ripplevec.views.spectral import SpectralView


@pytest.mark.parametrize("depth", [0, 1, 2, None])
@pytest.mark.parametrize("max_reads", [5, 4096])
def test_threaded_step_gives_the_same_bits_as_one_thread(
    edges_of: Any, monkeypatch: pytest.MonkeyPatch, depth: int | None, max_reads: int
) -> None:
    monkeypatch.setattr(ripple, "MIN_EDGES_FOR_THREADS", 1)
    monkeypatch.setattr(batch_step, "MIN_ROWS_PER_TASK", 3)

    def digest(threads: int) -> str:
        model = Embedder(dim=5, depth=depth, max_reads=max_reads, threads=threads, anchor_growth=1.0)
        model.fit(edges_of(0, vertices=60, edges=150))
        for seed in range(1, 4):
            model.partial_fit(edges_of(seed, vertices=60 + 25 * seed, edges=80))
            model.remove_edges([(u, v) for u, v, _ in _distinct(edges_of(seed, vertices=60 + 25 * seed, edges=20))])
        added_and_removed = Batch.of(
            [500, 501, 502, 503, 502], [1, 500, 501, 500, 502], op=[Op.ADD] * 4 + [Op.REMOVE_VERTEX]
        )
        model.partial_fit(added_and_removed)
        return model.digest()

    assert digest(1) == digest(2) == digest(4)


def _distinct(edges: list[Any]) -> list[Any]:
    return list({tuple(sorted(edge[:2])): edge for edge in edges}.values())


def test_vertices_removed_in_the_same_batch_do_not_disturb_the_others(
    engine_of: Any, edges_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vertex added and removed in one batch leaves a gap in the arrival numbers; the others are still new."""
    contexts: list[BatchContext] = []
    engine = engine_of(edges_of(0))

    def make_context(*values: Any) -> BatchContext:
        contexts.append(BatchContext(*values))
        return contexts[-1]

    monkeypatch.setattr(ripple, "BatchContext", make_context)
    first = engine.graph.next_arrival
    batch = Batch.of(["a", "b", "c", "c"], [0, "a", "b", "c"], op=[Op.ADD] * 3 + [Op.REMOVE_VERTEX])
    outcome = engine.apply(batch)
    assert [context.first_new for context in contexts] == [first]
    names = engine.graph.ids.to_list(outcome.moved)
    assert {"a", "b"} <= set(names)
    assert "c" not in engine.graph.ids
    assert outcome.first_new == first


@pytest.mark.parametrize("batch", [1, 60])
def test_stream_quality_is_independent_of_the_batch_size(batch: int) -> None:
    """Batches differ in bits, not in quality: four clear communities are separated either way."""
    data = planted_partition(communities=4, size=75, inside=8, elsewhere=1.5, seed=1)
    result = stream(Embedder(dim=8), data, start=0.4, seed=0, batch=batch)
    assert score_at_end(result).micro > 0.9


def test_changed_endpoints_are_sampled_by_their_share(engine_of: Any) -> None:
    engine = engine_of([("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")])
    (delta,) = [engine.store.apply_delta(step) for step in engine.graph.apply(Batch.from_any([("a", "b", 2.0)]))]
    state, (a, b) = engine.rule.kernel_state(engine.store), delta.pairs[0].tolist()
    drawn = [
        kernels.sample_changed_endpoints(
            state, delta.pairs, delta.arrival_numbers, delta.changed_share, BatchContext(0, s, 1, 9, 4)
        )
        for s in range(4000)
    ]
    counts = np.bincount(np.concatenate(drawn), minlength=4) / 4000
    np.testing.assert_allclose(counts[[a, b]], [2 / 5, 2 / 4], atol=0.04)  # |Δa| / max(d before, d after)
    assert counts.sum() == counts[[a, b]].sum()


def test_neighbors_are_influenced_by_their_share(edges_of: Any) -> None:
    model = Embedder(dim=3, anchor_growth=0).fit([("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")])
    start = model.engine.state()
    times = 0
    for seed in range(600):
        model.set_params(seed=seed)
        model.engine.restore(start)
        times += "a" in model.partial_fit([("new", "a")]).ids
    assert abs(times / 600 - 1 / 4) < 0.06  # a now has four edges, one of them to the new vertex


def test_vertex_that_loses_its_last_edge_is_unplaced() -> None:
    model = Embedder(dim=3, anchor_growth=0).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("a", "e")])
    assert model["d"].any()
    changes = model.remove_edges([("c", "d")])
    assert "d" in changes.ids
    assert not changes.vectors[changes.ids.index("d")].any()
    assert not model["d"].any()
    assert model.diagnostics()["unplaced"] == 1
    changes = model.remove_vertex("a")
    assert (changes.removed, "a" in changes.ids, "e" in changes.ids) == (["a"], False, True)
    assert not model["e"].any()


def test_unplaced_component_is_placed_by_its_first_edge_to_a_placed_vertex() -> None:
    model = Embedder(dim=3, anchor_growth=0, depth=0).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    for edge in [("p", "q"), ("q", "r"), ("r", "s")]:
        changes = model.partial_fit([edge])
        assert not changes.vectors.any()
    assert model.diagnostics()["unplaced"] == 4
    changes = model.partial_fit([("a", "s")])
    assert set(changes.ids) >= set("pqrs")
    assert model.vectors(list("pqrs")).any(axis=1).all()
    assert model.diagnostics()["unplaced"] == 0
    assert model.add_vertex("lonely").tolist() == [0, 0, 0]


def test_preview_is_closer_to_the_heavier_neighbor() -> None:
    data = planted_partition(communities=2, size=60, inside=8, elsewhere=1, seed=0)
    model = Embedder(dim=2).fit(data.edges)
    left, right = (int(np.flatnonzero(data.labels == label)[0]) for label in (0, 1))
    for heavy, light in ((left, right), (right, left)):
        vector = model.preview([heavy, light], [50.0, 1.0])
        assert vector @ model[heavy] > vector @ model[light]


@pytest.mark.parametrize("growth", ["auto", 0.5])
def test_empty_model_starts_when_the_graph_is_large_enough(growth: Any) -> None:
    model, started = Embedder(dim=4, anchor_growth=growth), []
    for number in range(1, 12):
        changes = model.partial_fit([(number - 1, number)])
        started.append(changes.anchored)
        if not any(started):
            assert not changes.vectors.any()
            assert not model.to_numpy().any()
            assert changes.ids == ([0, 1] if number == 1 else [number])
        elif started.count(True) == 1:
            assert len(model) == 8  # 2 · dim
            assert changes.ids == list(range(8))
            break
    assert model.to_numpy().any(axis=1).all()
    assert model.diagnostics()["ready"]


@pytest.mark.parametrize("start_size", [2, 6])
def test_start_size_counts_vertices_with_edges(start_size: int) -> None:
    model = Embedder(dim=4, start_size=start_size)
    model.partial_fit(Batch.vertices(range(50)))  # vertices without edges do not count
    assert not model.diagnostics()["ready"]
    for number in range(1, start_size):
        assert not model.diagnostics()["ready"]
        model.partial_fit([(number, number - 1)])
    assert model.diagnostics()["ready"]


def test_explicit_views_are_kept_by_an_anchor() -> None:
    views = [SpectralView(tau=0.5), SpectralView(tau_per_degree=8.0, weight=2.0)]
    model = Embedder(dim=6, views=views).fit(planted_partition(2, 40, 12, 2).edges)
    model.anchor()
    assert model.engine.rule.coordinates.views == views
    np.testing.assert_allclose(np.linalg.norm(model.to_numpy(), axis=1), 1, atol=1e-5)


def test_orthogonality_error_is_zero_after_an_anchor() -> None:
    data = planted_partition(3, 60, 8, 2)
    model = Embedder(dim=5, anchor_growth=0).fit(data.edges[:-200])
    assert model.diagnostics()["orthogonality_error"] < 1e-5
    model.partial_fit(data.edges[-200:])
    drifted = model.diagnostics()["orthogonality_error"]
    model.anchor()
    assert model.diagnostics()["orthogonality_error"] < 1e-5 < drifted < 1


def test_start_is_independent_of_row_reuse(edges_of: Any) -> None:
    """A later vertex reuses the row of a removed one; a start depends on the order of arrival only."""
    edges = edges_of(0, vertices=60, edges=200)
    names = list(dict.fromkeys(name for edge in edges for name in edge[:2]))
    mixed, plain = (Embedder(dim=5, start_size=50).fit([]) for _ in range(2))
    mixed.partial_fit(Batch.vertices(["first", *names[:20], "second"], Op.VERTEX))
    mixed.partial_fit(Batch.vertices(["first", "second"], Op.REMOVE_VERTEX))
    for model in (mixed, plain):
        model.partial_fit(Batch.vertices(names, Op.VERTEX))
        model.partial_fit(edges)
    assert mixed.ids == plain.ids
    assert not np.array_equal(mixed.engine.graph.rows_by_arrival(), plain.engine.graph.rows_by_arrival())
    assert np.array_equal(mixed.to_numpy(), plain.to_numpy())
    assert plain.to_numpy().any()
