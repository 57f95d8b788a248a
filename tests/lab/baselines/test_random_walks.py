from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.random_walks import DeepWalk, Node2Vec
from ripplevec.lab.baselines.skip_gram import WalkSentences
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=4, size=40, inside=8, elsewhere=1)
DEEPWALK = DeepWalk(dim=16, length=20)


def test_deepwalk_walks_follow_edges_and_start_everywhere_equally_often() -> None:
    graph = GRAPH.adjacency()
    walks = DEEPWALK.generate_walks(graph)
    assert walks.shape == (10 * GRAPH.vertices, 20)
    assert (graph[walks[:, :-1].ravel(), walks[:, 1:].ravel()] > 0).all()
    assert (np.bincount(walks[:, 0], minlength=GRAPH.vertices) == 10).all()


def test_deepwalk_walks_depend_on_seed_not_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.random_walks.WALKS_PER_BLOCK", 32)
    graph = GRAPH.adjacency()
    walks = DEEPWALK.generate_walks(graph)
    np.testing.assert_array_equal(walks, replace(DEEPWALK, threads=3).generate_walks(graph))
    assert (walks != replace(DEEPWALK, seed=1).generate_walks(graph)).any()


def test_deepwalk_walks_from_one_vertex_differ() -> None:
    walks = DEEPWALK.generate_walks(GRAPH.adjacency())
    walks_from_7 = walks[walks[:, 0] == 7]
    assert len(np.unique(walks_from_7, axis=0)) == 10


def test_deepwalk_vectors_predict_communities() -> None:
    vectors = replace(DEEPWALK, walks=20).embed(GRAPH.adjacency())
    assert vectors.dtype == np.float32
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:80], half[80:]).micro > 0.85


def test_deepwalk_with_same_seed_gives_same_vectors() -> None:
    graph = GRAPH.adjacency()
    np.testing.assert_array_equal(DEEPWALK.embed(graph), DEEPWALK.embed(graph))


def test_deepwalk_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert DEEPWALK.embed(graph).any(axis=1).tolist() == [True, True, False]
    assert not DEEPWALK.embed(csr_array((3, 3))).any()


def test_walk_sentences_end_with_walk_and_can_be_read_twice() -> None:
    sentences = WalkSentences(np.array([[0, 12, -1], [3, 0, 3]]))
    assert list(sentences) == list(sentences) == [["0", "12"], ["3", "0", "3"]]


@pytest.mark.parametrize("settings", [{"dim": 0}, {"window": 1.5}, {"seed": -1}, {"walks": True}])
def test_deepwalk_with_invalid_settings_raises(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"DeepWalk.{next(iter(settings))}: expected an integer"):
        DeepWalk(**settings)


TWO_COMMUNITIES = planted_partition(communities=2, size=40, inside=8, elsewhere=1)
NODE2VEC = Node2Vec(dim=16, length=20, p=0.5, q=2.0)
WEIGHTS = np.array([[0, 2, 1, 0, 0], [2, 0, 3, 1, 0], [1, 3, 0, 0, 1], [0, 1, 0, 0, 4], [0, 0, 1, 4, 0]], float)


def next_vertex_probabilities(t: int, v: int, p: float, q: float) -> np.ndarray:
    """Return the probabilities of the next vertex by the formula of the paper."""
    bias = np.where(WEIGHTS[t] > 0, 1.0, 1 / q)
    bias[t] = 1 / p
    return WEIGHTS[v] * bias / (WEIGHTS[v] * bias).sum()


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25), (1e6, 1e-3), (1e4, 1e4)])
def test_node2vec_steps_have_exact_probabilities(p: float, q: float) -> None:
    walks = Node2Vec(walks=100, length=400, p=p, q=q).generate_walks(csr_array(WEIGHTS))
    counts = np.zeros((5, 5, 5))
    np.add.at(counts, (walks[:, :-2].ravel(), walks[:, 1:-1].ravel(), walks[:, 2:].ravel()), 1)
    for t, v in zip(*np.nonzero(counts.sum(axis=2) > 500), strict=True):
        exact, seen = next_vertex_probabilities(t, v, p, q), counts[t, v].sum()
        spread = 5 * np.sqrt(exact * (1 - exact) / seen) + 1e-9
        assert (abs(counts[t, v] / seen - exact) < spread).all(), (t, v)


def test_node2vec_without_bias_walks_like_deepwalk() -> None:
    plain = DeepWalk(dim=16, length=20)
    for graph in (TWO_COMMUNITIES.adjacency(), csr_array(WEIGHTS)):
        np.testing.assert_array_equal(Node2Vec(dim=16, length=20).generate_walks(graph), plain.generate_walks(graph))


def test_node2vec_p_controls_returns_and_q_exploration() -> None:
    graph = TWO_COMMUNITIES.adjacency()
    returns = [
        (walks[:, 2:] == walks[:, :-2]).mean()
        for walks in (replace(NODE2VEC, p=p, q=1.0).generate_walks(graph) for p in (0.1, 1.0, 10.0))
    ]
    assert returns[0] > 2 * returns[1] > 4 * returns[2]
    reached = [
        np.mean([len(set(row)) for row in replace(NODE2VEC, p=1.0, q=q).generate_walks(graph).tolist()])
        for q in (0.1, 10.0)
    ]
    assert reached[0] > reached[1] + 1


def test_node2vec_walks_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.random_walks.WALKS_PER_BLOCK", 16)
    graph = TWO_COMMUNITIES.adjacency()
    np.testing.assert_array_equal(NODE2VEC.generate_walks(graph), replace(NODE2VEC, threads=3).generate_walks(graph))


def test_node2vec_separates_communities_deterministically() -> None:
    graph = TWO_COMMUNITIES.adjacency()
    vectors = NODE2VEC.embed(graph)
    half = np.random.default_rng(0).permutation(TWO_COMMUNITIES.vertices)
    assert classify(vectors, TWO_COMMUNITIES.labels, half[:40], half[40:]).micro > 0.9
    np.testing.assert_array_equal(vectors, NODE2VEC.embed(graph))


def test_node2vec_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert NODE2VEC.embed(graph).any(axis=1).tolist() == [True, True, False]


@pytest.mark.parametrize("settings", [{"p": 0}, {"q": -1.0}, {"length": 0}])
def test_node2vec_with_invalid_settings_raises(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"Node2Vec.{next(iter(settings))}: expected an?"):
        Node2Vec(**settings)
