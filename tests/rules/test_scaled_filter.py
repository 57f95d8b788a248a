from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.chebyshev import chebval
from numpy.typing import NDArray

from ripplevec.rules.scaled_filter import ScaledFilter, bound_spectrum
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


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(5, 40), st.floats(0.05, 100.0), st.sampled_from(["random", "star", "path"]))
def test_bound_spectrum_is_below_all_eigenvalues(seed: int, size: int, tau_per_degree: float, kind: str) -> None:
    """Weighted random graphs, stars and paths, whose spectrum is symmetric without τ."""
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0, 1, (size, size)) * (rng.random((size, size)) < 0.2)
    first = np.arange(1, size)
    if kind == "star":
        weights[:] = 0
        weights[0, first] = rng.lognormal(0, 2, size - 1)
    weights[first, first - 1] += kind == "path" or 0.01
    adjacency = np.tril(weights, -1) + np.tril(weights, -1).T
    strength = adjacency.sum(axis=1)
    active = strength > 0
    adjacency, strength = adjacency[np.ix_(active, active)], strength[active]
    tau = tau_per_degree * strength.mean()
    root = np.sqrt(strength + tau)
    operator = (adjacency + tau / strength.size) / np.outer(root, root)
    trivial = root / np.linalg.norm(root)
    eigenvalues = np.linalg.eigvalsh(operator - np.outer(trivial, trivial))
    bound = bound_spectrum(float(eigenvalues[-1]), tau, strength.mean(), strength.var())
    assert -1 <= bound <= eigenvalues[0] + 1e-12


def test_bound_spectrum_of_an_unknown_eigenvalue_is_minus_one() -> None:
    assert bound_spectrum(0.0, 100.0, 4.0, 2.0) == -1


def test_bound_spectrum_is_close_for_a_large_tau() -> None:
    """A filter on [−1, cutoff] would hardly tell eigenvalues of a hundredth from each other."""
    rng = np.random.default_rng(0)
    adjacency = np.triu(rng.random((300, 300)) < 0.05, 1).astype(float)
    adjacency += adjacency.T
    strength = adjacency.sum(axis=1)
    tau = 64 * strength.mean()
    root = np.sqrt(strength + tau)
    operator = (adjacency + tau / 300) / np.outer(root, root)
    trivial = root / np.linalg.norm(root)
    eigenvalues = np.linalg.eigvalsh(operator - np.outer(trivial, trivial))
    bound = bound_spectrum(float(eigenvalues[-1]), tau, strength.mean(), strength.var())
    assert 3 * eigenvalues[0] < bound < eigenvalues[0]
