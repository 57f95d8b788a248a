"""The attribute parts of the vertices of a graph, or of one shard, and the attributes that are kept for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes.kept import KeptAttributes
from ripplevec.graph.graph import Graph
from ripplevec.util.growable_array import GrowableArray

NONE, DERIVED = 0, 2  # status of a vertex without this part, and of one that has it from its neighbors


class AttributeTable:
    """One part, one status and the kept attributes for each row of a graph."""

    def __init__(self, graph: Graph, columns: int) -> None:
        self.graph, self.columns = graph, columns
        self.kept = KeptAttributes()
        self._parts, self._status = GrowableArray(np.float32, (columns,)), GrowableArray(np.uint8)
        self.grow()

    @property
    def parts(self) -> NDArray[np.float32]:
        """The parts, one row for each row of the graph; zero for vertices without one."""
        return self._parts.array

    @property
    def status(self) -> NDArray[np.uint8]:
        """Origin of each part: NONE, OWN or DERIVED."""
        return self._status.array

    def column(self, attribute: str) -> NDArray[Any]:
        """Return the parts as "attribute_parts", or their status as "attribute_status"."""
        return self.parts if attribute == "attribute_parts" else self.status

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        return self.graph.row_count * (4 * self.columns + 1) + self.kept.nbytes

    def grow(self) -> None:
        """Grow to one part for every row of the graph."""
        capacity = self.graph.adjacency.capacity
        if capacity > len(self.status):
            self._parts.grow(capacity)
            self._status.grow(capacity)

    def count_unplaced(self, placed: NDArray[np.uint8]) -> int:
        """Return the number of vertices without any part of a vector; `placed` are those with an edge part."""
        rows = slice(self.graph.row_count)
        missing = (self.graph.arrival[rows] >= 0) & (placed[rows] == 0) & (self.status[rows] == NONE)
        return int(np.count_nonzero(missing))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays."""
        rows = self.graph.row_count
        self.grow()
        kept = self.kept.gather(np.arange(rows))
        return {
            "parts": self.parts[:rows].copy(),
            "status": self.status[:rows].copy(),
            **{f"kept_{name}": array for name, array in kept.items()},
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`, which `check_attributes` has checked."""
        self.grow()
        rows = len(state["status"])
        self.parts[:rows], self.status[:rows] = state["parts"], state["status"]
        self.kept = KeptAttributes()
        self.kept.set_all(np.arange(rows), state["kept_begin"], state["kept_columns"], state["kept_values"])
