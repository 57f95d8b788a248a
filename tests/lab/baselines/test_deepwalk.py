from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.deepwalk import DeepWalk, Sentences
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=4, size=40, inside=8, elsewhere=1)
SMALL = DeepWalk(dim=16, length=20)


def test_walks_go_along_edges_and_begin_everywhere_equally_often() -> None:
    graph = GRAPH.adjacency()
    walks = SMALL.corpus(graph)
    assert walks.shape == (10 * GRAPH.vertices, 20)
    assert (graph[walks[:, :-1].ravel(), walks[:, 1:].ravel()] > 0).all()
    assert (np.bincount(walks[:, 0], minlength=GRAPH.vertices) == 10).all()


def test_walks_depend_on_the_seed_not_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.deepwalk.BLOCK", 32)
    graph = GRAPH.adjacency()
    walks = SMALL.corpus(graph)
    np.testing.assert_array_equal(walks, replace(SMALL, threads=3).corpus(graph))
    assert (walks != replace(SMALL, seed=1).corpus(graph)).any()


def test_two_walks_from_one_vertex_differ() -> None:
    walks = SMALL.corpus(GRAPH.adjacency())
    own = walks[walks[:, 0] == 7]
    assert len(np.unique(own, axis=0)) == 10


def test_communities_can_be_told_from_the_vectors() -> None:
    vectors = replace(SMALL, walks=20).embed(GRAPH.adjacency())
    assert vectors.dtype == np.float32
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:80], half[80:]).micro > 0.85


def test_the_same_seed_gives_the_same_vectors() -> None:
    graph = GRAPH.adjacency()
    np.testing.assert_array_equal(SMALL.embed(graph), SMALL.embed(graph))


def test_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert SMALL.embed(graph).any(axis=1).tolist() == [True, True, False]
    assert not SMALL.embed(csr_array((3, 3))).any()


def test_sentences_end_where_the_walk_does_and_can_be_read_twice() -> None:
    sentences = Sentences(np.array([[0, 12, -1], [3, 0, 3]]))
    assert list(sentences) == list(sentences) == [["0", "12"], ["3", "0", "3"]]


@pytest.mark.parametrize("settings", [{"dim": 0}, {"window": 1.5}, {"seed": -1}, {"walks": True}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"DeepWalk.{next(iter(settings))}: expected a whole number"):
        DeepWalk(**settings)
