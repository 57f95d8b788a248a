"""The kernel of rule `paper`: Algorithm 2 for one arrival."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def apply_local_action(vectors: NDArray[np.float64], row: int, influenced: NDArray[np.int64]) -> None:
    """x_v ← mean of x_u over the influenced, then x_u ← x_u − α x_v, α = 1 − √(1 − 1/|I|). Nobody: x_v ← 0."""
    count = influenced.size
    vectors[row] = 0
    if count == 0:
        return
    for u in influenced:
        for j in range(vectors.shape[1]):
            vectors[row, j] += vectors[u, j]
    for j in range(vectors.shape[1]):
        vectors[row, j] /= count
    alpha = 1 - np.sqrt(1 - 1 / count)
    for u in influenced:
        for j in range(vectors.shape[1]):
            vectors[u, j] -= alpha * vectors[row, j]
