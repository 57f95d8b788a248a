"""The interface of baselines that process one arrival at a time, and the growing vectors they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import Adjacency
from ripplevec.lab.baselines.base import add_edges
from ripplevec.util.growable_array import grow_array


class StreamingBaseline(Protocol):
    """A method that keeps vectors up to date while vertices arrive; vertices are rows, numbered in order of arrival.

    Its settings are the fields of a dataclass, `dim` and `seed` among them.
    """

    def __init__(self, **settings: Any) -> None: ...

    def start(self, graph: csr_array, /) -> None:
        """Embed the initial graph, a symmetric weight matrix; earlier state is discarded."""

    def preview(self, neighbors: Sequence[int], /) -> NDArray[np.float32]:
        """Return the vector that a new vertex with these neighbors would get, without adding it."""

    def add_vertex(self, v: int, neighbors: Sequence[int], /) -> NDArray[np.float32]:
        """Add the next vertex with its edges, or further edges of a known one; return its vector."""

    def vectors(self) -> NDArray[np.float32]:
        """Return all current vectors as a read-only view; vertices that are not placed yet are zero."""


class GrowingVectors:
    """A matrix of one vector per vertex that rows can be appended to; a zero row means "not placed yet"."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._buffer = np.array(rows, np.float32)
        self._used = len(rows)

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[np.float32]:
        """All rows in use, writable."""
        return self._buffer[: self._used]

    def set_row(self, v: int, row: NDArray[Any]) -> None:
        """Set the row of a known vertex, or append the row of the next."""
        if v == len(self._buffer):
            self._buffer = grow_array(self._buffer, max(2 * v, 16))
        self._used = max(self._used, v + 1)
        self._buffer[v] = row

    def is_placed(self, v: int) -> bool:
        """Tell whether a vertex has a row that is not zero."""
        return v < self._used and bool(self._buffer[v].any())

    def placed_rows(self, vertices: Sequence[int]) -> NDArray[np.float32]:
        """Return the rows of the given vertices that are placed."""
        rows = self.rows[np.asarray(vertices, np.int64)]
        return rows[rows.any(axis=1)]

    def mean_row(self, vertices: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean row of the given vertices that are placed; zero if none is."""
        rows = self.placed_rows(vertices)
        return rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1], np.float32)

    def read_only(self) -> NDArray[np.float32]:
        """Return all rows in use as a read-only view."""
        view = self.rows
        view.flags.writeable = False
        return view


def check_arrival(v: int, neighbors: Sequence[int], known: int) -> None:
    """Check that a vertex is known or the next, and that its neighbors are known."""
    if not 0 <= v <= known:
        raise InvalidValueError.of("v", f"a known vertex or the next, {known}", v)
    if len(neighbors) and not 0 <= min(neighbors) <= max(neighbors) < known:
        raise InvalidValueError.of("neighbors", f"known vertices, 0 to {known - 1}", list(neighbors))


def add_arrival_edges(adjacency: Adjacency, v: int, neighbors: Sequence[int]) -> None:
    """Add the edges of an arriving vertex."""
    adjacency.ensure_rows(v + 1)
    add_edges(adjacency, np.column_stack([np.full(len(neighbors), v), neighbors]), np.ones(len(neighbors)))
