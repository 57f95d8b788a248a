"""Kernels that find an edge in the lists of its ends."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import NO_INDEX, Links
from ripplevec.graph._hub_kernels import find_in_index


@njit(cache=True, nogil=True, forceinline=True)
def find_slot(links: Links, row: int, other: int) -> int:
    """The slot of `other` among the neighbors of `row`, -1 where there is none."""
    if links.index_begin[row] != NO_INDEX:
        return find_in_index(links, row, other)
    begin = links.begin[row]
    for at in range(begin, begin + links.degree[row]):
        if links.neighbor[at] == other:
            return at
    return -1


@njit(cache=True, nogil=True)
def has_edge(links: Links, src: int, dst: int, directed: bool) -> bool:
    """Whether the edge is there, read from the end with fewer neighbors where that is enough."""
    if directed:
        at = find_slot(links, src, dst)
        return at >= 0 and links.outgoing[at] > 0
    if links.degree[src] > links.degree[dst]:
        src, dst = dst, src
    return find_slot(links, src, dst) >= 0


@njit(cache=True, nogil=True)
def has_edges(
    links: Links, src: NDArray[np.int64], dst: NDArray[np.int64], found: NDArray[np.bool_], directed: bool
) -> None:
    """`has_edge`, pair by pair, into `found`."""
    for i in range(src.size):
        found[i] = has_edge(links, src[i], dst[i], directed)


@njit(cache=True, nogil=True, forceinline=True)
def find_edge_slots(links: Links, src: int, dst: int) -> tuple[int, int]:
    """The two slots of an edge (-1, -1 where there is none); the shorter list is looked at first."""
    if links.degree[src] <= links.degree[dst]:
        here = find_slot(links, src, dst)
        return here, find_slot(links, dst, src) if here >= 0 else -1
    there = find_slot(links, dst, src)
    return find_slot(links, src, dst) if there >= 0 else -1, there


@njit(cache=True, nogil=True)
def is_bipartite(links: Links, rows: int) -> bool:
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
            for slot in range(links.begin[row], links.begin[row] + links.degree[row]):
                other = links.neighbor[slot]
                if side[other] == side[row]:
                    return False
                if side[other] == 0:
                    side[other] = -side[row]
                    queue[found] = other
                    found += 1
    return True
