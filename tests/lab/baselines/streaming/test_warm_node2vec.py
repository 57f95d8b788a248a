from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.lab.baselines import Node2Vec
from ripplevec.lab.baselines.streaming import WarmNode2Vec

SETTINGS = {"dim": 8, "length": 10}


def test_nothing_moves_until_a_chunk_is_complete(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=5)
    method.start(small_stream.graph)
    start = method.vectors().copy()
    for v, neighbors in small_stream.arrivals[:4]:
        method.arrive(v, neighbors)
    np.testing.assert_array_equal(method.vectors()[:80], start)
    v, neighbors = small_stream.arrivals[4]
    foretold = method.place(neighbors)
    assert (method.arrive(v, neighbors) != foretold).any()
    assert (method.vectors()[:80] != start).any()


def test_training_goes_on_from_the_vectors_as_they_are(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, walks=2, chunk=1)
    method.start(small_stream.graph)
    start = method.vectors().copy()
    foretold = method.place([0, 1])
    given = method.arrive(80, [0, 1])
    moved = np.linalg.norm(method.vectors()[:80] - start, axis=1)
    assert np.linalg.norm(given - foretold) < 0.25 * np.linalg.norm(foretold)
    assert np.median(moved) < 0.2 * np.median(np.linalg.norm(start, axis=1))


def test_walks_begin_at_what_an_arrival_touches_and_go_along_edges(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=9, walks=3)
    method.start(small_stream.graph)
    method.arrive(80, [4, 9])
    method.arrive(81, [])
    walks = method._corpus()
    assert walks.shape == (9, 10)
    assert sorted(walks[:, 0].tolist()) == [4, 4, 4, 9, 9, 9, 80, 80, 80]
    assert set(walks[walks[:, 0] == 80, 1].tolist()) <= {4, 9}
    graph = method._graph.to_csr()
    assert (graph[walks[:, :-1].ravel(), walks[:, 1:].ravel()] > 0).all()


def test_walks_are_those_of_node2vec(small_stream: Any) -> None:
    settings = SETTINGS | {"p": 0.25, "q": 4.0, "seed": 3}
    method = WarmNode2Vec(**settings)
    method.start(small_stream.graph)
    method._touched = set(range(80))
    walks, own = method._corpus(), Node2Vec(**settings).corpus(small_stream.graph)
    returns, expected = [(rows[:, 2:] == rows[:, :-2]).mean() for rows in (walks, own)]
    assert returns == pytest.approx(expected, abs=0.03)
    assert expected > 0.3


def test_edges_between_known_vertices_are_learned(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=1)
    method.start(small_stream.graph)
    before = method.vectors()[[0, 50]].copy()
    method.arrive(0, [50])
    assert (method.vectors()[[0, 50]] != before).any(axis=1).all()


def test_few_words_are_not_taken_for_frequent_ones(small_stream: Any) -> None:
    method = WarmNode2Vec(**SETTINGS, chunk=1)
    method.start(small_stream.graph)
    method.arrive(80, [0])
    kept = [method._model.wv.get_vecattr(word, "sample_int") for word in method._model.wv.index_to_key]
    assert min(kept) == 2**32 - 1
