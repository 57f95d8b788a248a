from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.deepwalk import DeepWalk
from ripplevec.lab.baselines.node2vec import Node2Vec
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=2, size=40, inside=8, elsewhere=1)
SMALL = Node2Vec(dim=16, length=20, p=0.5, q=2.0)
WEIGHTS = np.array([[0, 2, 1, 0, 0], [2, 0, 3, 1, 0], [1, 3, 0, 0, 1], [0, 1, 0, 0, 4], [0, 0, 1, 4, 0]], float)


def following(t: int, v: int, p: float, q: float) -> np.ndarray:
    """The probabilities of the next vertex, as the paper has them."""
    bias = np.where(WEIGHTS[t] > 0, 1.0, 1 / q)
    bias[t] = 1 / p
    return WEIGHTS[v] * bias / (WEIGHTS[v] * bias).sum()


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25), (1e6, 1e-3), (1e4, 1e4)])
def test_steps_have_the_exact_probabilities(p: float, q: float) -> None:
    walks = Node2Vec(walks=100, length=400, p=p, q=q).corpus(csr_array(WEIGHTS))
    counts = np.zeros((5, 5, 5))
    np.add.at(counts, (walks[:, :-2].ravel(), walks[:, 1:-1].ravel(), walks[:, 2:].ravel()), 1)
    for t, v in zip(*np.nonzero(counts.sum(axis=2) > 500), strict=True):
        exact, seen = following(t, v, p, q), counts[t, v].sum()
        spread = 5 * np.sqrt(exact * (1 - exact) / seen) + 1e-9
        assert (abs(counts[t, v] / seen - exact) < spread).all(), (t, v)


def test_without_bias_the_walks_are_those_of_deepwalk() -> None:
    plain = DeepWalk(dim=16, length=20)
    for graph in (GRAPH.adjacency(), csr_array(WEIGHTS)):
        np.testing.assert_array_equal(Node2Vec(dim=16, length=20).corpus(graph), plain.corpus(graph))


def test_p_decides_how_often_a_walk_returns_and_q_how_far_it_goes() -> None:
    graph = GRAPH.adjacency()
    returns = [
        (walks[:, 2:] == walks[:, :-2]).mean()
        for walks in (replace(SMALL, p=p, q=1.0).corpus(graph) for p in (0.1, 1.0, 10.0))
    ]
    assert returns[0] > 2 * returns[1] > 4 * returns[2]
    reached = [
        np.mean([len(set(row)) for row in replace(SMALL, p=1.0, q=q).corpus(graph).tolist()]) for q in (0.1, 10.0)
    ]
    assert reached[0] > reached[1] + 1


def test_walks_do_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.deepwalk.BLOCK", 16)
    graph = GRAPH.adjacency()
    np.testing.assert_array_equal(SMALL.corpus(graph), replace(SMALL, threads=3).corpus(graph))


def test_two_communities_separate_and_the_same_seed_gives_the_same_vectors() -> None:
    graph = GRAPH.adjacency()
    vectors = SMALL.embed(graph)
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:40], half[40:]).micro > 0.9
    np.testing.assert_array_equal(vectors, SMALL.embed(graph))


def test_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert SMALL.embed(graph).any(axis=1).tolist() == [True, True, False]


@pytest.mark.parametrize("settings", [{"p": 0}, {"q": -1.0}, {"length": 0}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"Node2Vec.{next(iter(settings))}: expected a"):
        Node2Vec(**settings)
