"""What every streaming baseline can do, and what they share: rows that grow, a graph that grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import Adjacency, grow_array
from ripplevec.lab.baselines.base import add_edges


class StreamingBaseline(Protocol):
    """A method that keeps vectors while vertices arrive; vertices are rows, numbered in order of arrival.

    Its settings are the fields of a dataclass, `dim` and `seed` among them.
    """

    def __init__(self, **settings: Any) -> None: ...

    def start(self, graph: csr_array, /) -> None:
        """Begin anew with a symmetric matrix of weights."""

    def place(self, neighbors: Sequence[int], /) -> NDArray[np.float32]:
        """What a newcomer with these neighbors would be given, before anything is learned from it."""

    def arrive(self, v: int, neighbors: Sequence[int], /) -> NDArray[np.float32]:
        """Take in the next vertex with its edges, or further edges of a known one; its vector."""

    def vectors(self) -> NDArray[np.float32]:
        """All vectors as they are, not to be written to; zero where nothing is known yet."""


class Rows:
    """Vectors, one per vertex, that more are added to."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._room = np.array(rows, np.float32)
        self._used = len(rows)

    def __len__(self) -> int:
        return self._used

    @property
    def view(self) -> NDArray[np.float32]:
        """All rows in use."""
        return self._room[: self._used]

    def put(self, v: int, row: NDArray[Any]) -> None:
        """Set a row, of a known vertex or of the next."""
        if v == len(self._room):
            self._room = grow_array(self._room, max(2 * v, 16))
        self._used = max(self._used, v + 1)
        self._room[v] = row

    def placed(self, vertices: Sequence[int]) -> NDArray[np.float32]:
        """The rows of those of these vertices that have one."""
        rows = self.view[np.asarray(vertices, np.int64)]
        return rows[rows.any(axis=1)]

    def mean(self, vertices: Sequence[int]) -> NDArray[np.float32]:
        """The mean of the rows of those that have one; zero where none has."""
        rows = self.placed(vertices)
        return rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1], np.float32)

    def reading(self) -> NDArray[np.float32]:
        """All rows in use, for others to look at."""
        shown = self.view
        shown.flags.writeable = False
        return shown


def check_arrival(v: int, neighbors: Sequence[int], known: int) -> None:
    """Refuse a vertex that is neither known nor next, and neighbors that are not known."""
    if not 0 <= v <= known:
        raise InvalidValueError.of("v", f"a known vertex or the next, {known}", v)
    if len(neighbors) and not 0 <= min(neighbors) <= max(neighbors) < known:
        raise InvalidValueError.of("neighbors", f"known vertices, 0 to {known - 1}", list(neighbors))


def link(adjacency: Adjacency, v: int, neighbors: Sequence[int]) -> None:
    """Add the edges of an arrival."""
    adjacency.ensure_rows(v + 1)
    add_edges(adjacency, np.column_stack([np.full(len(neighbors), v), neighbors]), np.ones(len(neighbors)))
