"""The conditions of Lemma 1: the second root, weighted means, and counterexamples.

tests/rules checks that rule `paper` itself keeps FᵀF, for one action and over whole streams.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.rules.paper import apply_local_action

SEEDS = st.integers(0, 2**32 - 1)
Matrix = NDArray[np.float64]


def random_vectors(seed: int, rows: int) -> Matrix:
    """Return vectors of any length and direction with a zero last row; FᵀF is not I."""
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((rows + 1, 4)) * 10.0 ** draw.uniform(-2, 2, 4)
    vectors[-1] = 0
    return vectors


def redistribute(vectors: Matrix, weights: Matrix, shares: Matrix) -> Matrix:
    """Give the new vertex x = Σ w f, and subtract from each other vertex its share of x."""
    mean = weights @ vectors[:-1]
    return np.vstack([vectors[:-1] - np.outer(shares, mean), mean])


def keeps_inner_products(before: Matrix, after: Matrix) -> bool:
    """Tell whether FᵀF is unchanged, relative to the lengths of the columns."""
    lengths = np.linalg.norm(before, axis=0)
    change = after.T @ after - before.T @ before
    return bool(np.abs(change / np.outer(lengths, lengths)).max() < 1e-10)


@given(seed=SEEDS, rows=st.integers(1, 12))
def test_lemma_1_holds_for_both_roots_only(seed: int, rows: int) -> None:
    """|I| α² − 2|I| α + 1 = 0 has two roots; the paper takes the smaller."""
    before, equal = random_vectors(seed, rows), np.full(rows, 1 / rows)
    root = np.sqrt(1 - 1 / rows)
    assert all(
        keeps_inner_products(before, redistribute(before, equal, np.full(rows, alpha)))
        for alpha in (1 - root, 1 + root)
    )
    if rows > 1:
        assert not keeps_inner_products(before, redistribute(before, equal, np.ones(rows)))


@given(seed=SEEDS, rows=st.integers(1, 12), spread=st.floats(0, 4), total=st.floats(0.1, 1))
def test_lemma_1_holds_for_weighted_mean(seed: int, rows: int, spread: float, total: float) -> None:
    """Shares follow weights: β = c w with c = (1 − √(1 − q)) / q, q = Σ w². The weights need not sum to one."""
    before = random_vectors(seed, rows)
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal(rows))
    weights *= total / weights.sum()
    q = weights @ weights
    after = redistribute(before, weights, (1 - np.sqrt(1 - q)) / q * weights)
    assert keeps_inner_products(before, after)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_lemma_1_with_equal_weights_equals_rule_paper(count: int) -> None:
    before = random_vectors(count, count)
    after = before.copy()
    apply_local_action(after, count, np.arange(count))
    q = 1 / count
    shares = np.full(count, (1 - np.sqrt(1 - q)) / q / count)
    np.testing.assert_allclose(redistribute(before, np.full(count, q), shares), after, rtol=1e-12, atol=1e-12)


def test_lemma_1_fails_for_equal_shares_of_weighted_mean() -> None:
    """An equal α with a weighted mean violates the lemma for every α, because Σ β f must point along x."""
    before, weights = random_vectors(3, 3), np.array([0.6, 0.3, 0.1])
    assert not any(
        keeps_inner_products(before, redistribute(before, weights, np.full(3, alpha)))
        for alpha in np.linspace(0, 2, 201)
    )
