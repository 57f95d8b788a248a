"""The checksum of SQLite's write-ahead log."""

from __future__ import annotations

import numpy as np
from numba import njit, uint32
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def log_checksum(words: NDArray[np.uint32], sums: NDArray[np.uint32]) -> None:
    """Carry two running sums on over an even number of words."""
    first, second = sums[0], sums[1]
    for i in range(0, words.size, 2):
        first = uint32(first + words[i] + second)
        second = uint32(second + words[i + 1] + first)
    sums[0], sums[1] = first, second
