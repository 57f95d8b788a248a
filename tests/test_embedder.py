from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import ripplevec
from ripplevec import Batch, Embedder, InvalidValueError, Op, SpectralView, UnknownEdgeError, UnknownVertexError, load
from ripplevec.errors import FormatError, MissingExtraError, SelfLoopWarning, ZeroVectorsWarning
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=3, size=40, inside=8, elsewhere=1.5, seed=1)
SMALL = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")]


@pytest.fixture(scope="module")
def fitted() -> Embedder:
    """A model for reading; tests must not change it."""
    model = Embedder(dim=6).fit(DATA.edges)
    model.anchor()
    return model


# ---------------------------------------------------------------------- updates


@pytest.mark.parametrize("dim", [1, 2, 3, 40])
def test_embedder_of_any_dimension_has_unit_vectors_of_that_length(dim: int) -> None:
    model = Embedder(dim=dim).fit(DATA.edges)
    assert model.to_numpy().shape == (120, dim)
    np.testing.assert_allclose(np.linalg.norm(model.to_numpy(), axis=1), 1, atol=1e-5)
    assert model.add_vertex("new", [0, 1]).shape == (dim,)


def test_fit_on_any_form_of_edges_gives_the_same_digest() -> None:
    pairs = DATA.edges
    forms = [pairs.tolist(), Batch.of(*pairs.T), pa.table({"src": pairs[:, 0], "dst": pairs[:, 1]})]
    digests = {Embedder(dim=4).fit(form).digest() for form in [pairs, *forms]}
    assert len(digests) == 1


