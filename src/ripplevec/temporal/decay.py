"""Weights that halve with every half-life, without a look at the edges that fade.

It is the future that gets heavier: an edge that comes at time t is written down as w · 2^(t/h). All that a model makes
of weights are ratios, and those are the same as if the old edges had been made lighter. Before numbers grow too large
all of them are halved some whole number of times, which changes no bit of any ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.weight_scale import FAINTEST, Scale
from ripplevec.temporal.clock import Times

HEIGHT = 20.0  # half-lives after which everything written down is halved as many times
FADED_AT_MOST = 16.0  # of so many edges one counts as alive: what anchors cost goes by that
LOWEST = -500  # powers of two: what is that old is as good as nothing, whatever it weighed


class Decay:
    """How weights are written down at a time, and how many of those that came have not faded."""

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life
        self.halvings = 0.0  # of everything so far
        self.mentions = self.squares = 0.0  # over all edges that came, the sums of what a weight of one is now

    def powers(self, times: Times) -> NDArray[np.float64]:
        """What a weight of one that comes at these times is written down as."""
        age = times / self.half_life
        whole = np.floor(age)  # apart from the rest, so that to halve everything is exact
        return np.ldexp(np.exp2(age - whole), np.maximum(whole - self.halvings, LOWEST).astype(np.int64))

    def make_room(self, now: float, adjacency: Adjacency) -> None:
        """Halve everything if a weight that comes now would be written down as too large a number."""
        age = now / self.half_life
        if age - self.halvings < HEIGHT:
            return
        # Even: then roots of weights, which anchors work with, are exact too. From the age itself: a sum of what has
        # been halved so far would be off by more than a weight can take where numbers are so large that they have gaps.
        halvings = float(2 * np.floor(age / 2))
        factor = 0.5 ** min(halvings - self.halvings, -LOWEST)
        adjacency.fade(factor)
        self.halvings = halvings
        if self.squares:  # they fade no further than weights do
            self.mentions = max(self.mentions * factor, FAINTEST)
            self.squares = max(self.squares * factor**2, FAINTEST**2)

    def written(self, weight: Times | None, times: Times, came: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weights as they are written down; those of edges that come are counted."""
        powers = self.powers(times)
        self.mentions += float(powers[came].sum())
        self.squares += float(np.square(powers[came]).sum())
        return np.maximum(powers if weight is None else weight * powers, FAINTEST)

    def scale(self, now: float, edges: int) -> Scale:
        """What weights mean now, in a graph of so many edges."""
        unit = float(self.powers(np.array([now]))[0])
        if not self.squares:
            return Scale(unit=unit)
        live = min(self.mentions * (self.mentions / self.squares), float(edges))
        return Scale(unit, max(live, edges / FADED_AT_MOST, 1.0))

    def state(self) -> NDArray[np.float64]:
        """All of it as one array."""
        return np.array([self.halvings, self.mentions, self.squares])

    def restore(self, state: NDArray[np.float64]) -> None:
        """Take over what `state` gave."""
        self.halvings, self.mentions, self.squares = state.tolist()
