"""Check saved edges in one pass: every index, weight and sum, and that both ends of an edge agree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

OK, BAD_NEIGHBOR, SELF_LOOP, DUPLICATE_NEIGHBOR, BAD_WEIGHT, BAD_DIRECTIONS, BAD_STRENGTH, BAD_IN_STRENGTH = range(8)
"""What can be wrong with a row."""


class SavedEdges(NamedTuple):
    """Edges as they are saved: per row, then per end of an edge."""

    degree: NDArray[np.int32]
    strength: NDArray[np.float64]
    in_strength: NDArray[np.float64]  # the same array as `strength` when undirected
    neighbor: NDArray[np.int32]
    weight: NDArray[np.float32]
    outgoing: NDArray[np.float32]  # the same array as `weight` when undirected
    incoming: NDArray[np.float32]  # likewise


class GraphPart(NamedTuple):
    """Which rows of a graph are looked at: row r of part p of n has the code r·n + p; one part has them all."""

    row_counts: NDArray[np.int64]  # of each part
    number: int


@njit(cache=True, nogil=True, forceinline=True)
def _mix(value: Any) -> Any:
    """Mix the bits of a word (splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True, forceinline=True)
def _hash_edge(key: Any, low: int, high: int, upward: Any, downward: Any) -> Any:
    """A hash of an edge that is the same at both of its ends, and that nobody without the key can predict."""
    ends = _mix(key ^ ((np.uint64(low) << np.uint64(32)) | np.uint64(high)))
    return _mix(ends ^ ((np.uint64(upward) << np.uint64(32)) | np.uint64(downward)))


@njit(cache=True, nogil=True, forceinline=True)
def _neighbor_code(neighbor: int, part: GraphPart) -> Any:
    """The code of a neighbor, -1 where there is none: rows of other parts are saved as -1 - code."""
    parts = len(part.row_counts)
    if neighbor >= 0:
        return np.int64(neighbor) * parts + part.number if neighbor < part.row_counts[part.number] else np.int64(-1)
    code = -1 - np.int64(neighbor)
    elsewhere = code % parts
    return code if elsewhere != part.number and code // parts < part.row_counts[elsewhere] else np.int64(-1)


@njit(cache=True, nogil=True)
def _check_strength(
    edges: SavedEdges, row: int, total: float, incoming: float, many: int, rounding: float, directed: bool
) -> int:
    """Whether the strengths of a row are the sums over its edges: to the bit, or nearly so where there are many.

    A sum over many edges is kept by adding changes. It may be off by what very heavy edges left that are gone.
    """
    strength, in_strength = edges.strength[row], edges.in_strength[row]
    if not (np.isfinite(strength) and np.isfinite(in_strength)):
        return BAD_STRENGTH
    if edges.degree[row] > many:
        return OK if strength > 0 and in_strength >= 0 else BAD_STRENGTH
    if strength != total:
        return BAD_STRENGTH
    if directed and not abs(in_strength - incoming) <= rounding * strength:
        return BAD_IN_STRENGTH
    return OK


@njit(cache=True, nogil=True)
def check_edges(
    edges: SavedEdges, part: GraphPart, seen: NDArray[np.int64], many: int, rounding: float, key: Any, directed: bool
) -> Any:
    """(fault, row, balance): the first row that is wrong, and a sum that is zero where every edge has two equal ends.

    The degrees are not negative and add up to the number of ends. `seen` has a cell for every code and holds -1.
    An edge adds its hash at its lower end and subtracts it at its upper end, so that over all parts nothing is left.
    """
    balance, at, parts = np.uint64(0), 0, len(part.row_counts)
    upward, downward = edges.outgoing.view(np.uint32), edges.incoming.view(np.uint32)
    for row in range(len(edges.degree)):
        own = np.int64(row) * parts + part.number
        total, arriving = 0.0, 0.0
        for slot in range(at, at + edges.degree[row]):
            other = _neighbor_code(edges.neighbor[slot], part)
            if other < 0:
                return BAD_NEIGHBOR, row, balance
            if other == own:
                return SELF_LOOP, row, balance
            if seen[other] == own:
                return DUPLICATE_NEIGHBOR, row, balance
            seen[other] = own
            weight = edges.weight[slot]
            if not (weight > 0 and np.isfinite(weight)):
                return BAD_WEIGHT, row, balance
            if directed:
                out, back = edges.outgoing[slot], edges.incoming[slot]
                if not (out >= 0 and back >= 0) or np.float32(out + back) != weight:
                    return BAD_DIRECTIONS, row, balance
            total += weight
            arriving += edges.incoming[slot]
            if own < other:
                balance += _hash_edge(key, own, other, upward[slot], downward[slot])
            else:
                balance -= _hash_edge(key, other, own, downward[slot], upward[slot])
        at += edges.degree[row]
        fault = _check_strength(edges, row, total, arriving, many, rounding, directed)
        if fault != OK:
            return fault, row, balance
    return OK, 0, balance
