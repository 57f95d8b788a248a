"""The weight of attribute parts: chosen once by hidden edges, the default one without clear evidence, and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec import Embedder, load
from ripplevec.attributes.store import DEFAULT_WEIGHT, StoredRows
from ripplevec.attributes.weight_choice import WEIGHTS, select_attributes, select_weight
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=5, size=60, inside=4, elsewhere=4, seed=1)
EDGES = [tuple(pair) for pair in DATA.edges.tolist()]


def make_tags(informative: bool, seed: int = 0) -> dict[int, dict[str, float]]:
    random = np.random.default_rng(seed)
    groups = DATA.labels if informative else random.integers(0, 5, DATA.vertices)
    return {
        vertex: {f"g{group}t{tag}": 1.0 for tag in random.choice(30, 8, replace=False).tolist()}
        for vertex, group in enumerate(groups.tolist())
    }


def weight_of(model: Embedder) -> float:
    return float(model.diagnostics()["attribute_weight"])


def test_weight_rises_for_attributes_that_predict_edges_and_not_for_misleading_ones() -> None:
    informative = Embedder(dim=16).fit(EDGES, attributes=make_tags(True))
    misleading = Embedder(dim=16).fit(EDGES, attributes=make_tags(False))
    assert weight_of(informative) > DEFAULT_WEIGHT
    assert 0 < weight_of(misleading) <= DEFAULT_WEIGHT
    assert list(informative.diagnostics()["attribute_weight_scores"]) == ["0.25", "0.5", "1", "2"]


def test_weight_of_dense_attributes_is_chosen() -> None:
    values = 2 * np.eye(5)[DATA.labels] + np.random.default_rng(0).normal(size=(DATA.vertices, 5))
    model = Embedder(dim=16).fit(EDGES, attributes=(np.arange(DATA.vertices), values))
    assert weight_of(model) > DEFAULT_WEIGHT


def test_given_weight_is_used_and_nothing_is_measured() -> None:
    model = Embedder(dim=16, attribute_weight=0.7).fit(EDGES, attributes=make_tags(True))
    assert weight_of(model) == 0.7
    assert model.diagnostics()["attribute_weight_scores"] == {}


def test_small_graph_has_the_default_weight() -> None:
    model = Embedder(dim=8).fit([(0, 1), (1, 2)], attributes={0: {"a": 1}, 1: {"b": 1}})
    assert weight_of(model) == DEFAULT_WEIGHT


def test_weight_stays_during_a_stream_and_an_anchor() -> None:
    model = Embedder(dim=16).fit(EDGES, attributes=make_tags(True))
    before, scores = weight_of(model), model.diagnostics()["attribute_weight_scores"]
    model.partial_fit(EDGES[:0], attributes=make_tags(False, 3))
    model.anchor()
    assert weight_of(model) == before
    assert model.diagnostics()["attribute_weight_scores"] == scores


def test_weight_of_a_model_that_began_empty_is_chosen_with_its_start() -> None:
    model = Embedder(dim=16, attribute_dim=8)
    changes = model.partial_fit(EDGES, attributes=make_tags(True))
    assert weight_of(model) > DEFAULT_WEIGHT
    assert set(changes.ids) == set(range(DATA.vertices))
    np.testing.assert_array_equal(changes.vectors, model.vectors(changes.ids))


def test_anchor_chooses_the_weight_if_attributes_came_after_the_start() -> None:
    model = Embedder(dim=16, attribute_dim=8).fit(EDGES)
    tags = make_tags(True)
    model.set_attributes(list(tags), list(tags.values()))
    assert weight_of(model) == DEFAULT_WEIGHT
    changes = model.anchor()
    assert weight_of(model) > DEFAULT_WEIGHT
    assert set(changes.ids) == set(range(DATA.vertices))


@pytest.mark.parametrize("fresh", [False, True])
def test_chosen_weight_is_saved_and_part_of_the_digest(tmp_path: Path, fresh: bool) -> None:
    model = Embedder(dim=16).fit(EDGES, attributes=make_tags(True))
    model.save(tmp_path / "model")
    again = Embedder(dim=16).fit(EDGES, attributes=make_tags(True)) if fresh else load(tmp_path / "model")
    assert again.digest() == model.digest()
    assert again.diagnostics()["attribute_weight_scores"] == model.diagnostics()["attribute_weight_scores"]
    np.testing.assert_array_equal(again.to_numpy(), model.to_numpy())


def ranks_with_means(*means: float) -> Any:
    noise = np.random.default_rng(0).uniform(-0.01, 0.01, 2_000)
    return np.array([mean + noise for mean in means])


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((0.5, 0.5, 0.5, 0.5), 0.5),
        ((0.505, 0.5, 0.4, 0.3), 0.5),  # better, but hardly
        ((0.52, 0.5, 0.4, 0.3), 0.25),
        ((0.4, 0.5, 0.52, 0.525), 1.0),  # the nearest one that is as good as the best
        ((0.4, 0.5, 0.52, 0.55), 2.0),
    ],
)
def test_selected_weight_is_the_nearest_to_the_default_that_is_not_clearly_worse(means: Any, expected: float) -> None:
    choice = select_weight(ranks_with_means(*means))
    assert choice.weight == expected
    assert len(choice.scores) == len(WEIGHTS)


def test_selected_attributes_are_those_of_the_members_that_have_some() -> None:
    rows, members = np.array([4, 2, 9]), np.array([9, 3, 4])
    matrix = csr_array(np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 5, 0, 6.0]]))
    given = StoredRows(rows, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype("f4"))
    selected = select_attributes(given, members)
    assert np.asarray(selected.ids).tolist() == [0, 2]
    assert np.asarray(selected.names)[selected.columns].tolist() == [1, 3, 1, 3]
    assert selected.values.tolist() == [5, 6, 1, 2]
    dense = select_attributes(given._replace(values=np.arange(6, dtype=np.float32).reshape(3, 2)), members)
    assert dense.values.tolist() == [[4, 5], [0, 1]]
