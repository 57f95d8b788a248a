from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import build_adjacency
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_arrival_edges


@given(st.integers(0, 5), st.lists(st.integers(0, 1000), max_size=60))
def test_growing_vectors_append_rows(before: int, values: list[int]) -> None:
    vectors = GrowingVectors(np.arange(2 * before).reshape(before, 2))
    for value in values:
        vectors.set_row(len(vectors), np.full(2, value))
    expected = [[2 * row, 2 * row + 1] for row in range(before)] + [[value, value] for value in values]
    assert vectors.read_only().tolist() == expected


def test_growing_vectors_mean_row_skips_unplaced_vertices() -> None:
    vectors = GrowingVectors(np.array([[1.0, 3.0], [0.0, 0.0], [3.0, 5.0]]))
    assert vectors.mean_row([0, 1, 2]).tolist() == [2.0, 4.0]
    assert vectors.mean_row([1]).tolist() == vectors.mean_row([]).tolist() == [0.0, 0.0]


def test_growing_vectors_read_only_view_does_not_lock_rows() -> None:
    vectors = GrowingVectors(np.ones((1, 2)))
    vectors.read_only()
    vectors.set_row(0, np.zeros(2))
    vectors.rows[0] = 5
    assert vectors.read_only().tolist() == [[5, 5]]


def test_add_arrival_edges_extends_adjacency() -> None:
    matrix = np.array([[0, 2.0, 0], [2.0, 0, 1], [0, 1, 0]])
    graph = build_adjacency(csr_array(matrix))
    add_arrival_edges(graph, 3, [0, 2])
    add_arrival_edges(graph, 0, [2])
    expected = np.zeros((4, 4))
    expected[:3, :3] = matrix
    for u, v in ((3, 0), (3, 2), (0, 2)):
        expected[u, v] = expected[v, u] = 1
    np.testing.assert_array_equal(graph.to_csr().toarray()[:4, :4], expected)
