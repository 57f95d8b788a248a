"""Samples of a graph, from which its views are chosen: a small graph as a whole, parts around vertices of a large one.

Vertices of a sample are chosen by hashes of their arrival numbers, so it does not depend on where they are stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency, RowArray

MAX_VERTICES = 8_000  # of a sample: bounds the time of a choice
MAX_EDGES = 500_000  # of a graph that is used as a whole
SEEDS = 16  # vertices from which a sample of a large graph spreads
FAN_OUT = 4  # neighbors through which it spreads from each vertex
MAX_LIST = 4_096  # neighbors read of a vertex; edges between two vertices with more may be missed


class SampledGraph(NamedTuple):
    """Edges of a graph, or of a part of it: pairs of vertices 0 … vertices − 1, each pair once, and their weights."""

    vertices: int
    pairs: NDArray[np.int64]
    weights: NDArray[np.float32]


class Endpoints(NamedTuple):
    """Edge endpoints: arrival numbers of a vertex and of a neighbor, and the weight of their edge."""

    vertex: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    weight: NDArray[np.float32]


class EndpointReader(Protocol):
    """Reads neighbor lists of a graph by arrival numbers; on shards, all of them read together."""

    def count(self) -> tuple[int, int]:
        """Return the number of vertices with edges, and of edges."""

    def lowest(self, key: int, count: int) -> NDArray[np.int64]:
        """Return the vertices with edges whose hashes are the lowest."""

    def read(self, vertices: NDArray[np.int64] | None) -> Endpoints:
        """Return up to `MAX_LIST` endpoints of each of these vertices, in order, or all endpoints of the graph."""


def sample_graph(reader: EndpointReader, seed: int) -> SampledGraph:
    """Sample a graph; the whole of a small one."""
    return sample_with_numbers(reader, seed)[0]


def sample_with_numbers(reader: EndpointReader, seed: int) -> tuple[SampledGraph, NDArray[np.int64]]:
    """Sample a graph; return also the arrival numbers of its vertices."""
    vertices, edges = reader.count()
    if vertices <= MAX_VERTICES and edges <= MAX_EDGES:
        return _to_graph(reader.read(None))
    dense_limit = int(vertices * np.sqrt(MAX_EDGES / max(edges, 1)))  # a part of the vertices has its square of edges
    members = _spread(reader, seed, min(MAX_VERTICES, vertices, dense_limit))
    found = reader.read(members)
    return _to_graph(_select(found, is_member(members, found.neighbor)))


def hash_numbers(key: int, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of each number (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        word = numbers.astype(np.uint64) + np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(word ^ (word >> np.uint64(31)))


def is_member(members: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among the members, which are sorted."""
    if not members.size:
        return np.zeros(numbers.shape, np.bool_)
    return np.asarray(members[np.minimum(np.searchsorted(members, numbers), members.size - 1)] == numbers)


def _spread(reader: EndpointReader, seed: int, size: int) -> NDArray[np.int64]:
    """Return the vertices of a sample, sorted: spread from some vertices through a few neighbors of each."""
    starts = reader.lowest(seed, size)  # in order of their hashes
    members = frontier = np.sort(starts[:SEEDS])
    used = SEEDS
    while members.size < size:
        found = reader.read(frontier)
        neighbors = _choose_neighbors(found, seed)
        frontier = np.sort(neighbors[~is_member(members, neighbors)][: size - members.size])
        if not frontier.size:  # the surroundings are exhausted: spread from further vertices
            further = starts[used : used + SEEDS]
            used += SEEDS
            frontier = np.sort(further[~is_member(members, further)])
        members = np.union1d(members, frontier)
    return members


def _choose_neighbors(found: Endpoints, seed: int) -> NDArray[np.int64]:
    """Return up to FAN_OUT neighbors of each vertex, those with the lowest hashes; distinct, in order of hashes."""
    hashes = hash_numbers(seed + 1, found.vertex * np.int64(0x5851F42D4C957F2D) ^ found.neighbor)
    order = np.lexsort([hashes, found.vertex])
    vertex = found.vertex[order]
    first = np.searchsorted(vertex, vertex)  # position of the first endpoint of the same vertex
    chosen = order[np.arange(order.size) - first < FAN_OUT]
    neighbors = np.unique(found.neighbor[chosen])
    return neighbors[np.argsort(hash_numbers(seed + 2, neighbors), kind="stable")]


def _select(found: Endpoints, which: NDArray[Any]) -> Endpoints:
    return Endpoints(*(column[which] for column in found))


def _to_graph(found: Endpoints) -> tuple[SampledGraph, NDArray[np.int64]]:
    """Number the vertices of some endpoints by arrival, and list each of their edges once, in order.

    Return also the arrival numbers of the vertices.
    """
    names, codes = np.unique(np.concatenate([found.vertex, found.neighbor]), return_inverse=True)
    pairs = np.sort(codes.reshape(2, -1).T, axis=1)
    _, first = np.unique(pairs[:, 0] * max(names.size, 1) + pairs[:, 1], return_index=True)
    return SampledGraph(names.size, pairs[first].astype(np.int64), found.weight[first]), names


class LocalReader:
    """Reads neighbor lists of rows in the memory of this process; `copies` are further rows that are only neighbors."""

    def __init__(self, adjacency: Adjacency, arrival: RowArray, copies: RowArray | None = None) -> None:
        self._adjacency, self._arrival = adjacency, arrival
        self._neighbor_arrival = arrival if copies is None else np.concatenate([arrival, copies])
        self._degree = adjacency.links.degree[: arrival.size]
        self._active = np.flatnonzero(self._degree)
        self._order = self._active[np.argsort(arrival[self._active], kind="stable")]

    def count(self) -> tuple[int, int]:
        """Return the number of vertices with edges, and of edges."""
        vertices, endpoints = self.count_endpoints()
        return vertices, endpoints // 2

    def count_endpoints(self) -> tuple[int, int]:
        """Return the number of vertices with edges, and of their endpoints."""
        return self._active.size, int(self._degree.sum(dtype=np.int64))

    def lowest(self, key: int, count: int) -> NDArray[np.int64]:
        """Return the vertices with edges whose hashes are the lowest."""
        numbers = self._arrival[self._order]
        return numbers[np.argsort(hash_numbers(key, numbers), kind="stable")[:count]]

    def read(self, vertices: NDArray[np.int64] | None) -> Endpoints:
        """Return up to `MAX_LIST` endpoints of each of these vertices, or all endpoints of the graph."""
        rows = self._order
        if vertices is not None:
            rows = rows[is_member(vertices, self._arrival[rows])]
        degree = self._degree[rows].astype(np.int64)
        if vertices is not None:
            degree = np.minimum(degree, MAX_LIST)
        ends = np.cumsum(degree)
        slots = np.repeat(self._adjacency.links.begin[rows] - (ends - degree), degree) + np.arange(int(degree.sum()))
        links = self._adjacency.links
        return Endpoints(
            np.repeat(self._arrival[rows], degree), self._neighbor_arrival[links.neighbor[slots]], links.weight[slots]
        )
