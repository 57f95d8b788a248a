from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings


def test_as_weight_matrix_sums_duplicates_and_drops_zeros() -> None:
    rows, columns = [0, 0, 1, 1, 0], [1, 1, 0, 0, 0]
    graph = coo_array((np.array([1, 2, 1, 2, 0]), (rows, columns)), shape=(2, 2))
    assert as_weight_matrix(graph).toarray().tolist() == [[0, 3], [3, 0]]
    assert as_weight_matrix(graph).nnz == 2


def test_as_weight_matrix_leaves_matrix_of_caller_unchanged() -> None:
    graph = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    graph.data[0] = 0
    as_weight_matrix(graph)
    assert graph.nnz == 2


@pytest.mark.parametrize(
    ("graph", "expected"),
    [(np.ones((2, 3)), "square"), (np.array([[0, -1.0], [-1.0, 0]]), "weights"), (np.array([[np.nan]]), "weights")],
)
def test_as_weight_matrix_with_invalid_matrix_raises(graph: np.ndarray, expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        as_weight_matrix(graph)


@dataclass
class Method:
    dim: int = 1
    rate: float = 0.5
    order: str = "any"
    seed: int = 0


def test_check_settings_with_valid_settings_passes() -> None:
    check_settings(Method())
    check_settings(Method(rate=2, order=""))


@pytest.mark.parametrize("settings", [{"dim": 0}, {"dim": True}, {"seed": -1}, {"dim": 1.0}])
def test_check_settings_with_invalid_integer_raises(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"Method.{next(iter(settings))}: expected an integer ≥"):
        check_settings(Method(**settings))


@pytest.mark.parametrize("rate", [0, -1.0, np.inf, np.nan, "1"])
def test_check_settings_with_invalid_number_raises(rate: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"Method\.rate: expected a number > 0"):
        check_settings(Method(rate=rate))
