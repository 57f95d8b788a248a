from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval
from numpy.typing import NDArray

from ripplevec.rules.scaled_filter import ScaledFilter
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.spectral import MIN_CUTOFF, SpectralView

ONE = [SpectralView(tau=1.0)]
TWO = [SpectralView(tau=0.5, share=2), SpectralView(tau_per_degree=4.0)]


def run(
    views: list[Any],
    mu: NDArray[np.float64],
    lowest: NDArray[np.float64],
    x: NDArray[np.float64],
) -> tuple[ScaledFilter, NDArray[np.float64]]:
    """Apply all steps to diagonal matrices: return the values of the polynomials, a row per x, a column per view."""
    scaled = ScaledFilter(Coordinates(views, mu.size, True))
    scaled.begin(mu, lowest)
    previous, current = np.full((x.size, len(views)), np.nan), np.ones((x.size, len(views)))
    while True:
        f0, f1, f2 = scaled.factors.T
        rest = 0.0 if scaled.step == 0 else f2 * previous
        previous, current = current, f0 * x[:, None] * current + f1 * current + rest
        if scaled.in_last_step:
            return scaled, current
        scaled.begin_next()


def chebyshev(degree: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(chebval(x, [0] * degree + [1]))


@pytest.mark.parametrize("views", [ONE, TWO], ids=len)
def test_scaled_filter_equals_the_chebyshev_polynomial(views: list[Any]) -> None:
    mu = np.linspace(0.9, 0.4, 9)
    lowest, x = np.linspace(-0.8, -1.0, len(views)), np.linspace(-1, 1, 101)
    scaled, values = run(views, mu, lowest, x)
    assert scaled.degree == max(view.degree for view in views)
    for view, part in enumerate(Coordinates(views, 9, True).parts):
        cutoff, top = mu[part].min(), mu[part].max()
        half, middle = (cutoff - lowest[view]) / 2, (cutoff + lowest[view]) / 2
        expected = chebyshev(scaled.degree, (x - middle) / half) / chebyshev(scaled.degree, (top - middle) / half)
        np.testing.assert_allclose(values[:, view], expected, rtol=1e-9, atol=1e-12)
        damped = (x >= lowest[view]) & (x <= cutoff)
        bound = 1 / chebyshev(scaled.degree, np.array((top - middle) / half))
        assert np.abs(values[damped, view]).max() <= bound * (1 + 1e-9) < 0.1


def test_scaled_filter_is_one_at_the_largest_eigenvalue() -> None:
    mu = np.array([0.8, 0.6, 0.5])
    assert run(ONE, mu, np.array([-1.0]), mu[:1])[1] == pytest.approx(1.0)


def test_scaled_filter_without_known_eigenvalues_damps_negative_ones() -> None:
    scaled, values = run(ONE, np.zeros(4), np.array([-1.0]), np.linspace(-1, 1, 201))
    assert scaled.cutoff == pytest.approx(MIN_CUTOFF)
    assert values[-1, 0] == pytest.approx(1.0)
    assert np.abs(values[:100, 0]).max() < 0.2


@pytest.mark.parametrize("mu", [[0.5, 0.5, 0.5], [0.5, 0.0, 0.0], [1e-9, 0.0, -1e-9], [0.9, -0.3, -0.8]])
def test_scaled_filter_of_degenerate_eigenvalues_is_finite(mu: list[float]) -> None:
    scaled, values = run(ONE, np.array(mu), np.array([-1.0]), np.linspace(-1, 1, 201))
    assert np.isfinite(values).all()
    assert (scaled.cutoff > 0).all()


def test_scaled_filter_continues_from_its_saved_state() -> None:
    mu, lowest = np.array([0.9, 0.7, 0.6, 0.5]), np.array([-1.0])
    scaled = ScaledFilter(Coordinates(ONE, 4, True))
    scaled.begin(mu, lowest)
    scaled.begin_next()
    other = ScaledFilter(Coordinates(ONE, 4, True))
    other.restore(scaled.state())
    for each in (scaled, other):
        while not each.in_last_step:
            each.begin_next()
    for name, array in scaled.state().items():
        np.testing.assert_array_equal(array, other.state()[name])
