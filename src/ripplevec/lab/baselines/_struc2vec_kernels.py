"""Compiled kernels of struc2vec: degree rings around vertices, their alignment cost, and walks over layers.

The ring of a vertex at distance k is stored as runs: one row (degree, number of vertices with it) per degree, sorted
by degree. Vertices are identified by their position in the degree order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.influence._kernels import draw_uniform


@njit(cache=True, nogil=True)
def collect_rings(
    first: NDArray[np.int64], neighbor: NDArray[np.int64], sources: NDArray[np.int64], layers: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Collect the rings at distance 0, 1, … layers − 1 around each source; return their offsets and all runs.

    Ring k of the i-th source has number r = i · layers + k; its runs are the rows `begins[r]` to `begins[r + 1] - 1`.
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
                runs = _enlarge(runs, total + len(tally))
            begins[i * layers + layer] = total
            total += _count_degrees(first, queue[begin:end], tally, runs[total:])
            if layer + 1 < layers:
                begin, end = end, _expand_ring(first, neighbor, begin, end, queue, seen, i)
    begins[-1] = total
    return begins, runs[:total].copy()


@njit(cache=True, nogil=True)
def _enlarge(runs: NDArray[np.int32], min_rows: int) -> NDArray[np.int32]:
    larger = np.empty((max(2 * len(runs), min_rows), 2), np.int32)
    larger[: len(runs)] = runs
    return larger


@njit(cache=True, nogil=True)
def _count_degrees(
    first: NDArray[np.int64], ring: NDArray[np.int64], tally: NDArray[np.int32], runs: NDArray[np.int32]
) -> int:
    """Write the runs of a ring and return their number; `tally` is all zero before and after."""
    low, high, count = len(tally), 0, 0
    for vertex in ring:
        degree = first[vertex + 1] - first[vertex]
        tally[degree] += 1
        low, high = min(low, degree), max(high, degree)
    for degree in range(low, high + 1):
        if tally[degree]:
            runs[count, 0], runs[count, 1] = degree, tally[degree]
            tally[degree] = 0
            count += 1
    return count


@njit(cache=True, nogil=True)
def _expand_ring(
    first: NDArray[np.int64],
    neighbor: NDArray[np.int64],
    begin: int,
    end: int,
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> int:
    """Append the unseen neighbors of `queue[begin:end]` to the queue; return its new end."""
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
def match_cost(a: NDArray[np.int32], i: int, b: NDArray[np.int32], j: int) -> float:
    """Return the cost of matching two runs: the ratio of their degrees minus one, times the larger count."""
    ratio = max(a[i, 0], b[j, 0]) / min(a[i, 0], b[j, 0])
    return (ratio - 1.0) * max(a[i, 1], b[j, 1])


@njit(cache=True, nogil=True)
def align_greedily(a: NDArray[np.int32], b: NDArray[np.int32]) -> float:
    """Return the cost of the alignment that always takes the cheapest next step: an upper bound of the least cost."""
    i, j, total = 0, 0, match_cost(a, 0, b, 0)
    while i + 1 < len(a) or j + 1 < len(b):
        down = match_cost(a, i + 1, b, j) if i + 1 < len(a) else np.inf
        right = match_cost(a, i, b, j + 1) if j + 1 < len(b) else np.inf
        both = match_cost(a, i + 1, b, j + 1) if i + 1 < len(a) and j + 1 < len(b) else np.inf
        least = min(down, right, both)
        diagonal = least == both
        i += diagonal or least != right
        j += diagonal or least == right
        total += least
    return total


@njit(cache=True, nogil=True)
def align_rings(
    a: NDArray[np.int32], b: NDArray[np.int32], above: NDArray[np.float64], current: NDArray[np.float64]
) -> float:
    """Return the least alignment cost of two rings (dynamic time warping); the last two arrays are workspace.

    The result is exact, yet rarely takes quadratic time: paths that already cost more than the greedy alignment are
    pruned. Columns are counted from 1; of the row above, only the columns `low` to `high - 1` are not pruned.
    """
    limit = align_greedily(a, b) * (1 + 1e-12)
    above[0], low, high = 0.0, 0, 1
    for i in range(len(a)):
        left, begin, end = np.inf, 0, 0
        for j in range(max(low, 1), len(b) + 1):
            if j > high and left == np.inf:
                break
            least = min(left, above[j]) if low <= j < high else left
            if low < j <= high:
                least = min(least, above[j - 1])
            left = least + match_cost(a, i, b, j - 1)
            if left > limit:
                left = np.inf
            else:
                begin, end = (begin if begin else j), j + 1
            current[j] = left
        low, high = begin, end
        above, current = current, above
    return above[len(b)]


@njit(cache=True, nogil=True)
def compare_rings(
    begins: NDArray[np.int64], runs: NDArray[np.int32], distance: NDArray[np.float64], begin: int, end: int
) -> None:
    """Fill `distance[k, v, j]` for v from `begin` to `end - 1`: the difference of v and v + 1 + j up to ring k.

    It is infinite where one of the two has no ring k.
    """
    layers, vertices, reach = distance.shape
    longest = np.diff(begins).max() + 1
    above, current = np.empty(longest), np.empty(longest)
    for v in range(begin, end):
        for j in range(reach):
            u, total = v + 1 + j, 0.0
            for k in range(layers):
                distance[k, v, j] = np.inf
                if u >= vertices:
                    continue
                ring_v = runs[begins[v * layers + k] : begins[v * layers + k + 1]]
                ring_u = runs[begins[u * layers + k] : begins[u * layers + k + 1]]
                total = total + align_rings(ring_v, ring_u, above, current) if len(ring_v) and len(ring_u) else np.inf
                distance[k, v, j] = total


@njit(cache=True, nogil=True)
def walk_layers(
    cumulative: NDArray[np.float64],
    up: NDArray[np.float64],
    stay: float,
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """Fill each row of `walks` with a walk over the layers from its start; steps within a layer are recorded.

    `cumulative[k, v]` holds the cumulative weights of v's partners in layer k, which are the nearest positions before
    and after it; `up[k, v]` is the probability of going up when the layer changes. Every vertex has a partner in layer
    0.
    """
    reach = cumulative.shape[2] // 2
    for row in range(len(starts)):
        current, layer, draws = starts[row], 0, 0
        walks[row, 0] = current
        for step in range(1, walks.shape[1]):
            while draw_uniform(key, starts[row], draws) >= stay:
                rises = draw_uniform(key, starts[row], draws + 1) < up[layer, current]
                layer = layer + 1 if rises else max(layer - 1, 0)
                draws += 2
            sums = cumulative[layer, current]
            slot = np.searchsorted(sums, (1.0 - draw_uniform(key, starts[row], draws + 1)) * sums[-1])
            current += slot - reach + (slot >= reach)
            draws += 2
            walks[row, step] = current
