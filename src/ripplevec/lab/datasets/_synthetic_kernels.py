"""Compiled inner loops of the graph generators: each new edge copies an endpoint of an earlier edge."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def attach_within_communities(
    labels: NDArray[np.int64], first: NDArray[np.int64], noise: float, draws: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Draw the target of every edge; row v holds the targets of vertex v, −1 where no earlier vertex exists.

    Community c owns the slots from `first[c]` on. They hold every member once and both endpoints of every edge inside
    the community, so that a uniform slot is a member in proportion to its degree plus one. An edge uses three uniform
    draws: whether it leaves its community, which community it goes to then (that of a uniform earlier vertex), and
    which slot it copies.
    """
    count, per_vertex = draws.shape[0], draws.shape[1]
    targets = np.full((count, per_vertex), -1, np.int64)
    used = np.zeros(len(first), np.int64)
    slots = np.empty(count * (1 + 2 * per_vertex), np.int64)
    for vertex in range(count):
        community = labels[vertex]
        for edge in range(per_vertex if vertex else 0):
            leaves = draws[vertex, edge, 0] < noise or used[community] == 0
            chosen = labels[int(draws[vertex, edge, 1] * vertex)] if leaves else community
            targets[vertex, edge] = slots[first[chosen] + int(draws[vertex, edge, 2] * used[chosen])]
        slots[first[community] + used[community]] = vertex
        used[community] += 1
        for edge in range(per_vertex):
            target = targets[vertex, edge]
            if target >= 0 and labels[target] == community:
                slots[first[community] + used[community]] = target
                slots[first[community] + used[community] + 1] = vertex
                used[community] += 2
    return targets


@njit(cache=True, nogil=True)
def attach_by_degree(draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw the target of every edge of the vertices 1, 2, …: a uniform endpoint of the earlier edges.

    Row v − 1 of `draws` belongs to vertex v. A vertex occurs among the endpoints as often as its degree. Edge i stores
    its target at 2i and its source at 2i + 1; all edges of vertex 1 go to vertex 0.
    """
    arrivals, per_vertex = draws.shape
    endpoints = np.zeros(2 * arrivals * per_vertex, np.int64)
    for arrival in range(arrivals):
        earlier = 2 * arrival * per_vertex
        for edge in range(per_vertex):
            slot = earlier + 2 * edge
            endpoints[slot] = endpoints[int(draws[arrival, edge] * earlier)]
            endpoints[slot + 1] = arrival + 1
    return endpoints[::2].copy()
