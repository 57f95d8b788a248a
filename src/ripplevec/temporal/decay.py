"""Exponential decay of weights with a half-life, without visiting the edges that decay (forward decay).

Instead of making old weights lighter, new weights are made heavier: an edge that arrives at time t is stored as
w · 2^(t/h), where h is the half-life. A model uses only ratios of weights, and these are the same as if the old edges
had been made lighter. Before the stored numbers grow too large, all of them are divided by a power of two, which
changes no bit of any ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._edge_kernels import MIN_WEIGHT
from ripplevec.graph.adjacency import WeightScale
from ripplevec.temporal.clock import Times

RESCALE_HALF_LIVES = 20.0  # half-lives after which all stored weights are rescaled
MAX_EDGES_PER_EFFECTIVE = 16.0  # at least one edge in 16 counts as effective, which limits how often anchors run
MIN_EXPONENT = -500  # binary exponent of a weight so old that it is negligible, whatever its original value


class Decay:
    """Conversion between weights and stored weights over time, and the effective number of edges."""

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life
        self.halvings = 0.0  # number of times that all stored weights have been halved
        self.unit_sum = self.unit_square_sum = 0.0  # sums of the stored unit, and of its square, over all arrived edges

    def stored_unit(self, times: Times) -> NDArray[np.float64]:
        """Return the stored value of a weight of one that arrives at each of these times."""
        half_lives = times / self.half_life
        whole = np.floor(half_lives)  # separate from the fraction, so that rescaling is exact
        return np.ldexp(np.exp2(half_lives - whole), np.maximum(whole - self.halvings, MIN_EXPONENT).astype(np.int64))

    def rescale(self, now: float) -> float:
        """Return the factor by which all stored weights must be multiplied now; 1 unless new ones are too large."""
        half_lives = now / self.half_life  # since the first timestamp
        if half_lives - self.halvings < RESCALE_HALF_LIVES:
            return 1.0
        # The number of halvings is even: then the square roots of weights, which anchors use, are exact as well. It is
        # computed from the elapsed time, not summed up: for very large times a running sum would accumulate rounding
        # errors larger than the range of a weight.
        halvings = float(2 * np.floor(half_lives / 2))
        factor: float = 0.5 ** min(halvings - self.halvings, -MIN_EXPONENT)
        self.halvings = halvings
        if self.unit_square_sum:  # clamped like the weights
            self.unit_sum = max(self.unit_sum * factor, MIN_WEIGHT)
            self.unit_square_sum = max(self.unit_square_sum * factor**2, MIN_WEIGHT**2)
        return factor

    def stored_weights(
        self, weight: NDArray[np.float64] | None, times: Times, added: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return weights as they are stored; those of `added` edges enter the effective number of edges."""
        units = self.stored_unit(times)
        self.unit_sum += float(units[added].sum())
        self.unit_square_sum += float(np.square(units[added]).sum())
        return np.maximum(units if weight is None else weight * units, MIN_WEIGHT)

    def weight_scale(self, now: float, edges: int) -> WeightScale:
        """Return the scale of the stored weights now, in a graph with this number of edges."""
        unit = float(self.stored_unit(np.array([now]))[0])
        if not self.unit_square_sum:
            return WeightScale(unit=unit)
        effective = min(self.unit_sum * (self.unit_sum / self.unit_square_sum), float(edges))
        return WeightScale(unit, max(effective, edges / MAX_EDGES_PER_EFFECTIVE, 1.0))

    def state(self) -> NDArray[np.float64]:
        """Return the complete state as one array."""
        return np.array([self.halvings, self.unit_sum, self.unit_square_sum])

    def restore(self, state: NDArray[np.float64]) -> None:
        """Restore the state returned by `state`."""
        self.halvings, self.unit_sum, self.unit_square_sum = state.tolist()