def test_fit_on_a_symmetric_matrix_counts_each_edge_once() -> None:
    matrix = csr_array((np.ones(4), ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(4, 4))
    model = Embedder(dim=2).fit(matrix)
    assert (model.ids, model.diagnostics()["edges"]) == ([0, 1, 2, 3], 2)
    assert Embedder(dim=2, directed=True).fit(matrix).diagnostics()["edges"] == 4


def test_ids_are_in_order_of_first_mention() -> None:
    model = Embedder(dim=2).fit([("b", "a"), ("c", "b")])
    model.partial_fit([("x", "a"), ("a", "y"), ("z", "x")])
    model.add_vertex("n", ["m", "b"])
    assert model.ids == ["b", "a", "c", "x", "y", "z", "n", "m"]


def test_ids_of_all_types_are_distinguished() -> None:
    names: list[Any] = [1, "1", -1, 0, "0", "", "é", "日本", "a b", 2**63, -(2**80), "x" * 500]
    model = Embedder(dim=3).fit([(name, names[(i + 1) % len(names)]) for i, name in enumerate(names)])
    assert model.ids == names
    assert [type(name) for name in model.ids] == [type(name) for name in names]
    assert all(name in model for name in names)
    assert 2 not in model
    assert "2" not in model
    assert model.remove_vertex("1").removed == ["1"]
    assert 1 in model
    assert "1" not in model


@pytest.mark.parametrize("invalid", [1.0, None, True, b"1", (1,), [1], np.array([1, 2]), object()])
def test_contains_with_an_invalid_id_is_false(fitted: Embedder, invalid: Any) -> None:
    assert invalid not in fitted


def test_ids_of_numpy_types_equal_python_ids() -> None:
    model = Embedder(dim=2).fit(SMALL)
    model.add_vertex(np.int64(7), np.array([8, 9]))
    model.add_vertex(np.str_("f"), ("a", np.str_("b")))
    assert model.ids == [*"abcde", 7, 8, 9, "f"]
    assert np.int64(7) in model
    assert np.array_equal(model[np.int64(7)], model[7])
    assert model.nearest(np.int64(7)) == model.nearest(7)


@pytest.mark.parametrize(
    "neighbors", [["x", "y"], ("x", "y"), {"x": 1, "y": 2}, pa.array(["x", "y"]), np.array(["x", "y"])]
)
@pytest.mark.parametrize("rule", ["ripple", "paper"])
def test_add_vertex_accepts_neighbors_in_any_form(neighbors: Any, rule: str) -> None:
    model = Embedder(dim=2, rule=rule).fit(SMALL)
    model.add_vertex("new", neighbors)
    assert model.ids[-3:] == ["new", "x", "y"]
    model.add_vertex("newer", (name for name in ["x", "y", "z"]))
    assert (model.ids[-1], model.diagnostics()["edges"]) == ("z", 10)


def test_add_vertex_with_a_string_of_neighbors_is_rejected() -> None:
    model = Embedder(dim=2).fit(SMALL)
    before = model.digest()
    for call in (model.add_vertex, lambda name, others: model.preview(others)):
        with pytest.raises(InvalidValueError, match="a list or column of ids"):
            call("new", "ab")
    assert model.digest() == before


def test_add_vertex_of_a_known_vertex_adds_edges() -> None:
    model = Embedder(dim=2).fit(SMALL)
    model.add_vertex("a", ["e", "f"])
    assert (len(model), model.diagnostics()["edges"]) == (6, 7)
    model.add_vertex("a")
    assert (len(model), model.diagnostics()["edges"], model.sequence) == (6, 7, 2)


@pytest.mark.parametrize(("duplicates", "expected"), [("add", 5.0), ("ignore", 2.0), ("replace", 3.0)])
def test_duplicates_parameter_decides_the_weight_of_a_repeated_edge(duplicates: str, expected: float) -> None:
    model = Embedder(dim=2, duplicates=duplicates).fit([("a", "b", 2.0), ("b", "c", 1.0)])
    model.add_edges([("b", "a", 3.0)])
    assert model.neighbors("a") == [("b", expected)]
    assert dict(model.neighbors("b")) == {"a": expected, "c": 1.0}
    assert model.diagnostics()["edges"] == 2


TRIANGLE = [("a", "b"), ("b", "c"), ("c", "a")]


@pytest.mark.parametrize("edges", [[("a", "b")], TRIANGLE, [("hub", leaf) for leaf in range(40)]])
def test_fit_of_a_graph_without_structure_warns_that_vectors_are_zero(edges) -> None:
    with pytest.warns(ZeroVectorsWarning, match=rf"no structure to embed: vertices=\d+ edges={len(edges)}\.") as caught:
        model = Embedder(dim=4).fit(edges)
    assert [warning.filename for warning in caught] == [__file__]
    assert not model.to_numpy().any()
    for number in range(20):  # the warning promises vectors at the next anchor
        model.add_vertex(number + 100, [edges[0][0], number + 99] if number else [edges[0][0]])
    assert np.linalg.norm(model.to_numpy(), axis=1).all()


@pytest.mark.filterwarnings("error::ripplevec.errors.ZeroVectorsWarning")
def test_fit_of_other_graphs_does_not_warn_about_zero_vectors() -> None:
    Embedder(dim=4).fit(SMALL)
    Embedder(dim=4).fit([])  # begins empty
    Embedder(dim=4, rule="paper").fit(TRIANGLE)
    Embedder(dim=4).fit(TRIANGLE, attributes={"a": {"red": 1}, "b": {"blue": 1}})
    Embedder(dim=128).partial_fit(TRIANGLE)  # waits for start_size vertices


@pytest.mark.filterwarnings("error::ripplevec.errors.ZeroVectorsWarning")
def test_zero_vectors_warning_as_error_leaves_the_fitted_model() -> None:
    model = Embedder(dim=4).fit(SMALL)
    with pytest.raises(ZeroVectorsWarning):
        model.fit(TRIANGLE)
    assert model.ids == ["a", "b", "c"]
    model.check()


def test_self_loops_are_ignored_with_one_warning() -> None:
    model = Embedder(dim=2).fit(SMALL)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        model.partial_fit([("f", "f"), ("f", "a")])
        model.add_vertex("g", ["g", "b"])
    assert [warning.category for warning in messages] == [SelfLoopWarning]
    assert model.diagnostics()["edges"] == 7
    model.check()


def test_partial_fit_applies_operations_in_order() -> None:
    model = Embedder(dim=2).fit(SMALL)
    add, remove, vertex, drop = Op.ADD, Op.REMOVE, Op.VERTEX, Op.REMOVE_VERTEX
    rows = [
        ("x", "a", add),
        ("x", "a", remove),
        ("b", "b", drop),
        ("y", "b", add),
        ("z", "z", vertex),
        ("x", "x", drop),
    ]
    src, dst, op = map(list, zip(*rows, strict=True))
    changes = model.partial_fit(Batch.of(src, dst, op=op))
    assert model.ids == ["a", "c", "d", "e", "y", "b", "z"]
    assert "x" in changes.removed
    assert "b" not in changes.removed
    assert model.diagnostics()["edges"] == 4
    with pytest.raises(UnknownEdgeError):
        model.partial_fit(Batch.of(["a", "a"], ["d", "d"], op=[remove, add]))
    model.partial_fit(Batch.of(["a", "a"], ["d", "d"], op=[add, remove]))


def test_directed_model_has_the_vectors_of_the_symmetrized_graph() -> None:
    plain, directed = (Embedder(dim=4, directed=flag).fit(DATA.edges) for flag in (False, True))
    np.testing.assert_allclose(plain.to_numpy(), directed.to_numpy(), atol=1e-5)
    directed.remove_edges([DATA.edges[0].tolist()])
    with pytest.raises(UnknownEdgeError):
        directed.remove_edges([DATA.edges[1].tolist()[::-1]])


def test_remove_edges_accepts_pairs_or_removals_only() -> None:
    model = Embedder(dim=2).fit(SMALL)
    with pytest.raises(InvalidValueError, match="removals only"):
        model.remove_edges(Batch.of(["a"], ["b"]))
    assert len(model.remove_edges([])) == 0
    model.remove_edges(Batch.of(["a"], ["b"], op=[Op.REMOVE]))
    model.remove_edges([("c", "b")])
    assert model.diagnostics()["edges"] == 3


def test_anchor_returns_the_vertices_that_moved(fitted: Embedder) -> None:
    model = Embedder(dim=6, anchor_growth=0, change_threshold=0.05).fit(DATA.edges[:400])
    model.partial_fit(DATA.edges[400:])
    before, sequence = model.to_numpy(), model.sequence
    changes = model.anchor()
    assert changes.anchored
    assert changes.sequence == sequence
    assert not changes.arrived.any()
    assert 0 < len(changes) <= len(model)
    still = [name for name in model.ids if name not in set(changes.ids)]
    if still:
        apart = model.vectors(still) - before[[model.ids.index(name) for name in still]]
        assert np.linalg.norm(apart, axis=1).max() <= 0.05 + 1e-5


def test_fit_reports_progress() -> None:
    messages: list[tuple[str, float]] = []
    data = planted_partition(communities=5, size=100, inside=6, elsewhere=2)
    Embedder(dim=20).fit(data.edges, progress=lambda what, share: messages.append((what, share)))
    assert messages
    assert all(what == "start" and 0 < share <= 1 for what, share in messages)


# ---------------------------------------------------------------------- reads


def test_vectors_are_in_the_order_of_the_ids_given(fitted: Embedder) -> None:
    ids, vectors = fitted.ids, fitted.to_numpy()
    assert len(fitted) == len(ids) == 120
    assert [*fitted] == ids
    asked = ids[5], ids[2], ids[5]
    assert np.array_equal(fitted.vectors(asked), vectors[[5, 2, 5]])
    assert np.array_equal(fitted.vectors(np.array(asked)), vectors[[5, 2, 5]])
    assert np.array_equal(fitted[ids[7]], vectors[7])
    assert fitted.vectors([]).shape == (0, 6)


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (lambda model: model.vectors([0, "x", 1, "y", "z"]), "'x' and 2 more"),
        (lambda model: model["x"], "'x'"),
        (lambda model: model["0"], "'0'"),
        (lambda model: model.nearest("x"), "'x'"),
        (lambda model: model.preview([0, "x"]), "'x'"),
        (lambda model: model.remove_vertex("x"), "'x'"),
        (lambda model: model.remove_edges([(0, "x")]), "'x'"),
        (lambda model: model.remove_edges([("x", 0), ("y", 0)]), "'x' and 1 more"),
    ],
)
def test_unknown_vertices_are_named_and_counted_in_the_error(call: Any, missing: str) -> None:
    model = Embedder(dim=2).fit([(0, 1), (1, 2)])
    before = model.digest()
    with pytest.raises(KeyError, match=f"^unknown vertex {missing};") as error:
        call(model)
    assert isinstance(error.value, UnknownVertexError)
    assert model.digest() == before


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("rule", ["ripple", "paper"])
def test_nearest_returns_the_vertices_of_highest_cosine(normalize: bool, rule: str) -> None:
    views = [SpectralView(tau=0.5, share=2), SpectralView(tau_per_degree=4.0, weight=1.4)]
    model = Embedder(dim=6, rule=rule, **({"normalize": normalize, "views": views} if rule == "ripple" else {})).fit(
        DATA.edges
    )
    model.anchor()
    model.add_vertex("lonely")
    vectors, ids = model.to_numpy().astype(np.float64), model.ids
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    for asked in (0, 33, 77):
        expected = unit @ unit[ids.index(asked)]
        found = model.nearest(asked, k=119)
        assert len({name for name, _ in found}) == len(found) == 119
        assert not {asked, "lonely"} & {name for name, _ in found}
        np.testing.assert_allclose([c for _, c in found], [expected[ids.index(name)] for name, _ in found], atol=1e-5)
        np.testing.assert_allclose([c for _, c in found][:20], np.sort(expected)[::-1][1:21], atol=1e-5)
        name, cosine = model.nearest(model[asked], k=1)[0]
        assert cosine == pytest.approx(1, abs=1e-5)
        assert np.allclose(unit[ids.index(name)], unit[ids.index(asked)], atol=1e-4)
    assert model.nearest("lonely") == []
    assert model.nearest(np.zeros(6)) == []
    assert len(model.nearest(0, k=10**9)) == 119
    assert len(model.nearest((3 * model[0]).tolist(), k=np.int64(4))) == 4


