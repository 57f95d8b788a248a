"""The window: which edges there are and when each was last mentioned, so that the old ones can be told.

It knows edges by the arrival numbers of their ends, which are never used again. Beside them it keeps, without looking
at it, what the engine calls these ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import FormatError
from ripplevec.temporal import _kernels as kernels
from ripplevec.temporal._kernels import EDGE_COUNT, EMPTY, HEAP_SIZE, EdgeTimes
from ripplevec.temporal.clock import Times

Rows = NDArray[np.int64]
MIN_CAPACITY = 64
EXPIRY_CHUNK = 1_024  # edges that expire before they are gathered


class Window:
    """Edges, each with the time of its latest mention.

    >>> window = Window(10.0)
    >>> numbers = np.array([[0, 1], [1, 2]])
    >>> window.record(np.zeros(2, np.int8), numbers, numbers, np.array([0.0, 5.0]))
    >>> window.pop_expired(now=12.0)[1].tolist()
    [[0, 1]]
    """

    def __init__(self, expire_after: float, *, directed: bool = False) -> None:
        self.expire_after, self.directed = expire_after, directed
        self._held = _empty(MIN_CAPACITY, MIN_CAPACITY)

    def __len__(self) -> int:
        return int(self._held.sizes[EDGE_COUNT])

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(array.nbytes for array in self._held)

    def record(self, op: NDArray[np.int8], ends: Rows, numbers: Rows, times: Times) -> None:
        """Remember what operations said of edges, in order: their ends, the arrival numbers of these, and when."""
        self._make_room(op.size)
        kernels.record_edges(self._held, op, ends, numbers, times, self.directed)

    def pop_expired(self, now: float) -> tuple[Rows, Rows]:
        """The edges, ends and numbers, that nobody has mentioned for too long, the oldest first; they are forgotten.

        A vertex that has been removed may be among the ends: the window is not told of those.
        """
        edges, times = [np.empty((0, 4), np.int64)], [np.empty(0)]
        while kernels.has_due(self._held, now - self.expire_after):
            out, when = np.empty((EXPIRY_CHUNK, 4), np.int64), np.empty(EXPIRY_CHUNK)
            found = kernels.pop_expired(self._held, now - self.expire_after, out, when)
            edges.append(out[:found])
            times.append(when[:found])
        gone = np.concatenate(edges)
        gone = gone[np.lexsort((gone[:, 1], gone[:, 0], np.concatenate(times)))]
        return gone[:, 2:].copy(), gone[:, :2].copy()

    def count_due(self, now: float) -> int:
        """At most how many edges `expired` would find."""
        return int(kernels.count_due(self._held, now - self.expire_after))

    def _make_room(self, more: int) -> None:
        """Keep a third of the table free, and room in the heap, for so many edges more."""
        held = self._held
        if 3 * (len(self) + more) <= 2 * len(held.edge) and held.sizes[HEAP_SIZE] + more <= len(held.wake):
            return
        lines = MIN_CAPACITY
        while 2 * lines < 3 * (len(self) + more):
            lines *= 2
        self._held = _empty(lines, max(MIN_CAPACITY, (len(self) + more) * 3 // 2))
        kernels.rehash(held, self._held)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, in an order that does not depend on how it lies in memory."""
        lines = np.flatnonzero(self._held.edge[:, 0] != EMPTY)
        edge = self._held.edge[lines]
        order = np.lexsort((edge[:, 1], edge[:, 0]))
        latest = self._held.time[lines[order], kernels.LATEST]
        return {"numbers": edge[order, :2], "ends": edge[order, 2:], "latest": latest}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        numbers, ends, latest = (state[name] for name in ("numbers", "ends", "latest"))
        if not numbers.shape == ends.shape == (latest.size, 2):
            raise FormatError("the saved times of edges are inconsistent: there are not as many times as edges")
        self._held = _empty(MIN_CAPACITY, MIN_CAPACITY)
        self.record(np.zeros(latest.size, np.int8), ends, numbers, latest)


def _empty(lines: int, entries: int) -> EdgeTimes:
    edge = np.full((lines, 4), EMPTY, np.int64)
    who = np.empty((entries, 2), np.int64)
    return EdgeTimes(edge, np.empty((lines, 2)), np.empty(entries), who, np.zeros(2, np.int64))
