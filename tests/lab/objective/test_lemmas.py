"""What Lemma 1 needs and what not: the other root, weighted means, and what breaks it.

That rule `paper` itself keeps FᵀF is checked in tests/rules, for one action and over whole streams.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.rules._paper_kernels import apply_local_action

SEEDS = st.integers(0, 2**32 - 1)
Matrix = NDArray[np.float64]


def any_vectors(seed: int, rows: int) -> Matrix:
    """Of any lengths and directions, with nothing in the last row: FᵀF is not I."""
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((rows + 1, 4)) * 10.0 ** draw.uniform(-2, 2, 4)
    vectors[-1] = 0
    return vectors


def given_up(vectors: Matrix, weights: Matrix, shares: Matrix) -> Matrix:
    """The newcomer gets x = Σ w f, and each of the others gives up its share of x."""
    mean = weights @ vectors[:-1]
    return np.vstack([vectors[:-1] - np.outer(shares, mean), mean])


def same(before: Matrix, after: Matrix) -> bool:
    """Whether FᵀF is what it was, relative to the lengths of the columns."""
    lengths = np.linalg.norm(before, axis=0)
    change = after.T @ after - before.T @ before
    return bool(np.abs(change / np.outer(lengths, lengths)).max() < 1e-10)


@given(seed=SEEDS, rows=st.integers(1, 12))
def test_the_other_root_keeps_the_inner_products_too_and_nothing_between_does(seed: int, rows: int) -> None:
    """|I| α² − 2|I| α + 1 = 0 has two roots; the paper takes the smaller."""
    before, equal = any_vectors(seed, rows), np.full(rows, 1 / rows)
    root = np.sqrt(1 - 1 / rows)
    assert all(same(before, given_up(before, equal, np.full(rows, alpha))) for alpha in (1 - root, 1 + root))
    if rows > 1:
        assert not same(before, given_up(before, equal, np.ones(rows)))


@given(seed=SEEDS, rows=st.integers(1, 12), spread=st.floats(0, 4), total=st.floats(0.1, 1))
def test_a_weighted_mean_keeps_them(seed: int, rows: int, spread: float, total: float) -> None:
    """Who counts more gives up more: β = c w with c = (1 − √(1 − q)) / q, q = Σ w². The weights need not sum to one."""
    before = any_vectors(seed, rows)
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal(rows))
    weights *= total / weights.sum()
    q = weights @ weights
    after = given_up(before, weights, (1 - np.sqrt(1 - q)) / q * weights)
    assert same(before, after)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_with_equal_weights_that_is_the_rule_of_the_paper(count: int) -> None:
    before = any_vectors(count, count)
    after = before.copy()
    apply_local_action(after, count, np.arange(count))
    q = 1 / count
    shares = np.full(count, (1 - np.sqrt(1 - q)) / q / count)
    np.testing.assert_allclose(given_up(before, np.full(count, q), shares), after, rtol=1e-12, atol=1e-12)


def test_nobody_may_give_up_more_or_less_than_by_weight() -> None:
    """The same α for all, beside a mean that is weighted, breaks it for every α: Σ β f must point along x."""
    before, weights = any_vectors(3, 3), np.array([0.6, 0.3, 0.1])
    assert not any(same(before, given_up(before, weights, np.full(3, alpha))) for alpha in np.linspace(0, 2, 201))
