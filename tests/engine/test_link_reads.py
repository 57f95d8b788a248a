"""Scores of candidate edges and recommendations, compared with plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder
from ripplevec.engine import link_reads
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.lab.datasets.synthetic import planted_partition


@pytest.fixture(params=["ripple", "paper"])
def model(request: pytest.FixtureRequest) -> Embedder:
    """Four communities, and a vertex without a vector; vectors of rule "paper" do not have length one."""
    model = Embedder(dim=8, threads=1, rule=request.param).fit(planted_partition(communities=4, size=20).edges)
    model.partial_fit(Batch.vertices(["alone"]))
    return model


def cosine(model: Embedder, first: np.ndarray, second: np.ndarray) -> float:
    lengths = np.linalg.norm(first.astype(float)) * np.linalg.norm(second.astype(float))
    return float(first.astype(float) @ second) / lengths if lengths else 0.0


def test_score_is_the_cosine_of_each_pair(model: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_reads, "PAIRS_PER_BLOCK", 3)  # several blocks
    pairs = [(0, 1), (5, 70), (5, 5), (0, "alone"), (79, 3)]
    expected = [cosine(model, model[a], model[b]) for a, b in pairs]
    np.testing.assert_allclose(model.score(pairs), expected, atol=1e-6)
    assert model.score(pairs).dtype == np.float32
    assert model.score(pairs)[3] == 0
    assert model.score([]).shape == (0,)


def test_score_of_newcomer_uses_the_previewed_vector(model: Embedder) -> None:
    before, preview = model.digest(), model.preview([0, 1, 2])
    scores = model.score([("new", 3), (60, "new")], newcomers={"new": [0, 1, 2]})
    np.testing.assert_allclose(scores, [cosine(model, preview, model[3]), cosine(model, preview, model[60])], atol=1e-6)
    assert model.digest() == before


def test_recommend_returns_the_best_candidates_without_neighbors(model: Embedder) -> None:
    neighbors = {name for name, _ in model.neighbors(7)}
    others = [name for name in model.ids if name not in neighbors | {7, "alone"}]
    expected = sorted(model.score([(7, name) for name in others]).tolist(), reverse=True)[:6]
    found = model.recommend(7, 6)
    np.testing.assert_allclose([score for _, score in found], expected, atol=1e-6)
    assert not neighbors & {name for name, _ in found}
    assert len(model.recommend(7, 1000)) == len(others)


def test_recommend_with_neighbors_equals_nearest(model: Embedder) -> None:
    assert model.recommend(7, 6, exclude=None) == model.nearest(7, 6)


def test_recommend_among_candidates_ranks_only_those(model: Embedder) -> None:
    among = [name for name in range(40, 60) if name not in dict(model.neighbors(7))]
    found = model.recommend(7, 5, among=[7, "alone", *among])
    scores = dict(zip(among, model.score([(7, name) for name in among]).tolist(), strict=True))
    assert [name for name, _ in found] == sorted(among, key=lambda name: (-scores[name], name))[:5]


def test_recommend_many_equals_single_recommendations(model: Embedder) -> None:
    newcomers = {"new": [0, 1]}
    for among in (None, list(range(30))):
        many = model.recommend([3, "new", 50], 4, among=among, newcomers=newcomers)
        assert many == [model.recommend(name, 4, among=among, newcomers=newcomers) for name in (3, "new", 50)]
        assert not {0, 1} & {name for name, _ in many[1]}  # the neighbors of the newcomer
    assert model.recommend([], 4) == []


def test_recommend_for_vertex_without_vector_returns_nothing(model: Embedder) -> None:
    assert model.recommend("alone") == model.recommend("alone", among=[1, 2]) == []


def test_unknown_vertices_and_bad_values_raise(model: Embedder) -> None:
    for read in (
        lambda: model.score([(0, "x"), ("y", 1)]),
        lambda: model.recommend("x"),
        lambda: model.recommend(0, among=["x"]),
        lambda: model.score([("new", 0)], newcomers={"new": ["x"]}),
    ):
        with pytest.raises(UnknownVertexError, match="x"):
            read()
    for bad in (
        lambda: model.recommend(0, 0),
        lambda: model.recommend(0, exclude="self"),  # type: ignore[call-overload]
        lambda: model.recommend("alone", newcomers={0: [1]}),
        lambda: model.score(Batch.of([0], [1], op=[Op.REMOVE])),
    ):
        with pytest.raises(InvalidValueError, match="expected"):
            bad()
