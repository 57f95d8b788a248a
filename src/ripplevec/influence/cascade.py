"""Influenced vertices of a vertex: the weighted independent cascade of the paper's Algorithm 1, sampled or cached."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph
from ripplevec.influence import _kernels as kernels
from ripplevec.influence._kernels import draw_key
from ripplevec.util.growable_array import grow_array

UNLIMITED_DEPTH = -1  # as many rounds as reach new vertices
NO_ROWS: RowArray = np.empty(0, np.int64)
NEWCOMER = -1  # row of the next arrival, which is not in the graph yet
_SAVED_ARRAYS = ("owner", "made", "begin", "members")  # names of attributes and of saved arrays


class RemoteCascadeGraph(Graph):
    """A graph whose edges are on other machines, and that runs cascades itself."""

    def run_cascade(self, source: int, depth: int, key: np.uint64) -> tuple[RowArray, NDArray[np.int64]]:
        """Return the rows influenced by `source`, and the bounds of the rounds; see `kernels.run_cascade`."""
        raise NotImplementedError


class RowReads(Protocol):
    """Reads of a graph that may be distributed over several machines."""

    @property
    def next_arrival(self) -> int:
        """Arrival number of the next new vertex."""

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of each row, such as "vectors", "placed", "arrival", "degree" or "in_strength"."""

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of all edges of rows, row by row: "neighbor" or "outgoing"."""


class Cascade:
    """Samples influenced sets: v influences each neighbor u that is not yet influenced with probability a_uv / d_u."""

    def __init__(self, depth: int | None, seed: int) -> None:
        self.depth = UNLIMITED_DEPTH if depth is None else depth
        self.seed = seed
        self._seen: NDArray[np.int64] = np.zeros(0, np.int64)  # per row: number of the last sample that reached it
        self._stamp = 0  # number of the current sample

    def sample_influenced(self, graph: Graph, source: int, attempt: int = 0) -> RowArray:
        """Return the rows that `source` influences, in order of rounds; each `attempt` is an independent sample."""
        return self.sample_rounds(graph, source, self.depth, attempt)[0]

    def sample_rounds(
        self, graph: Graph, source: int, depth: int, attempt: int = 0
    ) -> tuple[RowArray, NDArray[np.int64]]:
        """Return the rows influenced within `depth` rounds, and the bounds of the rounds: 0, end of round 1, …"""
        key = draw_key(self.seed, int(graph.arrival[source]), attempt)
        if isinstance(graph, RemoteCascadeGraph):
            return graph.run_cascade(source, depth, key)
        if self._seen.size < graph.adjacency.capacity:
            self._seen = grow_array(self._seen, graph.adjacency.capacity)
        self._stamp += 1
        rows_and_bounds: tuple[RowArray, NDArray[np.int64]] = kernels.run_cascade(
            graph.adjacency.links, graph.arrival, source, depth, self._seen, self._stamp, key
        )
        return rows_and_bounds

    def sample_for_newcomer(
        self, reads: RowReads, neighbors: RowArray, weights: NDArray[np.float32], attempt: int = 0
    ) -> RowArray:
        """Return the rows that the next arrival would influence if it had edges with these weights; nothing changes."""
        return self._sample_next_arrival(_GraphWithNewcomer(reads, neighbors, weights), self.depth, attempt)

    def _sample_next_arrival(self, graph: _GraphWithNewcomer, depth: int, attempt: int) -> RowArray:
        return graph.spread(NEWCOMER, depth, draw_key(self.seed, graph.next_arrival, attempt))[0]


class CachedCascade(Cascade):
    """A cascade whose rounds 2 … D are the cached rounds 1 … D−1 of the vertices reached in round 1.

    An approximation suggested by the paper: a cached set is the one that the last cascade of a vertex reached, and may
    be out of date.
    """

    def __init__(self, depth: int | None, seed: int, *, directed: bool = False) -> None:
        if depth is None:
            raise InvalidValueError.of("depth", "a number of rounds when reuse_influence is on", depth)
        super().__init__(depth, seed)
        self.stored_rounds = max(depth - 1, 0)  # rounds cached per vertex
        self.directed = directed  # whether edges lead from an arrival to its neighbors only
        # Per row: `owner` is the arrival number of the vertex that the set belongs to. Vertices with arrival number
        # `made` or higher are newer than the set. `begin` holds the bounds of the rounds in `members`.
        self.owner: NDArray[np.int64] = np.full(0, -1, np.int64)
        self.made: NDArray[np.int64] = np.zeros(0, np.int64)
        self.begin: NDArray[np.int64] = np.zeros((0, self.stored_rounds + 1), np.int64)
        self.members: RowArray = np.zeros(0, np.int64)
        self.used = 0  # length of the used part of `members`

    def sample_influenced(self, graph: Graph, source: int, attempt: int = 0) -> RowArray:
        """Sample one round from `source`, then add the cached rounds of the vertices reached."""
        first, _ = self.sample_rounds(graph, source, min(self.depth, 1), attempt)
        rounds = [first]
        for number in range(self.stored_rounds):
            cached = [self._load_round(graph, u, number) for u in first]
            rounds.append(self._select_new(np.concatenate(cached or [first]), source, rounds))
        self._store(graph, source, rounds[: self.stored_rounds])
        return np.concatenate(rounds)

    def sample_for_newcomer(
        self, reads: RowReads, neighbors: RowArray, weights: NDArray[np.float32], attempt: int = 0
    ) -> RowArray:
        """Return the rows that the next arrival would influence; sets that are missing are sampled but not cached."""
        graph = _GraphWithNewcomer(reads, neighbors, weights, directed=self.directed)
        first = self._sample_next_arrival(graph, min(self.depth, 1), attempt)
        if not self.stored_rounds or not first.size:
            return first
        numbers = graph.read_rows(first, "arrival")
        cached = [self._preview_rounds(graph, row, int(arrival)) for row, arrival in zip(first, numbers, strict=True)]
        rounds = [first]
        for parts in zip(*cached, strict=True):  # of one round
            rounds.append(self._select_new(np.concatenate(parts), NEWCOMER, rounds))
        return np.concatenate(rounds)

    def _preview_rounds(self, graph: _GraphWithNewcomer, row: int, arrival: int) -> list[RowArray]:
        """Return the rounds of a vertex: the cached ones, or those that the next arrival would sample and cache."""
        if row < self.owner.size and self.owner[row] == arrival:
            rounds = [self.members[first:last] for first, last in pairwise(self.begin[row].tolist())]
            numbers = [graph.read_rows(rows, "arrival") for rows in rounds]
            made = self.made[row]
            return [rows[(at >= 0) & (at < made)] for rows, at in zip(rounds, numbers, strict=True)]
        rows, ends = graph.spread(row, self.stored_rounds, draw_key(self.seed, arrival, 0))
        ends = np.append(ends, np.full(max(self.stored_rounds + 1 - ends.size, 0), rows.size))
        return [rows[first:last] for first, last in pairwise(ends.tolist())]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the cached sets as arrays."""
        return {name: getattr(self, name).copy() for name in _SAVED_ARRAYS} | {"used": np.array(self.used)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the cached sets from `state`."""
        self.owner, self.made, self.begin, self.members = (state[name].copy() for name in _SAVED_ARRAYS)
        self.used = int(state["used"])

    def _select_new(self, rows: RowArray, source: int, rounds: list[RowArray]) -> RowArray:
        """Return the first occurrence of each row that is not in an earlier round."""
        rows = _unique_in_order(rows)
        return rows[~np.isin(rows, np.concatenate([[source], *rounds]))]

    def _load_round(self, graph: Graph, row: int, number: int) -> RowArray:
        """Return the cached round `number` + 1 of a vertex, without vertices removed since; sample it if missing."""
        self._ensure_rows(graph.adjacency.capacity)
        if self.owner[row] != graph.arrival[row]:
            rows, ends = self.sample_rounds(graph, row, self.stored_rounds)
            ends = np.concatenate([ends, np.full(max(self.stored_rounds + 1 - ends.size, 0), rows.size)])
            self._store(graph, row, [rows[ends[i] : ends[i + 1]] for i in range(self.stored_rounds)])
        members = self.members[self.begin[row, number] : self.begin[row, number + 1]]
        numbers = graph.arrival[members]
        return cast(RowArray, members[(numbers >= 0) & (numbers < self.made[row])])

    def _store(self, graph: Graph, row: int, rounds: list[RowArray]) -> None:
        """Cache the rounds of a vertex."""
        self._ensure_rows(graph.adjacency.capacity)
        length = sum(map(len, rounds))
        if self.used + length > self.members.size:
            self._compact(graph)
            self.members = grow_array(self.members, 2 * (self.used + length))
        ends = self.used + np.cumsum([0, *map(len, rounds)])
        self.members[self.used : ends[-1]] = np.concatenate([np.empty(0, np.int64), *rounds])
        self.owner[row], self.made[row], self.begin[row] = graph.arrival[row], graph.next_arrival, ends
        self.used = int(ends[-1])

    def _compact(self, graph: Graph) -> None:
        """Keep only the sets of vertices that still exist, without gaps."""
        owned = np.flatnonzero(self.owner >= 0)
        live = owned[self.owner[owned] == graph.arrival[owned]]
        first, size = self.begin[live, 0], self.begin[live, -1] - self.begin[live, 0]
        new_first = np.cumsum(size) - size
        members = self.members[np.repeat(first - new_first, size) + np.arange(int(size.sum()))]
        self.begin[live] -= (first - new_first)[:, None]
        self.owner[np.setdiff1d(np.arange(self.owner.size), live)] = -1
        self.members, self.used = members, members.size

    def _ensure_rows(self, rows: int) -> None:
        if self.owner.size < rows:
            self.owner = grow_array(self.owner, rows, -1)
            self.made, self.begin = grow_array(self.made, rows), grow_array(self.begin, rows)


def spread_by_reads(
    reads: RowReads,
    source_number: int,
    first_edges: tuple[RowArray, NDArray[np.float32]],
    depth: int,
    key: np.uint64,
    read_in_strength: Callable[[RowArray], NDArray[np.float64]],
    excluded: RowArray = NO_ROWS,
) -> tuple[RowArray, NDArray[np.int64]]:
    """Run the cascade of `kernels.run_cascade` on a graph that is read row by row; return rows and bounds of rounds.

    The source has this arrival number and these edges (neighbors and outgoing weights). Influence does not reach the
    `excluded` rows.
    """
    (targets, outgoing), influenced, bounds = first_edges, NO_ROWS, [0]
    sources = np.full(targets.size, source_number)
    while targets.size and len(bounds) - 1 != depth:
        drawn = np.empty(targets.size, np.bool_)
        numbers = reads.read_rows(targets, "arrival")
        kernels.draw_edges(key, numbers, sources, read_in_strength(targets), outgoing, drawn)
        frontier = _unique_in_order(targets[drawn & ~np.isin(targets, np.append(influenced, excluded))])
        influenced = np.concatenate([influenced, frontier])
        bounds.append(influenced.size)
        targets, outgoing = (reads.read_edges(frontier, name) for name in ("neighbor", "outgoing"))
        sources = np.repeat(reads.read_rows(frontier, "arrival"), reads.read_rows(frontier, "degree"))
    return influenced, np.array(bounds)


class _GraphWithNewcomer:
    """Reads of a graph as they will be after the next arrival; it has these neighbors, and the row `NEWCOMER`."""

    def __init__(
        self, reads: RowReads, neighbors: RowArray, weights: NDArray[np.float32], *, directed: bool = False
    ) -> None:
        order = np.argsort(neighbors, kind="stable")
        self._reads, self._directed = reads, directed
        self._neighbors, self._weights = neighbors, weights
        self._sorted, self._sorted_weights = neighbors[order], weights[order]
        self.next_arrival = reads.next_arrival

    def spread(self, source: int, depth: int, key: np.uint64) -> tuple[RowArray, NDArray[np.int64]]:
        """Return the rows that a vertex influences within `depth` rounds, and the bounds of the rounds."""
        row = np.array([source])
        edges = (self.read_edges(row, "neighbor"), self.read_edges(row, "outgoing"))
        number = int(self.read_rows(row, "arrival")[0])

        def read_in_strength(rows: RowArray) -> NDArray[np.float64]:
            return self.read_rows(rows, "in_strength")

        return spread_by_reads(self, number, edges, depth, key, read_in_strength, excluded=row)

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return the attribute "arrival", "degree" or "in_strength" of each row."""
        new = rows == NEWCOMER
        known = self._reads.read_rows(rows[~new], attribute)
        if attribute != "arrival":
            own_edges = self._weights_to_newcomer(rows[~new])
            known = known + (own_edges > 0 if attribute == "degree" else own_edges)
        values = np.empty(rows.size, known.dtype)
        values[~new] = known
        if new.any():
            strength = 0.0 if self._directed else float(self._weights.sum(dtype=np.float64))
            values[new] = {"arrival": self.next_arrival, "degree": self._neighbors.size, "in_strength": strength}[
                attribute
            ]
        return values

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return the attribute "neighbor" or "outgoing" of all edges of rows, row by row."""
        is_neighbor = attribute == "neighbor"
        known = rows[rows != NEWCOMER]
        edges = self._reads.read_edges(known, attribute)
        old_edges = iter(np.split(edges, np.cumsum(self._reads.read_rows(known, "degree"))[:-1]))
        to_newcomer = iter(self._weights_to_newcomer(known).tolist())
        parts = [edges[:0]]
        for row in rows.tolist():
            if row == NEWCOMER:
                parts.append(self._neighbors if is_neighbor else self._weights)
                continue
            parts.append(next(old_edges))
            if weight := next(to_newcomer):
                value = NEWCOMER if is_neighbor else 0 if self._directed else weight
                parts.append(np.array([value], edges.dtype))
        return np.concatenate(parts)

    def _weights_to_newcomer(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the weights of the edges between rows and the next arrival; 0 without an edge."""
        at = np.minimum(np.searchsorted(self._sorted, rows), self._sorted.size - 1)
        return np.where(self._sorted[at] == rows, self._sorted_weights[at], np.float32(0))


def _unique_in_order(rows: RowArray) -> RowArray:
    """Return the first occurrence of each row."""
    return rows[np.sort(np.unique(rows, return_index=True)[1])]
