"""Read-only kernels over an adjacency: finding edges, and testing whether the graph is bipartite."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import NO_INDEX, Links
from ripplevec.graph._hub_kernels import find_in_index
from ripplevec.util.numba_intrinsics import allocation_free, kernel


@allocation_free(forceinline=True)
def find_slot(links: Links, row: int, neighbor: int) -> int:
    """Return the slot of a neighbor in the list of a row, or -1 if it is not a neighbor."""
    if links.index_begin[row] != NO_INDEX:
        return find_in_index(links, row, neighbor)
    begin = links.begin[row]
    for at in range(begin, begin + links.degree[row]):
        if links.neighbor[at] == neighbor:
            return at
    return -1


@allocation_free
def has_edge(links: Links, src: int, dst: int, directed: bool) -> bool:
    """Return whether an edge exists (from src to dst if directed).

    If undirected, the shorter of the two lists is searched.
    """
    if directed:
        at = find_slot(links, src, dst)
        return at >= 0 and links.outgoing[at] > 0
    if links.degree[src] > links.degree[dst]:
        src, dst = dst, src
    return find_slot(links, src, dst) >= 0


@allocation_free
def has_edges(
    links: Links, src: NDArray[np.int64], dst: NDArray[np.int64], found: NDArray[np.bool_], directed: bool
) -> None:
    """Write to `found`, for each pair, whether the edge exists."""
    for i in range(src.size):
        found[i] = has_edge(links, src[i], dst[i], directed)


@allocation_free(forceinline=True)
def find_edge_slots(links: Links, src: int, dst: int) -> tuple[int, int]:
    """Return the slots of an edge at both ends, or (-1, -1) if there is none; the shorter list is searched first."""
    if links.degree[src] <= links.degree[dst]:
        src_slot = find_slot(links, src, dst)
        return src_slot, find_slot(links, dst, src) if src_slot >= 0 else -1
    dst_slot = find_slot(links, dst, src)
    return find_slot(links, src, dst) if dst_slot >= 0 else -1, dst_slot


@kernel
def is_bipartite(links: Links, rows: int) -> bool:
    """Return whether the graph is bipartite; the search stops at the first edge within one side."""
    side = np.zeros(rows, np.int8)  # 1 or -1; 0: not visited
    queue = np.empty(rows, np.int64)
    for start in range(rows):
        if side[start] != 0:
            continue
        side[start] = 1
        queue[0], head, tail = start, 0, 1
        while head < tail:
            row = queue[head]
            head += 1
            for slot in range(links.begin[row], links.begin[row] + links.degree[row]):
                neighbor = links.neighbor[slot]
                if side[neighbor] == side[row]:
                    return False
                if side[neighbor] == 0:
                    side[neighbor] = -side[row]
                    queue[tail] = neighbor
                    tail += 1
    return True
