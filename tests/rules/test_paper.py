from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import Batch
from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.rules.paper import ON_EMPTY, apply_local_action
from ripplevec.views.laplacian import NORMALIZATIONS
from ripplevec.views.spectral import SpectralView


def paper(**parameters: Any) -> Embedder:
    return Embedder(**{"dim": 4, "rule": "paper", **parameters})


def vectors(model: Embedder) -> NDArray[np.float64]:
    """Return the internal vectors, in double precision."""
    return model.engine.store.vectors[: model.engine.graph.row_count]


def gram(model: Embedder) -> NDArray[np.float64]:
    return vectors(model).T @ vectors(model)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    start=st.integers(0, 60),
    depth=st.sampled_from([0, 1, 2, 3, None]),
    on_empty=st.sampled_from(ON_EMPTY),
    directed=st.booleans(),
    normalization=st.sampled_from(NORMALIZATIONS),
    reuse=st.booleans(),
)
def test_arrivals_preserve_the_gram_matrix(
    edges_of: Any,
    seed: int,
    start: int,
    depth: int | None,
    on_empty: str,
    directed: bool,
    normalization: str,
    reuse: bool,
) -> None:
    """Arrivals preserve FᵀF, except that the first ones add a one to its diagonal for each column that is zero."""
    rng = np.random.default_rng(seed)
    reuse = reuse and depth is not None
    model = paper(
        seed=seed, depth=depth, on_empty=on_empty, directed=directed, normalization=normalization, reuse_influence=reuse
    ).fit(edges_of(seed, vertices=20, edges=start))
    initial = gram(model)
    used = np.count_nonzero(initial.diagonal())
    for number in range(20):
        others = rng.integers(0, 25 + number, rng.integers(0, 5))
        model.add_vertex(100 + number, others.tolist(), (2.0 ** rng.integers(-3, 4, others.size)).tolist())
        expected = initial.copy()
        expected[used:, used:] = np.diag(np.arange(4 - used) < round(np.trace(gram(model)[used:, used:])))
        np.testing.assert_allclose(gram(model), expected, atol=1e-10)
    assert model.diagnostics()["orthogonality_error"] < 1e-10


def test_ten_thousand_arrivals_preserve_the_gram_matrix() -> None:
    rng = np.random.default_rng(0)
    model = paper(dim=8, depth=2).fit([(u, v) for u, v in rng.integers(0, 300, (900, 2)).tolist() if u != v])
    initial = gram(model)
    np.testing.assert_allclose(initial, np.eye(8), atol=1e-10)
    sources = np.repeat(np.arange(300, 10_300), 3)
    targets = (rng.random(sources.size) * sources).astype(np.int64)
    model.partial_fit(np.column_stack([sources, targets]))
    assert len(model) >= 10_290
    assert np.abs(gram(model) - initial).max() < 1e-9
    assert model.diagnostics()["orthogonality_error"] < 1e-9


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_start_satisfies_the_constraint(edges_of: Any, normalization: str) -> None:
    model = paper(normalization=normalization).fit(edges_of(1))
    graph = model.engine.graph
    weight = (
        graph.adjacency.links.strength[: graph.row_count]
        if normalization == "random-walk"
        else np.ones(graph.row_count)
    )
    np.testing.assert_allclose(vectors(model).T @ (weight[:, None] * vectors(model)), np.eye(4), atol=1e-9)


def test_first_arrivals_in_an_empty_model_get_unit_vectors() -> None:
    model = paper()
    for number in range(4):
        assert model.add_vertex(number).tolist() == np.eye(4)[number].tolist()
    assert not model.add_vertex("fifth").any()  # from now on, a vertex without edges has no vector
    model.add_vertex("sixth", [0, 1, 2, 3])
    np.testing.assert_allclose(gram(model), np.eye(4), atol=1e-12)


@pytest.mark.parametrize(("edges", "start_columns"), [([("a", "b"), ("b", "c"), ("c", "a")], 2), ([], 0)])
def test_start_with_fewer_eigenvectors_than_columns_gives_unit_vectors_to_the_next_arrivals(
    edges: list[Any], start_columns: int
) -> None:
    model = paper(dim=5).fit(edges)
    for used in range(start_columns, 5):
        np.testing.assert_allclose(gram(model), np.diag(np.arange(5) < used), atol=1e-12)
        preview = model.preview(model.ids[:1])
        assert model.add_vertex(used, model.ids[:1]).tolist() == preview.tolist() == np.eye(5)[used].tolist()
    model.partial_fit([("d", "a"), ("d", 4), ("e", "d")])
    np.testing.assert_allclose(gram(model), np.eye(5), atol=1e-12)
    assert model.diagnostics()["orthogonality_error"] < 1e-12