@pytest.mark.parametrize("rule", ["ripple", "paper"])
def test_nearest_among_compares_the_chosen_vertices_only(rule: Any) -> None:
    model = Embedder(dim=4, rule=rule).fit(planted_partition(2, 20, 6, 2, seed=3).edges)
    model.add_vertex(1000)  # has no vector
    everything = dict(model.nearest(0, k=40))
    assert 1000 not in everything
    even = [vertex for vertex in model.ids if vertex % 2 == 0]  # type: ignore[operator]
    expected = [vertex for vertex in everything if vertex % 2 == 0][:5]  # type: ignore[operator]
    by_ids, by_test = model.nearest(0, 5, among=even), model.nearest(0, 5, among=lambda vertex: vertex % 2 == 0)
    assert [vertex for vertex, _ in by_ids] == expected
    assert by_ids == by_test == model.nearest(0, 5, among=even * 2)
    np.testing.assert_allclose([cosine for _, cosine in by_ids], [everything[vertex] for vertex in expected], atol=1e-5)
    assert model.nearest(model[0], 5, among=even)[0][0] == 0
    assert model.nearest(0, among=[]) == []
    with pytest.raises(UnknownVertexError):
        model.nearest(0, among=["x"])


@pytest.mark.filterwarnings("ignore:All vectors are zero")
def test_nearest_among_without_a_vector_returns_nothing_like_nearest() -> None:
    model = Embedder(dim=4).fit(planted_partition(2, 20, 6, 2, seed=3).edges)
    model.add_vertex(1000)
    assert model.nearest(1000, among=[1, 2]) == model.nearest(1000) == []
    assert model.nearest(np.zeros(4), among=[1, 2]) == []
    diamond = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")])  # zero, though placed
    assert diamond.nearest(np.ones(4), among=["a", "b"]) == diamond.nearest(np.ones(4)) == []


