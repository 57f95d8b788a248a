"""Kernels of struc2vec: the rings around a vertex, how much two of them differ, walks over the layers built on that.

A ring is kept as its runs: a row (degree, how many vertices have it) per degree, ascending. Vertices go by their
position in the order of degrees.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.influence._kernels import draw_uniform


@njit(cache=True, nogil=True)
def rings(
    first: NDArray[np.int64], neighbor: NDArray[np.int64], sources: NDArray[np.int64], layers: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The rings of vertices at distance 0, 1, … layers − 1 around each source: where each begins, and all runs.

    Ring k of the i-th source is number r = i · layers + k; its runs stand from `begins[r]` to before `begins[r + 1]`.
    """
    vertices = len(first) - 1
    seen, queue = np.full(vertices, -1), np.empty(vertices, np.int64)
    tally = np.zeros(np.diff(first).max() + 1, np.int32)
    begins, runs = np.empty(len(sources) * layers + 1, np.int64), np.empty((1024, 2), np.int32)
    total = 0
    for i, source in enumerate(sources):
        seen[source], queue[0] = i, source
        begin, end = 0, 1
        for layer in range(layers):
            if total + len(tally) > len(runs):
                runs = _longer(runs, total + len(tally))
            begins[i * layers + layer] = total
            total += _count(first, queue[begin:end], tally, runs[total:])
            if layer + 1 < layers:
                begin, end = end, _expand(first, neighbor, begin, end, queue, seen, i)
    begins[-1] = total
    return begins, runs[:total].copy()


@njit(cache=True, nogil=True)
def _longer(runs: NDArray[np.int32], least: int) -> NDArray[np.int32]:
    longer = np.empty((max(2 * len(runs), least), 2), np.int32)
    longer[: len(runs)] = runs
    return longer


@njit(cache=True, nogil=True)
def _count(first: NDArray[np.int64], ring: NDArray[np.int64], tally: NDArray[np.int32], runs: NDArray[np.int32]) -> int:
    """Write the runs of a ring and return how many there are; `tally` is all zero before and after."""
    low, high, found = len(tally), 0, 0
    for vertex in ring:
        degree = first[vertex + 1] - first[vertex]
        tally[degree] += 1
        low, high = min(low, degree), max(high, degree)
    for degree in range(low, high + 1):
        if tally[degree]:
            runs[found, 0], runs[found, 1] = degree, tally[degree]
            tally[degree] = 0
            found += 1
    return found


@njit(cache=True, nogil=True)
def _expand(
    first: NDArray[np.int64],
    neighbor: NDArray[np.int64],
    begin: int,
    end: int,
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> int:
    """Append to the queue what is next to its part from `begin` to `end` and was not seen; returns its new end."""
    last = end
    for i in range(begin, end):
        for slot in range(first[queue[i]], first[queue[i] + 1]):
            vertex = neighbor[slot]
            if seen[vertex] != stamp:
                seen[vertex] = stamp
                queue[last] = vertex
                last += 1
    return last


@njit(cache=True, nogil=True)
def cost(a: NDArray[np.int32], i: int, b: NDArray[np.int32], j: int) -> float:
    """What it costs to match two runs: the ratio of their degrees less one, times the greater count."""
    ratio = max(a[i, 0], b[j, 0]) / min(a[i, 0], b[j, 0])
    return (ratio - 1.0) * max(a[i, 1], b[j, 1])


@njit(cache=True, nogil=True)
def greedy(a: NDArray[np.int32], b: NDArray[np.int32]) -> float:
    """The cost of the alignment that takes the cheapest next step each time: no less than the least there is."""
    i, j, total = 0, 0, cost(a, 0, b, 0)
    while i + 1 < len(a) or j + 1 < len(b):
        down = cost(a, i + 1, b, j) if i + 1 < len(a) else np.inf
        right = cost(a, i, b, j + 1) if j + 1 < len(b) else np.inf
        both = cost(a, i + 1, b, j + 1) if i + 1 < len(a) and j + 1 < len(b) else np.inf
        least = min(down, right, both)
        diagonal = least == both
        i += diagonal or least != right
        j += diagonal or least == right
        total += least
    return total


@njit(cache=True, nogil=True)
def align(a: NDArray[np.int32], b: NDArray[np.int32], above: NDArray[np.float64], here: NDArray[np.float64]) -> float:
    """The least cost of an alignment of two rings (dynamic time warping); the last two arrays are room to work in.

    Exact, yet seldom quadratic: what already costs more than the greedy alignment is not followed. Columns are
    counted from 1; of the row above, only those from `low` to before `high` are still worth following.
    """
    limit = greedy(a, b) * (1 + 1e-12)
    above[0], low, high = 0.0, 0, 1
    for i in range(len(a)):
        left, begin, end = np.inf, 0, 0
        for j in range(max(low, 1), len(b) + 1):
            if j > high and left == np.inf:
                break
            least = min(left, above[j]) if low <= j < high else left
            if low < j <= high:
                least = min(least, above[j - 1])
            left = least + cost(a, i, b, j - 1)
            if left > limit:
                left = np.inf
            else:
                begin, end = (begin if begin else j), j + 1
            here[j] = left
        low, high = begin, end
        above, here = here, above
    return above[len(b)]


@njit(cache=True, nogil=True)
def compare(
    begins: NDArray[np.int64], runs: NDArray[np.int32], distance: NDArray[np.float64], begin: int, end: int
) -> None:
    """Fill `distance[k, v, j]`, for v from `begin` to `end`: how v and v + 1 + j differ up to ring k.

    Infinite where one of them has no ring k.
    """
    layers, vertices, reach = distance.shape
    longest = np.diff(begins).max() + 1
    above, here = np.empty(longest), np.empty(longest)
    for v in range(begin, end):
        for j in range(reach):
            u, total = v + 1 + j, 0.0
            for k in range(layers):
                distance[k, v, j] = np.inf
                if u >= vertices:
                    continue
                one = runs[begins[v * layers + k] : begins[v * layers + k + 1]]
                other = runs[begins[u * layers + k] : begins[u * layers + k + 1]]
                total = total + align(one, other, above, here) if len(one) and len(other) else np.inf
                distance[k, v, j] = total


@njit(cache=True, nogil=True)
def walk(
    cumulative: NDArray[np.float64],
    up: NDArray[np.float64],
    stay: float,
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """Fill each row of `walks` with a walk from its start over the layers, written whenever it stays in one.

    `cumulative[k, v]` holds the running sums of the weights of v's partners in layer k, the nearest positions before
    and behind it; `up[k, v]` is the chance to go up where the layer is changed. Every vertex has a partner in layer 0.
    """
    reach = cumulative.shape[2] // 2
    for row in range(len(starts)):
        here, layer, draws = starts[row], 0, 0
        walks[row, 0] = here
        for step in range(1, walks.shape[1]):
            while draw_uniform(key, starts[row], draws) >= stay:
                rises = draw_uniform(key, starts[row], draws + 1) < up[layer, here]
                layer = layer + 1 if rises else max(layer - 1, 0)
                draws += 2
            sums = cumulative[layer, here]
            slot = np.searchsorted(sums, (1.0 - draw_uniform(key, starts[row], draws + 1)) * sums[-1])
            here += slot - reach + (slot >= reach)
            draws += 2
            walks[row, step] = here
