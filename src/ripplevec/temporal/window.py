"""Sliding time window: records when each edge last arrived, and finds the edges that have expired.

Edges are identified by the arrival numbers of their endpoints, which are never reused. The rows of the endpoints are
stored too, and returned unchanged when the edge expires.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import FormatError
from ripplevec.graph.adjacency import RowArray
from ripplevec.temporal import _kernels as kernels
from ripplevec.temporal._kernels import EDGE_COUNT, EMPTY, HEAP_SIZE, EdgeTimes
from ripplevec.temporal.clock import Times

MIN_CAPACITY = 64
EXPIRY_CHUNK = 1_024  # edges expired per kernel call


class Window:
    """Edges, each with the time of its latest arrival.

    >>> window = Window(10.0)
    >>> numbers = np.array([[0, 1], [1, 2]])
    >>> window.record(np.zeros(2, np.int8), numbers, numbers, np.array([0.0, 5.0]))
    >>> window.pop_expired(now=12.0)[1].tolist()
    [[0, 1]]
    """

    def __init__(self, expire_after: float, *, directed: bool = False) -> None:
        self.expire_after, self.directed = expire_after, directed
        self._edges = _create_edge_times(MIN_CAPACITY, MIN_CAPACITY)

    def __len__(self) -> int:
        return int(self._edges.sizes[EDGE_COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(array.nbytes for array in self._edges)

    def record(self, op: NDArray[np.int8], ends: RowArray, numbers: NDArray[np.int64], times: Times) -> None:
        """Record edge operations in order, given the rows and the arrival numbers of both endpoints, and the times."""
        self._make_room(op.size)
        kernels.record_edges(self._edges, op, ends, numbers, times, self.directed)

    def pop_expired(self, now: float) -> tuple[RowArray, NDArray[np.int64], Times]:
        """Remove the expired edges from the window; return their rows, arrival numbers and times, oldest edge first.

        An endpoint may have been removed from the graph in the meantime: the window does not record removed vertices.
        """
        edges, times = [np.empty((0, 4), np.int64)], [np.empty(0)]
        while kernels.has_due(self._edges, now - self.expire_after):
            chunk, chunk_times = np.empty((EXPIRY_CHUNK, 4), np.int64), np.empty(EXPIRY_CHUNK)
            found = kernels.pop_expired(self._edges, now - self.expire_after, chunk, chunk_times)
            edges.append(chunk[:found])
            times.append(chunk_times[:found])
        expired, latest = np.concatenate(edges), np.concatenate(times)
        order = np.lexsort((expired[:, 1], expired[:, 0], latest))
        return expired[order, 2:], expired[order, :2], latest[order]

    def count_due(self, now: float) -> int:
        """Return an upper bound of the number of edges that `pop_expired` would return."""
        return int(kernels.count_due(self._edges, now - self.expire_after))

    def state(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        """Return the complete state as plain arrays, in an order that does not depend on the memory layout.

        With `first` and `last`, return only edges whose first arrival number is from `first` to `last` − 1.
        """
        numbers = self._edges.edge[:, 0]
        entries = np.flatnonzero((numbers != EMPTY) & (numbers >= first) & (last is None or numbers < last))
        edge = self._edges.edge[entries]
        order = np.lexsort((edge[:, 1], edge[:, 0]))
        latest = self._edges.time[entries[order], kernels.LATEST]
        return {"numbers": edge[order, :2], "ends": edge[order, 2:], "latest": latest}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the state returned by `state`."""
        numbers, ends, latest = (state[name] for name in ("numbers", "ends", "latest"))
        if not numbers.shape == ends.shape == (latest.size, 2):
            raise FormatError(
                f"The saved edge times are inconsistent: expected arrays of shape ({latest.size}, 2), got "
                f"{numbers.shape} and {ends.shape}. Restore a backup."
            )
        self._edges = _create_edge_times(MIN_CAPACITY, MIN_CAPACITY)
        self.record(np.zeros(latest.size, np.int8), ends, numbers, latest)

    def _make_room(self, added: int) -> None:
        """Make room for `added` more edges: a third of the table stays free, and the heap can hold all of them."""
        old = self._edges
        if 3 * (len(self) + added) <= 2 * len(old.edge) and old.sizes[HEAP_SIZE] + added <= len(old.heap_time):
            return
        entries = MIN_CAPACITY
        while 2 * entries < 3 * (len(self) + added):
            entries *= 2
        self._edges = _create_edge_times(entries, max(MIN_CAPACITY, (len(self) + added) * 3 // 2))
        kernels.rehash(old, self._edges)


def _create_edge_times(entries: int, heap_entries: int) -> EdgeTimes:
    edge = np.full((entries, 4), EMPTY, np.int64)
    heap_edge = np.empty((heap_entries, 2), np.int64)
    return EdgeTimes(edge, np.empty((entries, 2)), np.empty(heap_entries), heap_edge, np.zeros(2, np.int64))