def test_nearest_many_equals_nearest_of_each(fitted: Embedder) -> None:
    ids = fitted.ids[:3]
    assert fitted.nearest_many(ids, k=2) == [fitted.nearest(vertex, k=2) for vertex in ids]
    vectors = fitted.vectors(ids)
    assert fitted.nearest_many(vectors, k=2) == [fitted.nearest(vector, k=2) for vector in vectors]
    assert fitted.nearest_many(ids, k=2, among=ids) == [fitted.nearest(vertex, k=2, among=ids) for vertex in ids]
    assert fitted.nearest_many([]) == []


def test_model_index_of_several_ids_returns_one_row_each(fitted: Embedder) -> None:
    ids = fitted.ids[:3]
    for index in (ids, np.array(ids), pa.array(ids)):
        assert np.array_equal(fitted[index], fitted.vectors(ids))


def test_get_returns_the_vector_or_the_default(fitted: Embedder) -> None:
    vertex = fitted.ids[0]
    assert np.array_equal(fitted.get(vertex), fitted[vertex])
    assert fitted.get("unknown") is None
    assert fitted.get("unknown", 7) == 7


def test_similarity_is_the_cosine_that_nearest_returns(fitted: Embedder) -> None:
    vertex = fitted.ids[0]
    other, cosine = fitted.nearest(vertex, k=1)[0]
    assert fitted.similarity(vertex, other) == pytest.approx(cosine, abs=1e-5)
    model = Embedder(dim=2).fit([("a", "b")])
    model.add_vertex("alone")
    assert model.similarity("a", "alone") == 0


def test_degree_of_one_vertex_is_a_number() -> None:
    assert Embedder(dim=2).fit([("a", "b"), ("b", "c")]).degree("b") == 2


