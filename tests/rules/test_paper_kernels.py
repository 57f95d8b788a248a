from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.rules._paper_kernels import apply_local_action


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 8))
def test_apply_local_action_follows_algorithm_2_and_keeps_the_gram_matrix(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((10, 3))
    vectors[9] = 5 if count == 0 else 0
    before, influenced = vectors.copy(), rng.permutation(9)[:count]
    apply_local_action(vectors, 9, influenced)
    expected = before.copy()
    expected[9] = before[influenced].mean(axis=0) if count else 0
    if count:
        expected[influenced] -= (1 - math.sqrt(1 - 1 / count)) * expected[9]
        np.testing.assert_allclose(vectors.T @ vectors, before.T @ before, atol=1e-12)
    np.testing.assert_allclose(vectors, expected, atol=1e-12)


def test_apply_local_action_on_one_vertex_makes_it_zero() -> None:
    vectors = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
    apply_local_action(vectors, 2, np.array([0]))
    assert vectors.tolist() == [[0, 0], [3, 4], [1, 2]]
