from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.graphsage import GraphSAGE
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

pytest.importorskip("torch")

GRAPH = planted_partition(communities=2, size=40, inside=10, elsewhere=1)
HALVES = np.arange(0, 80, 2), np.arange(1, 80, 2)
SMALL = GraphSAGE(dim=8, steps=120)


def test_graphsage_vectors_separate_communities() -> None:
    assert classify(SMALL.embed(GRAPH.adjacency()), GRAPH.labels, *HALVES).micro > 0.9


def test_graphsage_vectors_have_length_one_and_isolated_vertices_are_zero() -> None:
    vectors = GraphSAGE(dim=4, steps=2).embed(csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 0], rtol=1e-5)
    assert not GraphSAGE(dim=4).embed(csr_array((3, 3))).any()


def test_graphsage_with_attributes_uses_them() -> None:
    """Two classes that the graph does not show: only attributes can tell them apart."""
    random_graph = planted_partition(communities=1, size=80, inside=6, elsewhere=0).adjacency()
    labels = np.arange(80) % 2
    attributes = csr_array(np.eye(2)[labels])
    train, test = np.arange(40), np.arange(40, 80)
    assert classify(SMALL.embed(random_graph, attributes), labels, train, test).micro > 0.9
    assert classify(SMALL.embed(random_graph), labels, train, test).micro < 0.8


def test_graphsage_with_attributes_of_other_size_raises() -> None:
    with pytest.raises(InvalidValueError, match="expected 80 rows"):
        SMALL.embed(GRAPH.adjacency(), csr_array((3, 2)))


def test_graphsage_same_seed_gives_same_vectors() -> None:
    graph = GRAPH.adjacency()
    np.testing.assert_array_equal(SMALL.embed(graph), SMALL.embed(graph))