def test_embedder_follows_the_conventions_of_transformers() -> None:
    model = Embedder(dim=2)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    vectors = model.fit_transform([("a", "b"), ("b", "c")])
    check_is_fitted(model)
    assert np.array_equal(vectors, model.to_numpy())
    assert np.array_equal(model.transform(["c", "a"]), vectors[[2, 0]])
    table = pa.table({"x": ["a", "b"], "y": ["b", "c"]})
    assert np.array_equal(Embedder(dim=2).fit_transform(table, src="x", dst="y"), vectors)


def test_degree_age_and_neighbors_follow_the_graph() -> None:
    model = Embedder(dim=2, threads=1).fit([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 3.0)])
    model.partial_fit([("d", "b", 4.0), (7, "b", 5.0)])
    assert model.degree(["b", 7, "a"]).tolist() == [4, 1, 2]
    assert model.age(["a", 7]).tolist() == [4, 0]
    assert model.neighbors("b") == [(7, 5.0), ("d", 4.0), ("c", 2.0), ("a", 1.0)]
    assert model.neighbors("b", 2) == [(7, 5.0), ("d", 4.0)]
    assert model.neighbors("b", 0) == []
    model.remove_vertex("d")
    assert model.degree(["b", "a"]).tolist() == [3, 2]
    assert [name for name, _ in model.neighbors("b")] == [7, "c", "a"]
    assert model.age(["a"]).tolist() == [4]  # arrivals since, including removed ones
    for read in (model.degree, model.age, lambda ids: model.neighbors(ids[0])):
        with pytest.raises(UnknownVertexError, match="unknown"):
            read(["unknown"])


def test_neighbours_in_british_spelling_is_the_same_as_neighbors() -> None:
    model, other = (Embedder(dim=2, threads=1).fit(SMALL) for _ in range(2))
    assert np.array_equal(model.preview(neighbours=["a", "b"]), model.preview(["a", "b"]))
    added = model.add_vertex("new", neighbours=np.array(["a", "b"]), weights=[1.0, 2.0])
    assert np.array_equal(added, other.add_vertex("new", ["a", "b"], [1.0, 2.0]))
    assert model.neighbours("new") == model.neighbors("new") == [("b", 2.0), ("a", 1.0)]
    assert model.neighbours("new", limit=1) == model.neighbors("new", limit=1) == [("b", 2.0)]
    assert model.digest() == other.digest()


@pytest.mark.parametrize("neighbors", [["a"], [], np.array(["a"]), "a"])
def test_neighbours_in_both_spellings_are_rejected(neighbors: Any) -> None:
    model = Embedder(dim=2).fit(SMALL)
    before = model.digest()
    for call in (
        lambda: model.add_vertex("new", neighbors, neighbours=["b"]),
        lambda: model.preview(neighbors, neighbours=["b"]),
        lambda: Batch.arrival("new", neighbors, neighbours=["b"]),
    ):
        with pytest.raises(InvalidValueError, match="neighbours: expected one of neighbors and neighbours, got 'both'"):
            call()
    assert model.digest() == before


def test_lock_allows_reading_one_state(fitted: Embedder) -> None:
    with fitted.lock.reading():
        seen = fitted.engine.sequence, len(fitted.engine.graph)
    assert seen == (fitted.sequence, len(fitted))


def test_nearest_vertices_are_of_the_same_community(fitted: Embedder) -> None:
    right = [DATA.labels[name] == DATA.labels[v] for v in range(0, 120, 7) for name, _ in fitted.nearest(v, k=5)]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize("asked", [[1.0, 2.0], np.ones((2, 6)), [np.nan] * 6, [np.inf] * 6, ["a"] * 6, None, 1.5, True])
def test_nearest_with_an_invalid_vector_is_rejected(fitted: Embedder, asked: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^vertex: expected"):
        fitted.nearest(asked)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", True, None])
def test_nearest_with_an_invalid_k_is_rejected(fitted: Embedder, k: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^k: expected a whole number ≥ 1"):
        fitted.nearest(0, k=k)


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]])
def test_preview_equals_the_vector_of_the_arrival(weights: Any) -> None:
    """With depth 0 an arrival moves no other vertex, so that its vector equals the preview."""
    model = Embedder(dim=6, depth=0, anchor_growth=0).fit(DATA.edges)
    before = model.digest()
    expected = model.preview([3, 5, 8], weights)
    assert model.digest() == before
    np.testing.assert_allclose(model.add_vertex("new", [3, 5, 8], weights), expected, atol=1e-5)


