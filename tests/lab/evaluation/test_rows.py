from __future__ import annotations

import numpy as np

from ripplevec.lab.evaluation.rows import unit_rows


def test_rows_get_length_one_and_zero_rows_stay_zero() -> None:
    vectors = np.array([[3, 4], [0, 0], [0, -1e-30]], np.float32)
    np.testing.assert_allclose(unit_rows(vectors), [[0.6, 0.8], [0, 0], [0, -1]])
    assert vectors[0, 0] == 3


def test_no_rows_are_no_problem() -> None:
    assert unit_rows(np.empty((0, 5))).shape == (0, 5)
