"""Models with attributes: quality of the parts, newcomers without edges, saving, determinism and refused input."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder, InvalidValueError, Op, UnknownVertexError, load
from ripplevec.attributes.store import DERIVED, NONE, OWN
from ripplevec.engine.attributed_engine import AttributedEngine

GROUPS, SIZE, DIM = 4, 60, 16


def group_of(vertex: int) -> int:
    return vertex % GROUPS


def random_tags(vertex: int, seed: int = 0) -> dict[str, float]:
    """Return tags of which most belong to the group of the vertex."""
    random = np.random.default_rng([seed, vertex])
    own = {f"g{group_of(vertex)}t{tag}": 1.0 for tag in random.choice(12, 5, replace=False)}
    return own | {f"common{tag}": 1.0 for tag in random.choice(6, 2, replace=False)}


def random_vector(vertex: int) -> list[float]:
    random = np.random.default_rng(vertex)
    return (random.normal(size=20) * 0.4 + 3 * np.eye(20)[group_of(vertex)]).tolist()


def random_edges(first: int, last: int, seed: int = 0) -> list[tuple[int, int]]:
    """Return edges of new vertices to earlier ones, mostly of the same group."""
    random, edges = np.random.default_rng([seed, first, last]), []
    for vertex in range(max(first, GROUPS), last):
        for _ in range(4):
            other = int(random.integers(0, vertex))
            if random.random() < 0.8:
                other -= (other - vertex) % GROUPS
            edges.append((vertex, max(other, 0)))
    return [(u, v) for u, v in edges if u != v]


def start_model(rows: Any = random_tags, **parameters: Any) -> Embedder:
    """Return a model of the first vertices with their attributes."""
    count = GROUPS * SIZE
    attributes = {vertex: rows(vertex) for vertex in range(count)}
    return Embedder(dim=DIM, **parameters).fit(random_edges(0, count), attributes=attributes)


def engine_of(model: Embedder) -> AttributedEngine:
    assert isinstance(model.engine, AttributedEngine)
    return model.engine


def arrive(model: Embedder, first: int, last: int, rows: Any = random_tags) -> None:
    """Let vertices arrive one by one with edges and attributes."""
    for vertex in range(first, last):
        neighbors = list({v for _, v in random_edges(vertex, vertex + 1)})
        model.add_vertex(vertex, neighbors, attributes=rows(vertex))


def share_of_group(model: Embedder, vertex: int, count: int = 20) -> float:
    """Return the share of the nearest vertices that are in the group of a vertex."""
    return float(np.mean([group_of(int(other)) == group_of(vertex) for other, _ in model.nearest(vertex, count)]))


@pytest.mark.parametrize("rows", [random_tags, random_vector])
def test_vectors_have_length_one_and_both_parts(rows: Any) -> None:
    model = start_model(rows)
    vectors = model.to_numpy()
    assert vectors.shape == (GROUPS * SIZE, DIM)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors[:, : DIM // 2], axis=1), 0.8**0.5, rtol=1e-4)


@pytest.mark.parametrize("rows", [random_tags, random_vector])
def test_newcomer_without_edges_is_placed_by_its_attributes(rows: Any) -> None:
    model, shares = start_model(rows), []
    for vertex in range(1000, 1008):
        preview = model.preview(attributes=rows(vertex))
        vector = model.add_vertex(vertex, attributes=rows(vertex))
        np.testing.assert_array_equal(preview, vector)
        assert not vector[: DIM // 2].any()
        shares.append(share_of_group(model, vertex))
        found = model.nearest_by_attributes(rows(vertex), 5, among=range(GROUPS * SIZE))
        shares.append(float(np.mean([group_of(int(other)) == group_of(vertex) for other, _ in found])))
    assert np.mean(shares) > 0.85
    assert model.diagnostics()["unplaced"] == 0


def test_preview_with_edges_and_attributes_is_the_vector_on_arrival() -> None:
    model = start_model()
    preview = model.preview([1, 5], attributes={"g1t1": 1, "unseen": 2})
    vector = model.add_vertex("new", [1, 5], attributes={"g1t1": 1, "unseen": 2})
    np.testing.assert_allclose(preview[DIM // 2 :], vector[DIM // 2 :], rtol=1e-5)


def test_vertex_without_attributes_gets_the_mean_of_its_neighbors() -> None:
    model = start_model()
    vector = model.add_vertex("new", [1, 5, 9])
    engine = engine_of(model)
    assert engine.attributes.status[engine.find_row("new")] == DERIVED
    parts = model.vectors([1, 5, 9])[:, DIM // 2 :]
    mean = parts.sum(axis=0)
    np.testing.assert_allclose(vector[DIM // 2 :], mean / np.linalg.norm(mean) * 0.2**0.5, rtol=1e-4)
    model.add_vertex("alone")
    assert engine.attributes.status[engine.find_row("alone")] == NONE
    assert not model["alone"].any()


def test_vertex_without_part_gets_one_when_a_neighbor_gets_attributes() -> None:
    model = start_model()
    model.partial_fit([("p", "q")])
    assert not model["q"][DIM // 2 :].any()
    changes = model.set_attributes(["p"], [random_tags(1)])
    assert {"p", "q"} <= set(changes.ids)
    np.testing.assert_allclose(model["q"][DIM // 2 :], model["p"][DIM // 2 :], rtol=1e-5)
    np.testing.assert_array_equal(changes.vectors[changes.ids.index("q")], model["q"])


def test_set_attributes_replaces_and_an_empty_row_removes_them() -> None:
    model = start_model()
    model.add_vertex("new", attributes=random_tags(1))
    model.set_attributes(["new"], [random_tags(2)])
    np.testing.assert_allclose(model["new"], model.preview(attributes=random_tags(2)), atol=0.05)
    engine = engine_of(model)
    before = engine.attributes.rows
    model.set_attributes(["new"], [{}])
    assert engine_of(model).attributes.rows == before - 1
    assert not model["new"].any()


def test_removed_vertex_leaves_nothing_for_the_next_in_its_row() -> None:
    model = start_model()
    rows = engine_of(model).attributes.rows
    total = engine_of(model).attributes.projection.total
    model.remove_vertex(3)
    assert engine_of(model).attributes.rows == rows - 1
    assert engine_of(model).attributes.projection.total == total - 1
    model.add_vertex("next")
    assert not model["next"].any()


def test_anchor_after_most_vertices_were_removed_keeps_the_parts_of_the_others() -> None:
    model = start_model(random_vector)
    model.partial_fit(Batch.vertices(range(20, 240), Op.REMOVE_VERTEX))
    before = model.vectors(range(20))[:, DIM // 2 :]
    model.anchor()
    model.anchor()
    model.add_vertex("new", attributes=random_vector(1))
    parts = model.vectors(range(20))[:, DIM // 2 :]
    np.testing.assert_array_equal(parts, before)  # dense attributes are not kept


def test_arrivals_one_by_one_and_as_batches_give_the_same_bits() -> None:
    single, batches = start_model(), start_model()
    for vertex in range(1000, 1100):
        neighbors = sorted({v % 240 for _, v in random_edges(vertex, vertex + 1)})
        attributes = random_tags(vertex) if vertex % 3 else None
        single.add_vertex(vertex, neighbors, attributes=attributes)
        batches.partial_fit(
            [(vertex, other) for other in neighbors],
            attributes=None if attributes is None else {vertex: attributes},
        )
    assert single.digest() == batches.digest()


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("rows", [random_tags, random_vector])
def test_saved_model_continues_with_the_same_bits(rows: Any, keep: bool, tmp_path: Path) -> None:
    model = start_model(rows, keep_attributes=keep)
    arrive(model, 240, 330, rows)  # in the middle of a refit, or of the refresh after it
    model.save(tmp_path / "model")
    others = [load(tmp_path / "model"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    arrive(model, 330, 420, rows)
    for other in others:
        arrive(other, 330, 420, rows)
        assert other.digest() == model.digest()
        np.testing.assert_array_equal(other.to_numpy(), model.to_numpy())
    model.anchor()
    others[0].anchor()
    assert others[0].digest() == model.digest()


def test_result_does_not_depend_on_the_number_of_threads() -> None:
    digests = set()
    for threads in (1, 2):
        model = start_model(threads=threads)
        arrive(model, 240, 280)
        model.anchor()
        digests.add(model.digest())
    assert len(digests) == 1


def test_digest_depends_on_attributes() -> None:
    first, second = start_model(), start_model()
    assert first.digest() == second.digest()
    second.set_attributes([7], [{"other": 1}])
    first.partial_fit([])
    assert first.digest() != second.digest()


def test_stream_of_new_names_moves_the_projection() -> None:
    model = start_model()
    for vertex in range(1000, 1400):  # two new groups of vertices, with names that were never seen
        group = vertex % 2
        tags = {f"new{group}t{tag}": 1.0 for tag in np.random.default_rng(vertex).choice(12, 5, replace=False)}
        model.add_vertex(vertex, attributes=tags)
    assert engine_of(model).attributes.projection.learned_names > 54
    found = [int(other) % 2 for other, _ in model.nearest_by_attributes({"new1t1": 1, "new1t2": 1}, 20)]
    assert np.mean(found) > 0.9


def test_model_that_began_empty_learns_when_attributes_arrive() -> None:
    model = Embedder(dim=DIM, attribute_dim=6)
    assert model.nearest_by_attributes({"a": 1}) == []
    for vertex in range(80):
        model.add_vertex(vertex, attributes=random_tags(vertex))
    assert np.mean([share_of_group(model, vertex, 5) for vertex in range(40)]) > 0.9
    assert model.to_numpy().shape == (80, DIM)


def test_anchor_relearns_and_keeps_coordinates_still() -> None:
    model = start_model()
    arrive(model, 240, 300)
    before = model.vectors(range(240))[:, DIM // 2 :]
    changes = model.anchor()
    after = model.vectors(range(240))[:, DIM // 2 :]
    assert changes.anchored
    assert np.mean((before * after).sum(1)) > 0.9 * 0.2  # both have this squared length


@pytest.mark.parametrize("pace", ["gradual", "immediate"])
def test_model_with_dimensions_for_attributes_but_none_at_the_start(pace: str) -> None:
    model = Embedder(dim=DIM, attribute_dim=6, anchor_pace=pace).fit(random_edges(0, 240))
    assert not model.to_numpy()[:, DIM - 6 :].any()
    for first in range(240, 480, 40):  # grows by more than an anchor needs
        attributes = {vertex: random_tags(vertex) for vertex in range(first, first + 40)}
        model.partial_fit(random_edges(first, first + 40), attributes=attributes)
    assert model.diagnostics()["anchors"] > 0
    assert model.diagnostics()["attributed"] == 240
    assert np.mean([share_of_group(model, vertex) for vertex in range(400, 480)]) > 0.8


def test_attribute_weight_is_the_ratio_of_the_parts() -> None:
    model = start_model(attribute_weight=2)
    vectors = model.to_numpy()
    lengths = np.linalg.norm(vectors[:, : DIM // 2], axis=1), np.linalg.norm(vectors[:, DIM // 2 :], axis=1)
    np.testing.assert_allclose(lengths[1] / lengths[0], 2, rtol=1e-4)


def test_nearest_is_exact_for_rows_and_vectors() -> None:
    model = start_model()
    arrive(model, 240, 260)
    vectors = model.vectors(range(260))
    for vertex in (0, 250):
        cosines = vectors @ model[vertex]
        cosines[vertex] = -2
        found = model.nearest(vertex, 10)
        np.testing.assert_allclose([cosine for _, cosine in found], np.sort(cosines)[::-1][:10], atol=1e-5)
        assert model.nearest(model[vertex], 1)[0][0] == vertex


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_dense_attributes_are_not_kept_and_sparse_ones_on_request(storage: str) -> None:
    kept = [
        engine_of(start_model(rows, keep_attributes=keep, storage=storage)).attributes.kept.nbytes
        for rows, keep in ((random_tags, True), (random_tags, False), (random_vector, True))
    ]
    assert kept[0] > 0
    assert kept[1:] == [0, 0]


def test_fit_without_attributes_has_no_attribute_part() -> None:
    model = start_model()
    model.fit(random_edges(0, 240))
    assert not isinstance(model.engine, AttributedEngine)
    plain = Embedder(dim=DIM).fit(random_edges(0, 240))
    assert model.digest() == plain.digest()


BAD_ROWS: list[tuple[Any, str]] = [
    ({1: {"x": float("nan")}}, "nan in row 0, column 'x'"),
    ({1: [1.0] * 20}, "expected sparse rows, as the rows before, got 'dense rows'"),
]


@pytest.mark.parametrize(("attributes", "message"), BAD_ROWS)
def test_bad_attributes_change_nothing(attributes: Any, message: str) -> None:
    model = start_model()
    before = model.digest()
    calls = [
        lambda: model.partial_fit([(1, 2)], attributes=attributes),
        lambda: model.set_attributes([1], [attributes[1]]),
        lambda: model.add_vertex("new", [1], attributes=attributes[1]),
        lambda: model.preview([1], attributes=attributes[1]),
        lambda: model.nearest_by_attributes(attributes[1]),
    ]
    for call in calls:
        with pytest.raises(InvalidValueError, match=message):
            call()
    assert model.digest() == before


def test_rows_of_another_width_or_with_other_labels_are_refused() -> None:
    model = start_model(random_vector)
    with pytest.raises(InvalidValueError, match="rows of 20 numbers, as the rows before, got 3"):
        model.add_vertex("new", attributes=[1, 2, 3])
    with pytest.raises(UnknownVertexError):
        model.set_attributes(["unknown"], [[1.0] * 20])


def test_model_without_dimensions_for_attributes_refuses_them() -> None:
    model = Embedder(dim=4).fit([("a", "b"), ("b", "c")])
    for call in (
        lambda: model.add_vertex("d", attributes={"x": 1}),
        lambda: model.set_attributes(["a"], [{"x": 1}]),
        lambda: model.partial_fit([("a", "d")], attributes={"a": {"x": 1}}),
        lambda: model.preview(["a"], attributes={"x": 1}),
        lambda: model.nearest_by_attributes({"x": 1}),
    ):
        with pytest.raises(InvalidValueError, match="create the model with attribute_dim"):
            call()


@pytest.mark.parametrize(
    "parameters",
    [{"rule": "paper"}, {"normalize": False}, {"attribute_weight": 0}, {"attribute_dim": 4}, {"keep_attributes": 1}],
)
def test_parameters_that_do_not_fit_attributes_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        Embedder(**{"dim": 4, "attribute_dim": 2, **parameters})


def test_own_rows_stay_own_when_neighbors_change() -> None:
    model = start_model()
    engine = engine_of(model)
    assert (engine.attributes.status[: engine.graph.row_count] == OWN).all()


TINY_AND_LARGE = [(1e-45, 1.0), (1e-40, 1e-40), (1.0, 1e-40), (1e-40, 1e14)]


@pytest.mark.parametrize(("first", "later"), TINY_AND_LARGE)
@pytest.mark.parametrize("dense", [False, True])
def test_attributes_of_any_size_give_finite_vectors_of_length_one(first: float, later: float, dense: bool) -> None:
    random = np.random.default_rng(1)

    def row(vertex: int, size: float) -> Any:
        return (random.normal(size=6) * size).tolist() if dense else {f"t{vertex % 5}": size, f"u{vertex % 7}": size}

    count = 50
    model = Embedder(dim=8).fit(random_edges(0, count), attributes={v: row(v, first) for v in range(count)})
    for vertex in range(count, count + 20):
        attributes = row(vertex, later)
        for vector in (
            model.preview([vertex % count], attributes=attributes),
            model.add_vertex(vertex, [vertex % count], attributes=attributes),
        ):
            assert np.linalg.norm(vector) == pytest.approx(1, rel=1e-5)
    model.set_attributes([3], [row(3, later)])
    for _ in range(2):
        np.testing.assert_allclose(np.linalg.norm(model.to_numpy(), axis=1), 1, rtol=1e-5)
        assert all(np.isfinite(cosine) for _, cosine in model.nearest_by_attributes(3))
        model.anchor()  # failed on numbers that are not finite


@pytest.mark.parametrize("weight", [1e-30, 1e-20, 1e20, 1e30])
def test_derived_parts_do_not_depend_on_the_size_of_edge_weights(weight: float) -> None:
    count, vectors = 50, []
    for size in (1.0, weight):
        edges = [(u, v, size) for u, v in random_edges(0, count)]
        tags = {vertex: random_tags(vertex) for vertex in range(0, count, 2)}
        model = Embedder(dim=8, attribute_weight=0.5).fit(edges, attributes=tags)
        model.partial_fit([("new", vertex, size) for vertex in (0, 2, 5)])
        vectors.append(model.to_numpy()[:, -engine_of(model).attribute_dim :])
        assert (model.preview([0, 2], [size, size])[-engine_of(model).attribute_dim :] != 0).any()
    np.testing.assert_allclose(vectors[0] @ vectors[0].T, vectors[1] @ vectors[1].T, atol=1e-4)  # signs may differ
