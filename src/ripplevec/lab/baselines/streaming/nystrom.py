"""Nyström (Bengio et al., 2004): the start's eigenvectors, extended to a newcomer by their own equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ripplevec.lab.baselines.streaming.frozen import Frozen

SMALLEST = 0.5
"""Eigenvalues count as at least this share of the largest: a newcomer's errors, divided by them, reach the next one."""


@dataclass(kw_only=True)
class Nystrom(Frozen):
    """Σ_u x_u − c = (d + τ) μ x holds for every vertex of the start; it is solved for the newcomer's x.

    Vertices that have arrived count as neighbors too: of the start alone, many newcomers would know nobody.
    """

    def place(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """The projection onto the start's eigenvectors."""
        basis, near = self._basis, self._rows.placed(neighbors)
        if not len(near):
            return np.zeros(self.dim, np.float32)
        pulled = (near.sum(axis=0, dtype=np.float64) - basis.center) / (len(near) + basis.tau)
        row: NDArray[np.float32] = (pulled / np.maximum(basis.mu, SMALLEST * basis.mu[0])).astype(np.float32)
        return row
