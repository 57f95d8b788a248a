"""A kernel that tells whether a graph has two sides, with edges between them only."""

from __future__ import annotations

import numpy as np
from numba import njit

from ripplevec.graph._block_kernels import Links


@njit(cache=True, nogil=True)
def two_sided(links: Links, rows: int) -> bool:
    """Whether rows can be parted so that every edge leads to the other part; ends at the first edge that does not."""
    side = np.zeros(rows, np.int8)  # none yet
    queue = np.empty(rows, np.int64)
    for first in range(rows):
        if side[first] != 0:
            continue
        side[first] = 1
        queue[0], done, found = first, 0, 1
        while done < found:
            row = queue[done]
            done += 1
            for slot in range(links.begin[row], links.begin[row] + links.count[row]):
                other = links.neighbor[slot]
                if side[other] == side[row]:
                    return False
                if side[other] == 0:
                    side[other] = -side[row]
                    queue[found] = other
                    found += 1
    return True