def test_restored_model_continues_with_unit_vectors_for_the_columns_that_are_left() -> None:
    model = paper(dim=5).fit([("a", "b"), ("b", "c"), ("c", "a")])
    model.add_vertex("d", ["a"])
    restored = paper(dim=5)
    restored.engine.restore(model.engine.state())
    assert restored.add_vertex("e", ["a"]).tolist() == model.add_vertex("e", ["a"]).tolist() == np.eye(5)[3].tolist()


def test_single_influenced_vertex_becomes_zero() -> None:
    model = paper(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    before = model["d"]
    arrived = model.add_vertex("e", ["d"])  # α = 1
    assert np.array_equal(arrived, before)
    assert not model["d"].any()


def test_empty_influenced_set_follows_on_empty(edges_of: Any) -> None:
    """At depth 0 the influenced set is always empty."""
    rest = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    for on_empty in ON_EMPTY:
        model = paper(dim=2, depth=0, on_empty=on_empty).fit(rest)
        before = {name: model[name] for name in "abcd"}
        arrived = model.add_vertex("e", ["a", "b"])
        if on_empty == "zero":
            assert not arrived.any()
            assert all(np.array_equal(model[name], before[name]) for name in "abcd")
        else:
            np.testing.assert_allclose(arrived, (before["a"] + before["b"]) / 2, atol=1e-6)
            moved = before["a"] - (1 - np.sqrt(0.5)) * arrived
            np.testing.assert_allclose(model["a"], moved, atol=1e-6)


def test_resample_draws_until_a_neighbor_is_influenced(edges_of: Any) -> None:
    """With one neighbor of high degree most draws are empty; a further draw reaches it."""
    hub = [("hub", number) for number in range(40)]
    model = paper(dim=2, on_empty="resample").fit([*hub, (0, 1)])
    before = model["hub"]
    np.testing.assert_allclose(model.add_vertex("new", ["hub"]), before, atol=1e-6)


def test_unplaced_vertices_are_placed_by_the_first_arrival_that_touches_them() -> None:
    model = paper(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    model.add_vertex("p")
    model.add_vertex("q", ["p"])
    assert model.diagnostics()["unplaced"] == 2
    model.add_edges([("q", "a")])  # an edge between existing vertices changes the graph only
    assert model.diagnostics()["unplaced"] == 2
    changes = model.partial_fit([("r", "p"), ("r", "a")])
    assert model.diagnostics()["unplaced"] == 0
    assert set("pqr") <= set(changes.ids)
    assert model.diagnostics()["orthogonality_error"] < 1e-12


def test_unplaced_vertices_without_late_placement_stay_zero() -> None:
    model = paper(dim=2, late_placement=False).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    model.add_vertex("p")
    changes = model.partial_fit([("r", "p"), ("r", "a")])
    assert model.diagnostics()["unplaced"] == 1
    assert not model["p"].any()
    assert "p" not in changes.ids
    assert model["r"].any()
    assert model.diagnostics()["orthogonality_error"] < 1e-12


def test_components_together_tell_components_apart_and_separate_ones_do_not() -> None:
    edges = [(6 * part + u, 6 * part + (u + 1) % 6) for part in range(3) for u in range(6)]
    together, separate = (paper(dim=2, components=components).fit(edges) for components in ("together", "separate"))
    assert np.unique(together.to_numpy().round(5), axis=0).shape[0] == 3  # a regular graph: one vector per component
    np.testing.assert_allclose(separate.to_numpy()[:6].sum(axis=0), 0, atol=1e-6)
    assert np.unique(separate.to_numpy()[:6].round(5), axis=0).shape[0] > 3


def test_unplaced_vertices_have_no_influence() -> None:
    model = paper(dim=2, depth=None, on_empty="neighbors").fit([("a", "b"), ("b", "c"), ("c", "a")])
    model.add_vertex("lonely")
    before = model.vectors(list("abc"))
    arrived = model.add_vertex("new", ["lonely"])
    assert not arrived.any()
    assert np.array_equal(model.vectors(list("abc")), before)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([1, 2, None]), reuse=st.booleans(), empty=st.booleans())
def test_batch_gives_the_same_bits_as_its_arrivals_one_by_one(
    edges_of: Any, seed: int, depth: Any, reuse: bool, empty: bool
) -> None:
    rng = np.random.default_rng(seed)
    together, separate = (
        paper(depth=depth, seed=seed, reuse_influence=reuse and depth is not None).fit([] if empty else edges_of(seed))
        for _ in range(2)
    )
    arrivals = [(100 + i, rng.choice(40 if not empty else 100 + i, 3, replace=False).tolist()) for i in range(15)]
    together.partial_fit([(name, other) for name, others in arrivals for other in others])
    for name, others in arrivals:
        separate.partial_fit([(name, other) for other in others])
    assert together.ids == separate.ids
    assert together.to_numpy().tobytes() == separate.to_numpy().tobytes()
    assert vectors(together).tobytes() == vectors(separate).tobytes()


def test_reuse_influence_preserves_the_gram_matrix(edges_of: Any) -> None:
    """Reuse is an approximation: other vectors, the same invariant."""
    plain, reused = (paper(depth=3, reuse_influence=reuse).fit(edges_of(2)) for reuse in (False, True))
    for model in (plain, reused):
        model.partial_fit([(100 + i, j) for i in range(60) for j in (i % 40, (7 * i) % 40)])
        assert model.diagnostics()["orthogonality_error"] < 1e-10
    assert not np.array_equal(plain.to_numpy(), reused.to_numpy())


def test_removal_increases_the_orthogonality_error(edges_of: Any) -> None:
    model = paper().fit(edges_of(1))
    assert model.diagnostics()["orthogonality_error"] < 1e-10
    model.remove_vertex(model.ids[0])
    assert model.diagnostics()["orthogonality_error"] > 1e-6


def test_anchor_does_nothing(edges_of: Any) -> None:
    model = paper().fit(edges_of(1))
    model.add_vertex("new", [0, 1])
    before = model.digest()
    changes = model.anchor()
    assert (len(changes), changes.anchored, model.digest()) == (0, False, before)
    assert not model.partial_fit(edges_of(7, vertices=500, edges=900)).anchored


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.sampled_from([0, 1, 2, None]),
    on_empty=st.sampled_from(ON_EMPTY),
    directed=st.booleans(),
    duplicates=st.sampled_from(["add", "ignore", "replace"]),
    reuse=st.booleans(),
)
def test_preview_is_the_vector_of_the_next_arrival(
    edges_of: Any, seed: int, depth: int | None, on_empty: str, directed: bool, duplicates: str, reuse: bool
) -> None:
    rng = np.random.default_rng(seed)
    choices: dict[str, Any] = {"on_empty": on_empty, "directed": directed, "duplicates": duplicates}
    if reuse:
        choices |= {"reuse_influence": True, "depth": 4 if depth is None else depth + 1}
    model = paper(**{"seed": seed, "depth": depth, **choices})
    model.fit(edges_of(seed, vertices=20, edges=60))
    for number in range(12):
        if number == 6:
            model.remove_vertex(model.ids[0])
        names = [model.ids[position] for position in rng.integers(0, len(model), rng.integers(1, 6))]
        weights = (2.0 ** rng.integers(-3, 4, len(names))).tolist()
        before = model.digest()
        preview = model.preview(names, weights)
        assert model.digest() == before
        np.testing.assert_allclose(model.add_vertex(f"new {number}", names, weights), preview, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"), [("views", [SpectralView(tau=1.0)]), ("anchor_growth", 0.1), ("normalize", True)]
)
def test_paper_rule_with_a_ripple_parameter_raises(name: str, value: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"^{name}: expected .*paper"):
        paper(**{name: value})
    assert paper(views="auto", anchor_growth=0, normalize=False).rule == "paper"


