from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import growing
from ripplevec.lab.baselines.streaming.base import Rows, link


@given(st.integers(0, 5), st.lists(st.integers(0, 1000), max_size=60))
def test_rows_grow_one_by_one(before: int, values: list[int]) -> None:
    rows = Rows(np.arange(2 * before).reshape(before, 2))
    for value in values:
        rows.put(len(rows), np.full(2, value))
    expected = [[2 * row, 2 * row + 1] for row in range(before)] + [[value, value] for value in values]
    assert rows.reading().tolist() == expected


def test_the_mean_is_over_those_that_have_a_row() -> None:
    rows = Rows(np.array([[1.0, 3.0], [0.0, 0.0], [3.0, 5.0]]))
    assert rows.mean([0, 1, 2]).tolist() == [2.0, 4.0]
    assert rows.mean([1]).tolist() == rows.mean([]).tolist() == [0.0, 0.0]


def test_looking_on_does_not_lock_the_rows() -> None:
    rows = Rows(np.ones((1, 2)))
    rows.reading()
    rows.put(0, np.zeros(2))
    rows.view[0] = 5
    assert rows.reading().tolist() == [[5, 5]]


def test_a_matrix_grows_as_a_graph() -> None:
    matrix = np.array([[0, 2.0, 0], [2.0, 0, 1], [0, 1, 0]])
    graph = growing(csr_array(matrix))
    link(graph, 3, [0, 2])
    link(graph, 0, [2])
    grown = np.zeros((4, 4))
    grown[:3, :3] = matrix
    for u, v in ((3, 0), (3, 2), (0, 2)):
        grown[u, v] = grown[v, u] = 1
    np.testing.assert_array_equal(graph.to_csr().toarray()[:4, :4], grown)
