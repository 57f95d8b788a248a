"""Tests of our code around the alternative systems: graphs and walks passed to them, without the systems."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def peers(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the module with stubs in place of the packages of the systems."""
    for name in ("pycleora", "gensim.models", "pecanpy", "pecanpy.pecanpy", "sknetwork", "sknetwork.embedding"):
        stub = ModuleType(name)
        stub.__getattr__ = lambda name: None  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, name, stub)
    monkeypatch.delitem(sys.modules, "_peer_process", raising=False)
    yield benchmark("_peer_process")
    sys.modules.pop("_peer_process")


@pytest.fixture
def task(peers: Any) -> Any:
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [1, 4], [3, 4], [4, 5]])
    return peers.Task(edges, (3, 4, 7), columns=2, walks=3, length=6, window=2, seed=0)


def test_edges_between_selects_edges_by_later_endpoint(task: Any) -> None:
    assert task.edges_between(0, 3).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert task.edges_between(3, 4).tolist() == [[2, 3]]
    assert task.edges_between(4, 7).tolist() == [[1, 4], [3, 4], [4, 5]]


def test_neighbor_mean_includes_neighbors_of_the_same_step(peers: Any, task: Any) -> None:
    peer = peers.NeighborMean(task)
    peer.rows[:3] = [[1, 0], [0, 1], [3, 3]]
    peer.update(3, 4)
    peer.update(4, 7)
    assert peer.vectors(7)[3:].tolist() == [[3, 3], [1.5, 2], [1.5, 2], [0, 0]]


def test_warm_start_walks_begin_at_new_vertices_and_their_neighbors(
    peers: Any, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = []

    class Model:
        def build_vocab(self, corpus: Any, update: bool) -> None:
            corpora.append(corpus)

        def train(self, corpus: Any, total_examples: int, epochs: int) -> None:
            assert (corpus, total_examples) == (corpora[-1], len(corpora[-1]))

    monkeypatch.setattr(peers, "train_start", lambda task: Model())
    peer = peers.WarmStart(task)
    peer.start()
    peer.update(3, 4)
    peer.update(4, 7)
    linked = {frozenset(edge) for edge in task.edges.tolist()}
    for corpus, touched in zip(corpora, ([2, 3], [1, 3, 4, 5]), strict=True):
        assert sorted(int(walk[0]) for walk in corpus) == sorted(touched * task.walks)
        for walk in corpus:
            vertices = [int(word) for word in walk]
            assert len(vertices) == task.length + 1
            assert all(frozenset(step) in linked for step in pairwise(vertices))


def test_graph_conversions_keep_all_edges(peers: Any, task: Any) -> None:
    dense = peers.adjacency_matrix(task.edges, 7).toarray()
    expected = np.zeros((7, 7))
    expected[tuple(task.edges.T)] = expected[tuple(task.edges.T[::-1])] = 1
    assert np.array_equal(dense, expected)
    assert peers.format_edges(task.edges[:2]) == ["0 1", "0 2"]
    warm = peers.small_task(task)
    assert (warm.edges[:, 0] < warm.edges[:, 1]).all()
    assert (np.diff(warm.edges[:, 1]) >= 0).all()
    assert warm.edges.max() == warm.sizes[-1] - 1
    assert len(warm.sizes) == 3


def test_vectors_by_vertex_orders_words_of_the_model(peers: Any) -> None:
    class Vectors:
        index_to_key, vectors = ["2", "0"], np.array([[1, 2], [3, 4]])

    class Model:
        vector_size, wv = 2, Vectors

    assert peers.vectors_by_vertex(Model, 4).tolist() == [[3, 4], [0, 0], [1, 2], [0, 0]]
