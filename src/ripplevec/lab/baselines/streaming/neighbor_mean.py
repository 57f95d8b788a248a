"""Neighbor mean: the simplest thing that works. A newcomer is given the mean of its neighbors' vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ripplevec.lab.baselines.streaming.frozen import Frozen


@dataclass(kw_only=True)
class NeighborMean(Frozen):
    """The mean over all placed neighbors, whether of the start or arrived since."""

    def place(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """The mean of the neighbors' vectors."""
        return self._rows.mean(neighbors)
