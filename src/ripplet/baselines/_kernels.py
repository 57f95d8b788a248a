"""Kernels of the baselines that walk. Draws are counter-based: a walk does not depend on which thread walks it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplet.influence._kernels import draw


@njit(cache=True, nogil=True)
def walk(
    first: NDArray[np.int64],
    neighbour: NDArray[np.int64],
    cumulative: NDArray[np.float64],
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """Fill each row of `walks` with a walk from its start, a neighbour at a time, in proportion to weight.

    The neighbours of v stand from slot `first[v]` to before `first[v + 1]`; `cumulative[s]` is the sum of the weights
    of all slots before s. Where a walk cannot go on, −1 follows.
    """
    for row in range(len(starts)):
        here = starts[row]
        for step in range(walks.shape[1]):
            walks[row, step] = here
            if here < 0 or first[here] == first[here + 1]:
                here = -1
                continue
            begin, end = first[here], first[here + 1]
            low, high = cumulative[begin], cumulative[end]
            aim = low + draw(key, starts[row], step) * (high - low)
            slot = begin + np.searchsorted(cumulative[begin + 1 : end], aim, side="right")
            here = neighbour[slot]