def test_preview_without_placed_neighbors_is_zero(fitted: Embedder) -> None:
    assert fitted.preview([]).tolist() == [0] * 6
    model = Embedder(dim=3)
    model.add_vertex("a")
    assert model.preview(["a"]).tolist() == [0, 0, 0]


def test_unknown_vertex_of_the_other_type_is_suggested() -> None:
    model = Embedder(dim=2).fit([(7, 8), (8, "9")])
    suggestions = {"7": "did you mean 7?", 9: "did you mean '9'?"}
    for vertex, suggestion in suggestions.items():
        for read in (model.__getitem__, model.nearest, model.neighbors):
            with pytest.raises(UnknownVertexError) as caught:
                read(vertex)  # type: ignore[operator]
            assert suggestion in str(caught.value)
    with pytest.raises(UnknownVertexError, match="add it first"):
        model["x"]


def test_vertex_of_a_uuid_is_that_of_its_text() -> None:
    first, second = UUID(int=1), UUID(int=2)
    model = Embedder(dim=2).fit([(first, second), (str(second), "a")])
    assert model.ids == [str(first), str(second), "a"]
    assert first in model
    assert np.array_equal(model[first], model[str(first)])
    assert model.nearest(first) == model.nearest(str(first))
    assert model.add_vertex(UUID(int=3), [first]).any()


def test_numpy_array_of_a_model_has_its_vectors(fitted: Embedder) -> None:
    assert np.array_equal(np.asarray(fitted), fitted.to_numpy())
    assert np.asarray(fitted, np.float64).dtype == np.float64


def test_fit_on_a_table_with_named_columns_equals_pairs() -> None:
    table = pa.table({"buyer": ["a", "b"], "item": ["b", "c"], "amount": [1.0, 2.0]})
    model = Embedder(dim=2).fit(table, src="buyer", dst="item", weight="amount")
    assert model.digest() == Embedder(dim=2).fit([("a", "b", 1.0), ("b", "c", 2.0)]).digest()
    model.partial_fit(table, src="item", dst="buyer")
    assert model.neighbors("c") == [("b", 3.0)]


