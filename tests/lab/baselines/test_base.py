from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import check_settings, checked


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


@dataclass
class Method:
    dim: int = 1
    rate: float = 0.5
    order: str = "any"
    seed: int = 0


def test_settings_that_can_be_used_are_let_pass() -> None:
    check_settings(Method())
    check_settings(Method(rate=2, order=""))


@pytest.mark.parametrize("settings", [{"dim": 0}, {"dim": True}, {"seed": -1}, {"dim": 1.0}])
def test_whole_numbers_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"Method.{next(iter(settings))}: expected a whole number ≥"):
        check_settings(Method(**settings))


@pytest.mark.parametrize("rate", [0, -1.0, np.inf, np.nan, "1"])
def test_other_numbers_are_checked(rate: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"Method\.rate: expected a number > 0"):
        check_settings(Method(rate=rate))
