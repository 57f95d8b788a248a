"""Kernel of rule `paper`: the local action (Algorithm 2 of the paper) for one arrival."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def apply_local_action(vectors: NDArray[np.float64], row: int, influenced: NDArray[np.int64]) -> None:
    """Set x_v to the mean of x_u over the influenced set I, then x_u ← x_u − α x_v with α = 1 − √(1 − 1/|I|).

    If I is empty, x_v becomes zero.
    """
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