def test_to_pandas_without_pandas_names_the_extra(fitted: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[pandas\]"):
        fitted.to_pandas()


def test_to_pandas_and_to_arrow_hold_ids_and_vectors(fitted: Embedder) -> None:
    frame, table = fitted.to_pandas(), fitted.to_arrow()
    assert frame.index.tolist() == fitted.ids
    assert np.array_equal(frame.to_numpy(), fitted.to_numpy())
    assert table.column_names == ["id", "vector"]
    assert table["id"].to_pylist() == fitted.ids
    assert np.array_equal(np.array(table["vector"].to_pylist(), np.float32), fitted.to_numpy())
    assert pa.types.is_integer(table["id"].type)


@pytest.mark.parametrize(
    ("edges", "ids"),
    [([("é", "b")], ["é", "b"]), ([(1, "1")], ["1", "1"]), ([(2**70, 3)], [str(2**70), "3"]), ([], [])],
)
def test_to_arrow_with_ids_of_all_types_writes_text(edges: Any, ids: list[str]) -> None:
    model = Embedder(dim=2).fit(edges)
    assert model.to_arrow()["id"].to_pylist() == ids
    assert model.to_pandas().shape == (len(ids), 2)
    assert model.to_numpy().shape == (len(ids), 2)


# ---------------------------------------------------------------------- diagnostics


def test_nearest_of_several_vertices_names_the_method_for_them(fitted: Embedder) -> None:
    with pytest.raises(InvalidValueError, match="nearest_many"):
        fitted.nearest([0, 1])  # type: ignore[arg-type]


def test_repr_and_html_show_sizes(fitted: Embedder) -> None:
    assert repr(fitted) == "Embedder(dim=6, rule='ripple'): 120 vertices, 570 edges"
    html = fitted._repr_html_()
    for name, value in fitted.diagnostics().items():
        assert f"<th>{name}</th><td>{value}</td>" in html
    assert repr(Embedder(dim=2).fit([(0, 1)])).endswith("2 vertices, 1 edge")
    assert repr(Embedder(dim=3, rule="paper")) == "Embedder(dim=3, rule='paper'): 0 vertices, 0 edges"


def test_diagnostics_have_the_documented_keys(fitted: Embedder) -> None:
    report = fitted.diagnostics()
    expected = {"vertices", "edges", "unplaced", "orthogonality_error", "growth_since_anchor", "events", "changes"}
    assert expected <= set(report)
    assert report["vertices"] == 120


# ---------------------------------------------------------------------- determinism

SCRIPT = """
import sys
import numpy as np
from ripplevec import Embedder
from ripplevec.rules import ripple
ripple.MIN_EDGES_FOR_THREADS = 1
edges = np.random.default_rng(0).integers(0, 300, (1500, 2))
edges = edges[edges[:, 0] != edges[:, 1]]
model = Embedder(dim=8, rule=sys.argv[1], threads=int(sys.argv[2])).fit(edges[:700])
for part in np.array_split(edges[700:], 8):
    model.partial_fit(part)
print(model.digest(), model.diagnostics()["anchors"])
"""


@pytest.mark.parametrize("rule", ["ripple", "paper"])
def test_digest_is_equal_across_processes_and_threads(rule: str) -> None:
    results = set()
    for threads in ("1", "3"):
        environment = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        source = str(Path(ripplevec.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, rule, threads],
            env=environment | {"PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        )
        results.add(done.stdout)
    (only,) = results
    assert int(only.split()[1]) > (1 if rule == "ripple" else -1)


# ---------------------------------------------------------------------- one writer, many readers


def test_readers_beside_a_writer_see_complete_batches() -> None:
    model = Embedder(dim=8, anchor_growth=0.05).fit(DATA.edges[:300])
    known, faults, done = model.ids, [], threading.Event()

    def read() -> None:
        rng = np.random.default_rng(threading.get_ident() % 1000)
        while not done.is_set():
            try:
                vectors = model.vectors(rng.choice(known, 20))
                lengths = np.linalg.norm(vectors, axis=1)
                assert ((np.abs(lengths - 1) < 1e-4) | (lengths == 0)).all()
                matrix, ids = model.to_numpy(), model.ids
                assert abs(len(matrix) - len(ids)) <= 300
                assert model.nearest(known[0], k=3)[0][1] <= 1
                assert model.diagnostics()["vertices"] >= len(known)
                model.preview(known[:3])
            except Exception as fault:
                faults.append(fault)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for part in np.array_split(DATA.edges[300:], 30):
        model.partial_fit(part)
    for number in range(100):
        model.add_vertex(f"new {number}", [number % 100, (7 * number) % 100])
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []
    model.check()


# ---------------------------------------------------------------------- parameters


def test_clone_by_scikit_learn_has_the_same_parameters() -> None:
    from sklearn.base import clone

    model = Embedder(dim=3, seed=5, views=[SpectralView(tau=1.0)], anchor_growth=0.5).fit(SMALL)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert len(copy) == 0
    assert copy.fit(SMALL).digest() == model.digest()


def test_parameters_are_keyword_only_with_documented_defaults() -> None:
    with pytest.raises(TypeError):
        Embedder(8)  # type: ignore[misc]
    promised = {"dim": 128, "rule": "ripple", "depth": 1, "views": "auto", "anchor_growth": "auto", "seed": 0}
    assert promised.items() <= Embedder().get_params().items()


def test_set_params_starts_over() -> None:
    model = Embedder(dim=3).fit(SMALL)
    assert model.set_params(dim=2, seed=1) is model
    assert (len(model), model.dim, model.seed) == (0, 2, 1)
    assert model.fit(SMALL).to_numpy().shape == (5, 2)


@pytest.mark.parametrize(
    "bad", [{"dim": 0}, {"seed": 1, "rule": "none"}, {"seed": 1, "color": "red"}, {"reuse_influence": True}]
)
def test_set_params_with_an_invalid_value_leaves_the_model_unchanged(bad: dict[str, Any]) -> None:
    model = Embedder(dim=3).fit(SMALL)
    before = model.digest(), model.get_params()
    with pytest.raises(InvalidValueError):
        model.set_params(**bad)
    assert (model.digest(), model.get_params()) == before


# ---------------------------------------------------------------------- saving and loading


def test_save_replaces_a_model_and_rejects_other_directories(tmp_path: Path) -> None:
    model = Embedder(dim=np.int64(3)).fit(SMALL)
    model.save(tmp_path / "model")
    model.add_vertex("new", ["a"])
    model.save(str(tmp_path / "model"))
    assert load(str(tmp_path / "model")).digest() == model.digest()
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(FormatError):
        model.save(tmp_path)
    with pytest.raises(FormatError):
        load(tmp_path / "nothing")


def test_load_of_a_damaged_directory_is_rejected(tmp_path: Path) -> None:
    Embedder(dim=3).fit(SMALL).save(tmp_path / "model")
    file = tmp_path / "model" / "vectors.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):
        load(tmp_path / "model")


def test_load_of_an_incomplete_directory_is_rejected(tmp_path: Path) -> None:
    from ripplevec.util.checked_directory import read_arrays, write_arrays

    Embedder(dim=3).fit(SMALL).save(tmp_path / "model")
    arrays, meta = read_arrays(tmp_path / "model")
    del arrays["placed"]
    write_arrays(tmp_path / "less", arrays, meta)
    write_arrays(tmp_path / "none", {}, {})
    for name in ("less", "none"):
        with pytest.raises(FormatError, match="not a saved model"):
            load(tmp_path / name)


# ---------------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    "weights", [[np.nan], [np.inf], [0], [-1], [1e-60], [1e60], [1e-40], [1e38], [1, 2], ["x"], 1.0]
)
def test_weights_that_are_invalid_are_named_and_change_nothing(weights: Any) -> None:
    for rule in ("ripple", "paper"):
        model = Embedder(dim=2, rule=rule).fit(SMALL)
        before = model.digest()
        for call in (model.add_vertex, lambda name, others, given: model.preview(others, given)):  # noqa: B023
            with pytest.raises(InvalidValueError, match=r"^weight: expected"):
                call("new", ["a"], weights)
        assert model.digest() == before


def test_weights_at_their_bounds_give_unit_vectors() -> None:
    for weight in (1e-30, 1e30):
        model = Embedder(dim=3).fit([(u, v, weight) for u, v in DATA.edges.tolist()])
        for number in range(40):
            model.add_vertex(f"new {number}", [number, 2 * number], [weight, weight])
        np.testing.assert_allclose(np.linalg.norm(model.to_numpy(), axis=1), 1, atol=1e-4)


@pytest.mark.parametrize("name", [1.5, None, True, b"x", ("x",), "\ud800"])
def test_id_that_is_invalid_changes_nothing(name: Any) -> None:
    model = Embedder(dim=2).fit(SMALL)
    before = model.digest()
    for call in (
        lambda: model.add_vertex(name, ["a"]),
        lambda: model.add_vertex("new", ["a", name]),
        lambda: model.add_vertex(name),
        lambda: model.remove_vertex(name),
        lambda: model.vectors([name]),
        lambda: model[name],
        lambda: model.preview([name]),
    ):
        with pytest.raises(InvalidValueError):
            call()
    assert model.digest() == before


@pytest.mark.parametrize("edges", [np.ones((3, 4)), np.ones(3), csr_array((2, 3)), {"a": "b"}, "ab", 7, None])
def test_edges_of_a_wrong_shape_are_rejected(edges: Any) -> None:
    model = Embedder(dim=2).fit(SMALL)
    before = model.digest()
    for call in (model.fit, model.partial_fit, model.remove_edges):
        with pytest.raises(InvalidValueError, match=r"^edges: expected"):
            call(edges)
    assert model.digest() == before


@pytest.mark.parametrize("shape", ["star", "complete", "bipartite", "pairs"])
def test_degenerate_graph_can_grow(shape: str) -> None:
    edges = {
        "star": [(0, i) for i in range(1, 30)],
        "complete": [(i, j) for i in range(20) for j in range(i)],
        "bipartite": [(i, j) for i in range(12) for j in range(12, 24)],
        "pairs": [(2 * i, 2 * i + 1) for i in range(15)],
    }[shape]
    for normalize in (True, False):
        model = Embedder(dim=4, normalize=normalize).fit(edges)
        for number in range(60):
            model.add_vertex(1000 + number, list(range(12)) if shape == "bipartite" else [0])
        assert np.isfinite(model.to_numpy()).all()
        assert np.abs(model.to_numpy()).max() < 1e6


def test_reads_of_one_vertex_accept_a_uuid() -> None:
    vertex = UUID("c21f5a21-3efd-4064-bbb4-9c4387402e9d")
    tags = {str(vertex): {"red": 1}, "a": {"red": 1, "blue": 1}}
    model = Embedder(dim=4).fit([(vertex, "a"), ("a", "b"), ("b", "c")], attributes=tags)
    assert model.recommend(vertex, 1) == model.recommend(str(vertex), 1)
    assert model.nearest_by_attributes(vertex, 1) == model.nearest_by_attributes(str(vertex), 1)
