"""The inner loops of growing graphs: every arrival copies endpoints of earlier edges."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def attach(
    labels: NDArray[np.int64], first: NDArray[np.int64], noise: float, draws: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The target of every edge (row: the arriving vertex; −1: nobody was there yet).

    Community c keeps, from slot `first[c]` on, every member once and both ends of every edge inside it: a uniform slot
    is a member in proportion to its degree. Of the three draws of an edge the first says whether it leaves its
    community, the second for whose (that of a uniform earlier vertex), the third which slot it copies.
    """
    count, per_vertex = draws.shape[0], draws.shape[1]
    targets = np.full((count, per_vertex), -1, np.int64)
    used = np.zeros(len(first), np.int64)
    slots = np.empty(count * (1 + 2 * per_vertex), np.int64)
    for vertex in range(count):
        own = labels[vertex]
        for edge in range(per_vertex if vertex else 0):
            leaves = draws[vertex, edge, 0] < noise or used[own] == 0
            home = labels[int(draws[vertex, edge, 1] * vertex)] if leaves else own
            targets[vertex, edge] = slots[first[home] + int(draws[vertex, edge, 2] * used[home])]
        slots[first[own] + used[own]] = vertex
        used[own] += 1
        for edge in range(per_vertex):
            target = targets[vertex, edge]
            if target >= 0 and labels[target] == own:
                slots[first[own] + used[own]] = target
                slots[first[own] + used[own] + 1] = vertex
                used[own] += 2
    return targets


@njit(cache=True, nogil=True)
def copy_ends(draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """The target of every edge of vertices 1, 2, … (a row of draws each): a uniform one of the earlier ends of edges.

    A vertex is among the ends as often as its degree says. Edge i has its target at 2i and its source at 2i + 1; the
    edges of vertex 1 all go to vertex 0.
    """
    arrivals, per_vertex = draws.shape
    ends = np.zeros(2 * arrivals * per_vertex, np.int64)
    for arrival in range(arrivals):
        earlier = 2 * arrival * per_vertex
        for edge in range(per_vertex):
            slot = earlier + 2 * edge
            ends[slot] = ends[int(draws[arrival, edge] * earlier)]
            ends[slot + 1] = arrival + 1
    return ends[::2].copy()
