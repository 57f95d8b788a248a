"""One-pass check of saved edges: every index, weight and sum, and the agreement of both endpoints of every edge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import kernel

OK, BAD_NEIGHBOR, SELF_LOOP, DUPLICATE_NEIGHBOR, BAD_WEIGHT, BAD_DIRECTIONS, BAD_STRENGTH, BAD_IN_STRENGTH = range(8)
"""Faults of a row."""


class SavedEdges(NamedTuple):
    """Edges in the saved layout: arrays per row, then arrays per edge endpoint."""

    degree: NDArray[np.int32]
    strength: NDArray[np.float64]
    in_strength: NDArray[np.float64]  # the `strength` array if undirected
    neighbor: NDArray[np.int32]
    weight: NDArray[np.float32]
    outgoing: NDArray[np.float32]  # the `weight` array if undirected
    incoming: NDArray[np.float32]  # the `weight` array if undirected


class GraphPart(NamedTuple):
    """The part (shard) of a graph to check: row r of part p of n has the code r·n + p; a whole graph is one part."""

    row_counts: NDArray[np.int64]  # number of rows of every part
    number: int  # which part is checked


@kernel(forceinline=True)
def _mix(value: Any) -> Any:
    """Mix the bits of a word (splitmix64 finalizer)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel(forceinline=True)
def _hash_edge(key: Any, low: int, high: int, upward: Any, downward: Any) -> Any:
    """Hash an edge to the same word at both endpoints; unpredictable without the key."""
    ends = _mix(key ^ ((np.uint64(low) << np.uint64(32)) | np.uint64(high)))
    return _mix(ends ^ ((np.uint64(upward) << np.uint64(32)) | np.uint64(downward)))


@kernel(forceinline=True)
def _neighbor_code(neighbor: int, part: GraphPart) -> Any:
    """Return the code of a saved neighbor, or -1 if it is invalid; rows of other parts are saved as -1 - code."""
    parts = len(part.row_counts)
    if neighbor >= 0:
        return np.int64(neighbor) * parts + part.number if neighbor < part.row_counts[part.number] else np.int64(-1)
    code = -1 - np.int64(neighbor)
    owner = code % parts
    return code if owner != part.number and code // parts < part.row_counts[owner] else np.int64(-1)


@kernel
def _check_strength(
    edges: SavedEdges,
    row: int,
    total: float,
    incoming: float,
    exact_sum_degree: int,
    tolerance: float,
    directed: bool,
) -> int:
    """Check that the strengths of a row are the sums over its edges; return a fault or OK.

    Up to `exact_sum_degree` edges the sum must match bit for bit. Larger sums are maintained incrementally and may
    retain the rounding error of very heavy edges that were removed, so only their sign is checked.
    """
    strength, in_strength = edges.strength[row], edges.in_strength[row]
    if not (np.isfinite(strength) and np.isfinite(in_strength)):
        return BAD_STRENGTH
    if edges.degree[row] > exact_sum_degree:
        return OK if strength > 0 and in_strength >= 0 else BAD_STRENGTH
    if strength != total:
        return BAD_STRENGTH
    if directed and not abs(in_strength - incoming) <= tolerance * strength:
        return BAD_IN_STRENGTH
    return OK


@kernel
def check_edges(
    edges: SavedEdges,
    part: GraphPart,
    seen: NDArray[np.int64],
    exact_sum_degree: int,
    tolerance: float,
    key: Any,
    directed: bool,
) -> Any:
    """Check all rows of a part; return (fault, row, balance) of the first faulty row, or (OK, 0, balance).

    An edge adds its hash to `balance` at its lower endpoint and subtracts it at its upper endpoint. The sum over all
    parts is therefore zero if every edge has two equal endpoints.

    The degrees must be non-negative and add up to the number of endpoints. `seen` has one cell per code, all -1.
    """
    balance, at, parts = np.uint64(0), 0, len(part.row_counts)
    upward, downward = edges.outgoing.view(np.uint32), edges.incoming.view(np.uint32)
    for row in range(len(edges.degree)):
        code = np.int64(row) * parts + part.number
        total, incoming = 0.0, 0.0
        for slot in range(at, at + edges.degree[row]):
            neighbor = _neighbor_code(edges.neighbor[slot], part)
            if neighbor < 0:
                return BAD_NEIGHBOR, row, balance
            if neighbor == code:
                return SELF_LOOP, row, balance
            if seen[neighbor] == code:
                return DUPLICATE_NEIGHBOR, row, balance
            seen[neighbor] = code
            weight = edges.weight[slot]
            if not (weight > 0 and np.isfinite(weight)):
                return BAD_WEIGHT, row, balance
            if directed:
                out, back = edges.outgoing[slot], edges.incoming[slot]
                if not (out >= 0 and back >= 0) or np.float32(out + back) != weight:
                    return BAD_DIRECTIONS, row, balance
            total += weight
            incoming += edges.incoming[slot]
            if code < neighbor:
                balance += _hash_edge(key, code, neighbor, upward[slot], downward[slot])
            else:
                balance -= _hash_edge(key, neighbor, code, downward[slot], upward[slot])
        at += edges.degree[row]
        fault = _check_strength(edges, row, total, incoming, exact_sum_degree, tolerance, directed)
        if fault != OK:
            return fault, row, balance
    return OK, 0, balance
