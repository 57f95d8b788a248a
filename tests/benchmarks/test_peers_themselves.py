"""What is ours in the peers: how graphs and walks are handed to them, without what they are made with."""

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
    """The module, with nothing behind the names that it imports from peers."""
    for name in ("pycleora", "gensim.models", "pecanpy", "pecanpy.pecanpy", "sknetwork", "sknetwork.embedding"):
        nothing = ModuleType(name)
        nothing.__getattr__ = lambda name: None  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, name, nothing)
    monkeypatch.delitem(sys.modules, "_peers", raising=False)
    yield benchmark("_peers")
    sys.modules.pop("_peers")


@pytest.fixture
def task(peers: Any) -> Any:
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [1, 4], [3, 4], [4, 5]])
    return peers.Task(edges, (3, 4, 7), columns=2, walks=3, length=6, window=2, seed=0)


def test_edges_come_with_their_later_end(task: Any) -> None:
    assert task.between(0, 3).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert task.between(3, 4).tolist() == [[2, 3]]
    assert task.between(4, 7).tolist() == [[1, 4], [3, 4], [4, 5]]


def test_a_newcomer_has_the_mean_of_its_neighbors_those_of_its_own_step_too(peers: Any, task: Any) -> None:
    peer = peers.NeighborMean(task)
    peer.rows[:3] = [[1, 0], [0, 1], [3, 3]]
    peer.update(3, 4)
    peer.update(4, 7)
    assert peer.vectors(7)[3:].tolist() == [[3, 3], [1.5, 2], [1.5, 2], [0, 0]]


def test_walks_follow_edges_from_newcomers_and_their_neighbors(
    peers: Any, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = []

    class Model:
        def build_vocab(self, corpus: Any, update: bool) -> None:
            corpora.append(corpus)

        def train(self, corpus: Any, total_examples: int, epochs: int) -> None:
            assert (corpus, total_examples) == (corpora[-1], len(corpora[-1]))

    monkeypatch.setattr(peers, "trained_start", lambda task: Model())
    peer = peers.WarmStart(task)
    peer.start()
    peer.update(3, 4)
    peer.update(4, 7)
    linked = {frozenset(edge) for edge in task.edges.tolist()}
    for corpus, touched in zip(corpora, ([2, 3], [1, 3, 4, 5]), strict=True):
        assert sorted(int(walk[0]) for walk in corpus) == sorted(touched * task.walks)
        for walk in corpus:
            places = [int(word) for word in walk]
            assert len(places) == task.length + 1
            assert all(frozenset(step) in linked for step in pairwise(places))


def test_matrix_lines_and_warm_up_are_the_graph(peers: Any, task: Any) -> None:
    dense = peers.matrix_of(task.edges, 7).toarray()
    expected = np.zeros((7, 7))
    expected[tuple(task.edges.T)] = expected[tuple(task.edges.T[::-1])] = 1
    assert np.array_equal(dense, expected)
    assert peers.lines_of(task.edges[:2]) == ["0 1", "0 2"]
    warm = peers.small(task)
    assert (warm.edges[:, 0] < warm.edges[:, 1]).all()
    assert (np.diff(warm.edges[:, 1]) >= 0).all()
    assert warm.edges.max() == warm.sizes[-1] - 1
    assert len(warm.sizes) == 3


def test_words_of_a_model_go_to_the_rows_of_their_vertices(peers: Any) -> None:
    class Vectors:
        index_to_key, vectors = ["2", "0"], np.array([[1, 2], [3, 4]])

    class Model:
        vector_size, wv = 2, Vectors

    assert peers.rows_of(Model, 4).tolist() == [[3, 4], [0, 0], [1, 2], [0, 0]]
