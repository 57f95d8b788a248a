"""Storage of the vectors, in memory or in a file: one row for each row of the graph; and kernel arguments for it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._id_kernels import EncodedIds
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph, GraphDelta
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.util.growable_array import GrowableArray
from ripplevec.util.parallel import for_each_block
from ripplevec.views.coordinates import Coordinates

COPIED_ROWS_PER_TASK = 4_096


class Lineage:
    """Identity token shared by a vector store and its copies; a search index of one is valid for the others."""


class VectorStore:
    """Vectors by row, in memory or in a file; the placed flags are kept with the adjacency's data per vertex.

    Half-precision rows are float16 in `vectors`; kernels see the same memory as uint16 in `kernel_array`.
    """

    def __init__(self, graph: Graph, dim: int, dtype: Any, directory: str | PathLike[str] | None = None) -> None:
        self.graph, self._dim, self._dtype, self._directory = graph, dim, dtype, directory
        self.lineage = Lineage()
        self.replace_rows(self.new_rows())

    def new_rows(self, dtype: Any = None, columns: int | None = None) -> GrowableArray:
        """Return an empty array for rows, like this store's by default, in memory or in a file as these are."""
        return GrowableArray(dtype or self._dtype, (columns or self._dim,), directory=self._directory)

    def make_rows(self, rows: NDArray[Any]) -> GrowableArray:
        """Return a new array of the same type with a copy of these rows."""
        copied = self.new_rows()
        copied.grow(len(rows))[:] = rows
        return copied

    def grow(self) -> None:
        """Grow to one row for every row of the graph."""
        if len(self.vectors) < self.graph.adjacency.capacity:
            self.replace_rows(self._rows)

    def reserve(self, new_vertices: int, rows: GrowableArray | None = None) -> None:
        """Reserve file space for new vertices, so that a full disk fails before a batch is applied; no-op in memory."""
        if self._directory is not None:
            (self._rows if rows is None else rows).grow(self.graph.adjacency.capacity + new_vertices)

    def make_room(self, ids: EncodedIds) -> bool:
        """Make room for the arrival of the first id with edges to the others, in all arrays of graph and vectors.

        Returns False, with nothing changed, if the vectors are in a file: a batch reserves disk space before it begins.
        """
        if self._directory is not None:
            return False
        keys, ends, _ = ids
        self.graph.ids.reserve(len(keys), int(np.maximum(ends - keys, 0).sum()) if len(ends) else 0)
        self.graph.adjacency.reserve(self.graph.row_count + len(keys), edges=len(keys) - 1)
        self.grow()
        return True

    def replace_rows(self, rows: GrowableArray) -> None:
        """Use these rows from now on, grown to one for every row of the graph."""
        self._rows = rows
        self.vectors: NDArray[Any] = rows.grow(self.graph.adjacency.capacity)
        self.kernel_array = self.as_kernel_array(self.vectors)

    def exchange_rows(self, rows: GrowableArray) -> GrowableArray:
        """Use these rows from now on; return the ones used so far."""
        before = self._rows
        self.replace_rows(rows)
        return before

    @staticmethod
    def as_kernel_array(rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows in the form that kernels accept: half precision as uint16."""
        return rows.view(np.uint16) if rows.dtype == np.float16 else rows

    def empty_for(self, graph: Graph) -> VectorStore:
        """Return a store of the same type for another graph, all zero."""
        return VectorStore(graph, self._dim, self._dtype, self._directory)

    def copy(self, graph: Graph) -> VectorStore:
        """Return a copy of the vectors for a copy of the graph."""
        other = self.empty_for(graph)
        other.vectors[: graph.row_count] = self.vectors[: graph.row_count]
        other.lineage = self.lineage
        return other

    def copy_rows(self, rows: RowArray) -> NDArray[Any]:
        """Return a copy of the vectors of rows, made on the threads of the graph."""
        copied = np.empty((rows.size, self._dim), self._dtype)

        def copy_part(first: int, last: int) -> None:
            np.take(self.vectors, rows[first:last], axis=0, out=copied[first:last], mode="clip")  # "raise" is slower

        for_each_block(copy_part, rows.size, size=COPIED_ROWS_PER_TASK, threads=self.graph.threads)
        return copied

    @property
    def placed(self) -> NDArray[np.uint8]:
        """Flag per row: whether it has a vector."""
        return self.graph.adjacency.placed

    @property
    def seen(self) -> NDArray[np.int64]:
        """Stamp per row (2 · sequence number, or 1 less) of the last batch that reached it."""
        return self.graph.adjacency.seen

    def update_rows(self, action: Callable[[NDArray[Any], int, RowArray], None], row: int, others: RowArray) -> None:
        """Apply an action to the vectors of a row and of other rows: `action(vectors, row, others)`."""
        action(self.vectors, row, others)

    def apply_delta(self, delta: GraphDelta) -> GraphDelta:
        """Follow a change of the graph: add rows for new vertices and clear those of removed ones; return the delta."""
        self.grow()
        self.vectors[delta.arrived] = 0  # memory of an earlier correction
        if delta.vacated_rows.size:
            self.vectors[delta.vacated_rows] = 0
            self.placed[delta.vacated_rows] = 0
        return delta


class KernelStateCache:
    """Kernel arguments for rows in some coordinates, built again only when an array has been replaced."""

    def __init__(self) -> None:
        self._state: KernelState | None = None
        self._coordinates: Coordinates | None = None
        self._unit = 1.0  # unit of weights of the coefficients

    def clear(self) -> None:
        """Forget the state, which keeps arrays alive."""
        self._state = self._coordinates = None

    def get(self, store: VectorStore, coordinates: Coordinates, rows: NDArray[Any]) -> KernelState:
        """Return the kernel state of the graph, with these rows in these coordinates."""
        adjacency, state = store.graph.adjacency, self._state
        unit = adjacency.weight_scale.unit
        if (
            state is None
            or state.links is not adjacency.links
            or state.vectors is not rows
            or self._coordinates is not coordinates
        ):
            state = self._state = KernelState(
                adjacency.links,
                store.graph.arrival,
                store.placed,
                rows,
                coordinates.refresh_coefficients(np.float32, unit),
            )
            self._coordinates, self._unit = coordinates, unit
        elif self._unit != unit:
            coordinates.set_weight_unit(state.coefficients, unit)
            self._unit = unit
        return state
