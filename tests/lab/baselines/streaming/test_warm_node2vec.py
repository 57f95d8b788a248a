from __future__ import annotations

from typing import Any

import gensim.models
import numpy as np
import pytest

from ripplevec.lab.baselines import Node2Vec, skip_gram
from ripplevec.lab.baselines.skip_gram import WalkSentences
from ripplevec.lab.baselines.streaming import WarmNode2Vec

SETTINGS = {"dim": 8, "length": 10}


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The walks of each training, in order."""
    generated = list[np.ndarray]()

    def record(rows: np.ndarray) -> WalkSentences:
        generated.append(rows.copy())
        return WalkSentences(rows)

    monkeypatch.setattr(skip_gram, "WalkSentences", record)
    return generated


def test_warm_node2vec_vectors_stay_until_chunk_is_complete(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=5)
    method.start(small_stream.graph)
    start = method.vectors().copy()
    for v, neighbors in small_stream.arrivals[:4]:
        method.add_vertex(v, neighbors)
    np.testing.assert_array_equal(method.vectors()[:80], start)
    v, neighbors = small_stream.arrivals[4]
    previewed = method.preview(neighbors)
    assert (method.add_vertex(v, neighbors) != previewed).any()
    assert (method.vectors()[:80] != start).any()


def test_warm_node2vec_training_continues_from_current_vectors(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, walks=2, chunk=1)
    method.start(small_stream.graph)
    start = method.vectors().copy()
    previewed = method.preview([0, 1])
    given = method.add_vertex(80, [0, 1])
    moved = np.linalg.norm(method.vectors()[:80] - start, axis=1)
    assert np.linalg.norm(given - previewed) < 0.25 * np.linalg.norm(previewed)
    assert np.median(moved) < 0.2 * np.median(np.linalg.norm(start, axis=1))


def test_warm_node2vec_walks_start_at_touched_vertices(small_stream: Any, walks: list[np.ndarray]) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=2, walks=3)
    method.start(small_stream.graph)
    method.add_vertex(80, [4, 9])
    method.add_vertex(81, [])
    _, last = walks
    assert last.shape == (9, 10)
    assert sorted(last[:, 0].tolist()) == [4, 4, 4, 9, 9, 9, 80, 80, 80]
    assert set(last[last[:, 0] == 80, 1].tolist()) <= {4, 9}
    graph = np.zeros((82, 82))
    graph[:80, :80] = small_stream.graph.toarray()
    graph[80, [4, 9]] = graph[[4, 9], 80] = 1
    assert (graph[last[:, :-1].ravel(), last[:, 1:].ravel()] > 0).all()


def test_warm_node2vec_walks_follow_node2vec_bias(small_stream: Any, walks: list[np.ndarray]) -> None:
    settings = SETTINGS | {"p": 0.25, "q": 4.0, "seed": 3}
    WarmNode2Vec(**settings).start(small_stream.graph)
    (first,) = walks
    assert set(first[:, 0].tolist()) == set(np.flatnonzero(np.diff(small_stream.graph.indptr)).tolist())
    reference = Node2Vec(**settings).generate_walks(small_stream.graph)
    returns, expected = [(rows[:, 2:] == rows[:, :-2]).mean() for rows in (first, reference)]
    assert returns == pytest.approx(expected, abs=0.03)
    assert expected > 0.3


def test_warm_node2vec_learns_edges_between_known_vertices(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=1)
    method.start(small_stream.graph)
    before = method.vectors()[[0, 50]].copy()
    method.add_vertex(0, [50])
    assert (method.vectors()[[0, 50]] != before).any(axis=1).all()


def test_warm_node2vec_does_not_downsample_few_words(small_stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    models = list[Any]()

    class RecordedModel(gensim.models.Word2Vec):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            models.append(self)

    monkeypatch.setattr(gensim.models, "Word2Vec", RecordedModel)
    method = WarmNode2Vec(**SETTINGS, chunk=1)
    method.start(small_stream.graph)
    method.add_vertex(80, [0])
    (model,) = models
    kept = [model.wv.get_vecattr(word, "sample_int") for word in model.wv.index_to_key]
    assert min(kept) == 2**32 - 1
