from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.base import SourceFile

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)


@given(PAIRS)
def test_every_edge_stands_once_without_self_loops_in_order_of_the_larger(pairs: list[tuple[int, int]]) -> None:
    dataset = Dataset.of("any", pairs, np.zeros(8))
    expected = {(min(u, v), max(u, v)) for u, v in pairs if u != v}
    assert [tuple(edge) for edge in dataset.edges.tolist()] == sorted(expected, key=lambda edge: edge[::-1])
    assert dataset.edges.dtype == np.int64


@given(PAIRS)
def test_adjacency_is_symmetric_and_binary(pairs: list[tuple[int, int]]) -> None:
    dataset = Dataset.of("any", pairs, np.zeros(8))
    dense = np.zeros((8, 8))
    for u, v in pairs:
        if u != v:
            dense[u, v] = dense[v, u] = 1
    np.testing.assert_array_equal(dataset.adjacency().toarray(), dense)


def test_counts() -> None:
    dataset = Dataset.of("path", [[0, 1], [1, 2], [2, 1]], [5, 5, 9, 9])
    assert (dataset.vertices, dataset.classes, dataset.mean_degree) == (4, 2, 1.0)


def test_an_empty_graph_is_a_graph() -> None:
    dataset = Dataset.of("nothing", [], [])
    assert dataset.edges.shape == (0, 2)
    assert dataset.adjacency().shape == (0, 0)
    assert dataset.mean_degree == 0


def test_the_labels_are_not_those_of_the_caller() -> None:
    labels = np.zeros(2, np.int64)
    dataset = Dataset.of("pair", [[0, 1]], labels)
    labels[0] = 7
    assert dataset.labels.tolist() == [0, 0]


@pytest.mark.parametrize("pair", [[0, 3], [-1, 0]])
def test_a_pair_outside_the_vertices_is_refused(pair: list[int]) -> None:
    with pytest.raises(InvalidValueError, match="vertices 0 to 2"):
        Dataset.of("bad", [pair], np.zeros(3))


def test_vertices_are_called_by_their_index_unless_they_have_names() -> None:
    assert list(Dataset.of("pair", [[0, 1]], [0, 0]).names) == [0, 1]
    assert Dataset.of("pair", [[0, 1]], [0, 0], names=["a", "b"]).names == ["a", "b"]
    with pytest.raises(InvalidValueError, match="names: expected 2 names"):
        Dataset.of("pair", [[0, 1]], [0, 0], names=["a"])


def test_the_address_of_a_file() -> None:
    assert SourceFile("edges.txt", "", "https://example.org/graphs").address == "https://example.org/graphs/edges.txt"
