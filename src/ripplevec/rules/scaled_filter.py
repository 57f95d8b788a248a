"""The Chebyshev filter of a gradual correction, one step at a time, scaled so that columns neither grow nor vanish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.views.base import MIN_EIGENVALUE, View
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.spectral import MIN_CUTOFF

_ARRAYS = ("cutoff", "half", "middle", "first_sigma", "sigma", "factors")


def bound_spectrum(top: float, tau: float, strength: float, variance: float) -> float:
    """Return a lower bound of a view's spectrum; see "The lower bound of the spectrum" in docs/method.md.

    Parameters
    ----------
    top : float
        The largest eigenvalue, or zero if it is not known; then the bound is −1.
    tau : float
        The regularization τ of the view.
    strength, variance : float
        Mean and variance of the strengths of vertices with edges.
    """
    if top <= MIN_EIGENVALUE:
        return -1.0
    trivial, coupling = strength / (strength + tau), tau * variance / (strength + tau) ** 3
    radius = (trivial + top) / 2 + np.sqrt((trivial - top) ** 2 / 4 + coupling)
    return -float(min(radius, 1.0))


def even_degree(views: Sequence[View]) -> int:
    """Return the degree of a filter for these views: that of the largest one, rounded up to an even number."""
    degree = max(view.degree for view in views)
    return degree + degree % 2


class ScaledFilter:
    """The recurrence y ← f₀ · W x + f₁ · x + f₂ · y, with x and y exchanged after each step.

    It computes a polynomial of W that is small on [lowest, cutoff] and one at the largest eigenvalue, for each view.
    Its degree is even, so that the result is where x was: the largest degree of a view, or one more.
    """

    def __init__(self, coordinates: Coordinates) -> None:
        views, self._widths = len(coordinates.views), [part.stop - part.start for part in coordinates.parts]
        self._parts, self.degree = coordinates.parts, even_degree(coordinates.views)
        self.step = 0
        self.cutoff = self.half = self.middle = self.first_sigma = self.sigma = np.zeros(views)
        self.factors = np.zeros((views, 3))  # f₀, f₁, f₂ of the step in progress

    def begin(self, mu: NDArray[np.float64], lowest: NDArray[np.float64]) -> None:
        """Begin the first step; `mu` are the eigenvalues of the columns, zero where they are not known."""
        top = np.array([mu[part].max(initial=0.0) for part in self._parts])
        top[top <= MIN_EIGENVALUE] = 1.0
        smallest = np.array([mu[part].min(initial=1.0) for part in self._parts])
        self.cutoff = np.minimum(
            np.maximum(smallest, MIN_CUTOFF), 0.999 * top
        )  # the largest eigenvalue must not be damped
        self.half, self.middle = (self.cutoff - lowest) / 2, (self.cutoff + lowest) / 2
        self.first_sigma = self.half / (top - self.middle)
        self.begin_again()

    def begin_again(self) -> None:
        """Begin the first step once more, for other columns."""
        self.sigma, self.step = self.first_sigma, 0
        self._set_factors(self.sigma / self.half, np.zeros_like(self.sigma))

    def begin_next(self) -> None:
        """Begin the next step."""
        sigma = 1 / (2 / self.first_sigma - self.sigma)
        on_target, self.sigma = -self.sigma * sigma, sigma
        self.step += 1
        self._set_factors(2 * sigma / self.half, on_target)

    @property
    def in_last_step(self) -> bool:
        """Whether the step in progress is the last one."""
        return self.step == self.degree - 1

    def per_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Repeat the value of each view for its columns."""
        return np.repeat(values, self._widths)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the filter as arrays, for saving."""
        return {name: getattr(self, name).copy() for name in _ARRAYS} | {"step": np.array(self.step)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        for name in _ARRAYS:
            setattr(self, name, state[name])
        self.step = int(state["step"])

    def _set_factors(self, on_applied: NDArray[np.float64], on_target: NDArray[np.float64]) -> None:
        self.factors = np.stack([on_applied, -self.middle * on_applied, on_target], axis=1)
