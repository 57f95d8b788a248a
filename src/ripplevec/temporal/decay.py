"""Weights that halve with every half-life, without a look at the edges that fade.

It is the future that gets heavier: an edge that comes at time t is written down as w · 2^(t/h). All that a model makes
of weights are ratios, and those are the same as if the old edges had been made lighter. Before numbers grow too large
all of them are halved some whole number of times, which changes no bit of any ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._edge_kernels import MIN_WEIGHT
from ripplevec.graph.adjacency import Adjacency, WeightScale
from ripplevec.temporal.clock import Times

RESCALE_HALF_LIVES = 20.0  # half-lives after which everything written down is halved as many times
MAX_EDGES_PER_EFFECTIVE = 16.0  # of so many edges one counts as alive: what anchors cost goes by that
MIN_EXPONENT = -500  # powers of two: what is that old is as good as nothing, whatever it weighed


class Decay:
    """How weights are written down at a time, and how many of those that came have not faded."""

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life
        self.halvings = 0.0  # of everything so far
        self.unit_sum = self.unit_square_sum = 0.0  # over all edges that came, the sums of what a weight of one is now

    def stored_unit(self, times: Times) -> NDArray[np.float64]:
        """What a weight of one that comes at these times is written down as."""
        age = times / self.half_life
        whole = np.floor(age)  # apart from the rest, so that to halve everything is exact
        return np.ldexp(np.exp2(age - whole), np.maximum(whole - self.halvings, MIN_EXPONENT).astype(np.int64))

    def rescale(self, now: float, adjacency: Adjacency) -> None:
        """Halve everything if a weight that comes now would be written down as too large a number."""
        age = now / self.half_life
        if age - self.halvings < RESCALE_HALF_LIVES:
            return
        # Even: then roots of weights, which anchors work with, are exact too. From the age itself: a sum of what has
        # been halved so far would be off by more than a weight can take where numbers are so large that they have gaps.
        halvings = float(2 * np.floor(age / 2))
        factor = 0.5 ** min(halvings - self.halvings, -MIN_EXPONENT)
        adjacency.scale_weights(factor)
        self.halvings = halvings
        if self.unit_square_sum:  # they fade no further than weights do
            self.unit_sum = max(self.unit_sum * factor, MIN_WEIGHT)
            self.unit_square_sum = max(self.unit_square_sum * factor**2, MIN_WEIGHT**2)

    def stored_weights(self, weight: Times | None, times: Times, came: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weights as they are written down; those of edges that come are counted."""
        powers = self.stored_unit(times)
        self.unit_sum += float(powers[came].sum())
        self.unit_square_sum += float(np.square(powers[came]).sum())
        return np.maximum(powers if weight is None else weight * powers, MIN_WEIGHT)

    def weight_scale(self, now: float, edges: int) -> WeightScale:
        """What weights mean now, in a graph of so many edges."""
        unit = float(self.stored_unit(np.array([now]))[0])
        if not self.unit_square_sum:
            return WeightScale(unit=unit)
        live = min(self.unit_sum * (self.unit_sum / self.unit_square_sum), float(edges))
        return WeightScale(unit, max(live, edges / MAX_EDGES_PER_EFFECTIVE, 1.0))

    def state(self) -> NDArray[np.float64]:
        """All of it as one array."""
        return np.array([self.halvings, self.unit_sum, self.unit_square_sum])

    def restore(self, state: NDArray[np.float64]) -> None:
        """Take over what `state` gave."""
        self.halvings, self.unit_sum, self.unit_square_sum = state.tolist()
