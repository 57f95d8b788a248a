from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from ripplet.baselines.base import checked
from ripplet.errors import InvalidValueError


def test_repeated_entries_add_up_and_zeros_go() -> None:
    rows, columns = [0, 0, 1, 1, 0], [1, 1, 0, 0, 0]
    graph = coo_array((np.array([1, 2, 1, 2, 0]), (rows, columns)), shape=(2, 2))
    assert checked(graph).toarray().tolist() == [[0, 3], [3, 0]]
    assert checked(graph).nnz == 2


def test_the_callers_matrix_is_left_alone() -> None:
    graph = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    graph.data[0] = 0
    checked(graph)
    assert graph.nnz == 2


@pytest.mark.parametrize(
    ("graph", "expected"),
    [(np.ones((2, 3)), "square"), (np.array([[0, -1.0], [-1.0, 0]]), "weights"), (np.array([[np.nan]]), "weights")],
)
def test_what_is_no_graph_is_refused(graph: np.ndarray, expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        checked(graph)
