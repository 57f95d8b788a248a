"""Reads neighbor lists of a graph on shards by arrival numbers, for samples of it; all shards read together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.shard_operator import ShardedAdjacency
from ripplevec.views.graph_sample import Endpoints, LocalReader, hash_numbers


class ShardReader:
    """An `EndpointReader` while a `ShardedAdjacency` is mapped. Every shard gets the answers of all."""

    def __init__(self, graph: ShardedAdjacency) -> None:
        numbers = graph.zeros(1, np.int64)
        numbers[: graph.rows, 0] = graph.graph.arrival[: graph.rows]
        graph.fill_halo(numbers, np.zeros(1))
        arrival, copies = numbers[: graph.rows, 0], numbers[graph.rows :, 0]
        self._mesh, self._local = graph.mesh, LocalReader(graph.graph.adjacency, arrival, copies)

    def count(self) -> tuple[int, int]:
        """Return the number of vertices with edges, and of edges."""
        vertices, endpoints = self._mesh.sum(np.array(self._local.count_endpoints())).tolist()
        return int(vertices), int(endpoints) // 2

    def lowest(self, key: int, count: int) -> NDArray[np.int64]:
        """Return the vertices with edges whose hashes are the lowest."""
        numbers = np.sort(np.concatenate(self._mesh.gather(self._local.lowest(key, count))))
        return numbers[np.argsort(hash_numbers(key, numbers), kind="stable")[:count]]

    def read(self, vertices: NDArray[np.int64] | None) -> Endpoints:
        """Return up to `MAX_LIST` endpoints of each of these vertices, or all endpoints of the graph."""
        parts = self._mesh.gather(tuple(self._local.read(vertices)))
        return Endpoints(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
