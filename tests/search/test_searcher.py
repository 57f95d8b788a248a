"""The choice between exact search and the index, which is never part of the model's state."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

from ripplevec import Embedder, load
from ripplevec.errors import MissingExtraError
from ripplevec.lab.datasets.synthetic import growing_communities, planted_partition
from ripplevec.search import ann, searcher
from ripplevec.search.ann import AnnIndex
from ripplevec.search.searcher import query_from_row, query_from_vector

EDGES = growing_communities(300, 4, 4, seed=1).edges


def model(**parameters: object) -> Embedder:
    return Embedder(**{"dim": 8, **parameters}).fit(EDGES)  # type: ignore[arg-type]


@pytest.fixture
def indexes(monkeypatch: pytest.MonkeyPatch) -> WeakSet[AnnIndex]:
    """The indexes that models of this test have created and not dropped."""
    existing = WeakSet[AnnIndex]()

    class RecordedIndex(AnnIndex):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            existing.add(self)

    monkeypatch.setattr(ann, "AnnIndex", RecordedIndex)
    return existing


@pytest.fixture
def without_usearch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "_usearch_installed", lambda: False)


def test_auto_search_uses_an_index_for_large_models_only(
    monkeypatch: pytest.MonkeyPatch, indexes: WeakSet[AnnIndex]
) -> None:
    small = model()
    small.nearest(3)
    assert not indexes
    monkeypatch.setattr(searcher, "MAX_EXACT_VERTICES", 299)
    small.nearest(3)
    assert len(indexes) == 1


def test_auto_search_keeps_the_index_down_to_half_the_limit(
    monkeypatch: pytest.MonkeyPatch, indexes: WeakSet[AnnIndex]
) -> None:
    monkeypatch.setattr(searcher, "MAX_EXACT_VERTICES", 299)
    shrinking = model()
    shrinking.nearest(3)
    first = {id(index) for index in indexes}
    for vertex in range(299, 149, -1):
        assert {id(index) for index in indexes} == first != set()
        shrinking.remove_vertex(vertex)
        shrinking.nearest(3)
    shrinking.remove_vertex(149)
    shrinking.nearest(3)
    assert not indexes


@pytest.mark.usefixtures("without_usearch")
def test_search_without_usearch_is_exact_or_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, indexes: WeakSet[AnnIndex]
) -> None:
    monkeypatch.setattr(searcher, "MAX_EXACT_VERTICES", 10)
    plain = model()
    assert plain.nearest(3) == model(search="exact").nearest(3)
    assert not indexes
    with pytest.raises(MissingExtraError, match=r"^search=\"ann\" needs .*pip install .*\[ann\]'$"):
        Embedder(search="ann")
    with pytest.raises(MissingExtraError):
        plain.set_params(search="ann")


def test_nearest_in_an_empty_model_is_empty() -> None:
    assert Embedder(dim=4, search="ann").nearest(np.ones(4)) == []


def test_nearest_with_k_above_the_size_returns_all() -> None:
    near = model(search="ann").nearest(3, k=1_000)
    assert near == model(search="exact").nearest(3, k=1_000)
    assert len(near) == 299


def test_refit_model_gets_a_new_index(indexes: WeakSet[AnnIndex]) -> None:
    again = model(search="ann")
    again.nearest(3)
    (first,) = indexes
    again.fit(EDGES[:200])
    assert again.nearest(3) == Embedder(dim=8, search="exact").fit(EDGES[:200]).nearest(3)
    assert len(set(indexes) - {first}) == 1
    del first
    assert len(indexes) == 1  # the model has dropped the old one


def test_index_is_not_part_of_saved_state_or_digest(tmp_path: Path, indexes: WeakSet[AnnIndex]) -> None:
    indexed, plain = model(search="ann"), model(search="exact")
    for vertex in range(300, 320):
        indexed.nearest(3)
        assert np.array_equal(indexed.add_vertex(vertex, [3, 5]), plain.add_vertex(vertex, [3, 5]))
    assert indexed.digest() == plain.digest()
    indexed.save(tmp_path / "model")
    copies = load(tmp_path / "model"), pickle.loads(pickle.dumps(indexed))
    for number, copy in enumerate(copies, 1):
        assert copy.search == "ann"
        assert len(indexes) == number  # those of the original and of copies that were searched
        assert copy.nearest(3) == plain.nearest(3)


def test_failed_search_releases_the_update_lock(indexes: WeakSet[AnnIndex]) -> None:
    searched = model(search="ann")
    with pytest.raises(KeyError):
        searched.nearest("unknown")
    searched.nearest(3)
    assert len(indexes) == 1  # only a search with the lock creates an index


TWO_COMMUNITIES = planted_partition(communities=2, size=20, inside=6, elsewhere=1, seed=0).edges


@pytest.fixture(params=[True, False])
def engine(request: pytest.FixtureRequest) -> Any:
    """Return the engine of a small model after an anchor, so that its coordinates are rotated."""
    model = Embedder(dim=4, normalize=request.param).fit(TWO_COMMUNITIES)
    model.partial_fit([("new", 0), ("new", 1)])
    model.anchor()
    return model.engine


def cosine(left: Any, right: Any) -> float:
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def test_query_from_row_excludes_the_row_and_has_its_served_vector(engine: Any) -> None:
    row = engine.graph.ids.find_row("new")
    query = query_from_row(engine.rule, engine.store.vectors[row], row)
    assert query.exclude == row
    np.testing.assert_allclose(query.served, engine.rule.to_served(engine.store.vectors[[row]])[0])
    assert np.linalg.norm(query.internal) == pytest.approx(1)


def test_query_from_vector_excludes_nothing_and_points_in_the_same_direction(engine: Any) -> None:
    row = engine.graph.ids.find_row("new")
    of_row = query_from_row(engine.rule, engine.store.vectors[row], row)
    query = query_from_vector(engine.rule, of_row.served.astype(np.float64))
    assert query.exclude == -1
    assert query.internal.shape == (1, 4)
    assert cosine(query.internal[0], of_row.internal[0]) == pytest.approx(1, abs=1e-5)
