from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.lab.baselines import Node2Vec
from ripplevec.lab.baselines.streaming import WarmNode2Vec

SETTINGS = {"dim": 8, "length": 10}


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


def test_warm_node2vec_walks_start_at_touched_vertices(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=9, walks=3)
    method.start(small_stream.graph)
    method.add_vertex(80, [4, 9])
    method.add_vertex(81, [])
    walks = method._generate_walks()
    assert walks.shape == (9, 10)
    assert sorted(walks[:, 0].tolist()) == [4, 4, 4, 9, 9, 9, 80, 80, 80]
    assert set(walks[walks[:, 0] == 80, 1].tolist()) <= {4, 9}
    graph = method._graph.to_csr()
    assert (graph[walks[:, :-1].ravel(), walks[:, 1:].ravel()] > 0).all()


def test_warm_node2vec_walks_follow_node2vec_bias(small_stream: Any) -> None:
    settings = SETTINGS | {"p": 0.25, "q": 4.0, "seed": 3}
    method = WarmNode2Vec(**settings)
    method.start(small_stream.graph)
    method._touched = set(range(80))
    walks, reference = method._generate_walks(), Node2Vec(**settings).generate_walks(small_stream.graph)
    returns, expected = [(rows[:, 2:] == rows[:, :-2]).mean() for rows in (walks, reference)]
    assert returns == pytest.approx(expected, abs=0.03)
    assert expected > 0.3


def test_warm_node2vec_learns_edges_between_known_vertices(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=1)
    method.start(small_stream.graph)
    before = method.vectors()[[0, 50]].copy()
    method.add_vertex(0, [50])
    assert (method.vectors()[[0, 50]] != before).any(axis=1).all()


def test_warm_node2vec_does_not_downsample_few_words(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=1)
    method.start(small_stream.graph)
    method.add_vertex(80, [0])
    kept = [method._model.wv.get_vecattr(word, "sample_int") for word in method._model.wv.index_to_key]
    assert min(kept) == 2**32 - 1
