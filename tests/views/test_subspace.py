from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev as polynomials

from ripplevec.views import subspace
from ripplevec.views.operators import Operator
from ripplevec.views.subspace import apply_chebyshev_filter, fix_signs, rayleigh_ritz

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(seed=SEEDS, degree=st.integers(1, 6), low=st.floats(-1, -0.2), high=st.floats(0.1, 0.6))
def test_apply_chebyshev_filter_agrees_with_the_polynomial(
    randomly: Any, seed: int, degree: int, low: float, high: float
) -> None:
    sample, draw = randomly(seed), np.random.default_rng(seed)
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = draw.standard_normal((sample.rows, 3)) * sample.active[:, None]
    mapped = (2 * sample.walk(0.5) - (high + low) * np.diag(sample.active.astype(float))) / (high - low)
    coefficients = polynomials.cheb2poly([0] * degree + [1])
    expected = sum(c * np.linalg.matrix_power(mapped, power) @ block for power, c in enumerate(coefficients))
    apply_chebyshev_filter(operator, block, low, high, degree)
    np.testing.assert_allclose(block, expected, rtol=1e-7, atol=1e-6)


def test_rayleigh_ritz_values_increase_toward_eigenvalues(planted: Any) -> None:
    sample = planted()
    operator, exact = Operator(sample.adjacency, sample.rows, 0.5), sample.spectrum(0.5)[:4]
    block = operator.make_noise(0, 4, np.float64)
    operator.deflate(block)
    values = rayleigh_ritz(operator, block)
    for _ in range(10):
        apply_chebyshev_filter(operator, block, -1.0, 0.6, 4)
        better = rayleigh_ritz(operator, block)
        assert (better >= values - 1e-9).all()
        assert (better <= exact + 1e-9).all()
        values = better
    np.testing.assert_allclose(values, exact, atol=1e-7)
    np.testing.assert_allclose(operator.gram(block, block), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(operator.apply(block), block * values, atol=1e-4)


def test_rayleigh_ritz_with_and_without_cholesky_agrees(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = planted()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = operator.make_noise(2, 4, np.float64) @ np.array(
        [[1e4, 1, 0, 2], [0, 3, 1, 1], [0, 0, 1e-2, 1], [0, 0, 0, 1]]
    )
    operator.deflate(block)
    vectors, same = block.copy(), block.copy()
    values = rayleigh_ritz(operator, vectors)
    monkeypatch.setattr(subspace, "CHOLESKY_TOLERANCE", 2.0)  # no block is accepted
    others = rayleigh_ritz(operator, same)
    np.testing.assert_allclose(values, others, atol=1e-9)
    np.testing.assert_allclose(np.abs(operator.gram(vectors, same)), np.eye(4), atol=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_rayleigh_ritz_of_a_rank_deficient_block_gives_zero_columns(planted: Any, rank: int) -> None:
    sample = planted()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = np.zeros((sample.rows, 5))
    if rank:
        basis = operator.make_noise(1, rank, np.float64)
        block = basis @ np.random.default_rng(0).standard_normal((rank, 5))
        operator.deflate(block)
    values = rayleigh_ritz(operator, block)
    assert values.shape == (5,)
    assert block[:, :rank].any(axis=0).all()
    assert not block[:, rank:].any()
    assert not values[rank:].any()
    np.testing.assert_allclose(operator.gram(block, block), np.diag(np.arange(5) < rank), atol=1e-6)


@given(seed=SEEDS, columns=st.integers(0, 4))
def test_fix_signs_makes_the_largest_entry_positive(seed: int, columns: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((6, columns))
    fixed = fix_signs(vectors)
    assert np.array_equal(np.abs(fixed), np.abs(vectors))
    assert np.array_equal(fixed, fix_signs(-vectors))
    assert (np.abs(fixed).max(axis=0, initial=0) == fixed.max(axis=0, initial=0)).all()