def test_batch_groups_the_edges_of_each_arrival() -> None:
    """The edges of a new vertex need not be adjacent in the batch; it arrives with all of them."""
    together, separate = (paper(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]) for _ in range(2))
    together.partial_fit([("x", "a"), ("y", "a"), ("x", "b")])
    separate.partial_fit(Batch.arrival("x", ["a", "b"]))
    separate.partial_fit(Batch.arrival("y", ["a"]))
    assert together.ids == separate.ids
    assert np.array_equal(together.to_numpy(), separate.to_numpy())


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 8))
def test_apply_local_action_follows_algorithm_2_and_keeps_the_gram_matrix(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((10, 3))
    vectors[9] = 5 if count == 0 else 0
    before, influenced = vectors.copy(), rng.permutation(9)[:count]
    apply_local_action(vectors, 9, influenced)
    expected = before.copy()
    expected[9] = before[influenced].mean(axis=0) if count else 0
    if count:
        expected[influenced] -= (1 - math.sqrt(1 - 1 / count)) * expected[9]
        np.testing.assert_allclose(vectors.T @ vectors, before.T @ before, atol=1e-12)
    np.testing.assert_allclose(vectors, expected, atol=1e-12)


def test_apply_local_action_on_one_vertex_makes_it_zero() -> None:
    vectors = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
    apply_local_action(vectors, 2, np.array([0]))
    assert vectors.tolist() == [[0, 0], [3, 4], [1, 2]]
