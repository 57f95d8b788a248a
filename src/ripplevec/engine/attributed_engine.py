"""The engine of a model with attributes: vectors are an edge part and an attribute part, side by side.

The edge part is that of `Engine`, with fewer dimensions. Nothing in it depends on attributes. A served vector is
[edge part | weight × attribute part], each part scaled to length one, and the whole as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes._kernels import OWN, join_rows
from ripplevec.attributes.state_check import check_attributes
from ripplevec.attributes.store import NONE, AttributeStore, select_attribute_arrays
from ripplevec.batch import AttributeRows, Batch, IdColumn, concat_ids
from ripplevec.changes import Changes
from ripplevec.engine.digest import compute_digest
from ripplevec.engine.engine import Engine
from ripplevec.engine.reads import Search, VertexInfo
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta, strip_prefix
from ripplevec.search import exact
from ripplevec.util.numba_intrinsics import widen_half
from ripplevec.views._kernels import ViewScaling, scale_to_unit
from ripplevec.views.base import Progress

PREFIX = "attributes_"
"""Beginning of the names of saved arrays."""


class AttributedEngine(Engine):
    """State of a model with attributes."""

    def __init__(self, *arguments: Any, columns: int, weight: float, seed: int, keep: bool, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.attribute_weight = weight
        self.attribute_dim = columns
        self.attributes = AttributeStore(self.graph, columns, seed, keep=keep)

    # ------------------------------------------------------------------ updates

    def check_attributes(self, attributes: AttributeRows | None) -> None:
        """Raise `InvalidValueError` if attributes are not of the kind or the width of earlier ones."""
        if attributes is not None:
            self.attributes.projection.check(attributes)

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and compute its embedding."""
        super().start(batch, progress)
        self.attributes.grow()
        if batch.attributes is not None:
            self.attributes.set_start(self.rows_of(batch.attributes.ids), batch.attributes)

    def _follow_batch(self, batch: Batch, moved: RowArray) -> RowArray:
        named = np.unique(self.find_rows(concat_ids(batch.src, batch.dst)))
        all_moved = np.union1d(moved, self._set_attributes(named[named >= 0], batch.attributes))
        self.changes += all_moved.size - moved.size
        return all_moved

    def _follow_arrival(self, ids: IdColumn, attributes: AttributeRows | None) -> None:
        self._set_attributes(np.unique(self.find_rows(ids)), attributes)

    def _set_attributes(self, named: RowArray, attributes: AttributeRows | None) -> RowArray:
        rows = np.empty(0, np.int64) if attributes is None else self.rows_of(attributes.ids)
        return self.attributes.update(named, rows, attributes)

    def _follow_delta(self, delta: GraphDelta) -> GraphDelta:
        if delta.vacated_rows.size:
            self.attributes.clear(delta.vacated_rows)
        return super()._follow_delta(delta)

    def anchor(self) -> RowArray:
        """Correct all vectors now; return the moved rows."""
        moved = super().anchor() if self.edges else np.empty(0, np.int64)
        self.attributes.grow()
        before, rows = self.attributes.parts[: self.graph.row_count].copy(), self.rows_by_arrival()
        self.attributes.relearn()
        no_edges = np.zeros((rows.size, 0), np.float32)
        change = self._join(no_edges, before[rows]) - self._join(no_edges, self.attributes.parts[rows])
        return np.union1d(moved, rows[np.linalg.norm(change, axis=1) >= max(self.change_threshold, 1e-12)])

    def clone(self) -> Engine:
        """Return an engine in the same state that shares no mutable data with this one."""
        other = super().clone()
        assert isinstance(other, AttributedEngine)
        other.attributes = self.attributes.copy(other.graph)
        return other

    # ------------------------------------------------------------------ saving

    def _copy_arrays(self) -> dict[str, NDArray[Any]]:
        saved = {f"{PREFIX}{name}": array for name, array in self.attributes.state().items()}
        return super()._copy_arrays() | saved

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state by arrays that `state` returned, after checking them."""
        saved, columns = strip_prefix(PREFIX, state), self.attributes.columns
        check_attributes(saved, len(state["placed"]), columns)
        super().restore(state)
        store = self.attributes
        self.attributes = AttributeStore(self.graph, columns, store.projection.seed, keep=store.keep)
        self.attributes.restore(saved)

    def digest(self) -> str:
        """Return a hash of graph, vectors, attributes, coordinates and counters."""
        progress = None if self.correction is None else self.correction.progress()
        attributes = select_attribute_arrays(self.attributes.state(), self.rows_by_arrival())
        return compute_digest(self, self.rule.state() | self.aging_arrays() | attributes, self.counters(), progress)

    # ------------------------------------------------------------------ reads

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return super().dim + self.attributes.columns

    def placed(self, rows: RowArray) -> NDArray[np.bool_]:
        """Return which rows have a vector."""
        return super().placed(rows) | (self.attributes.status[rows] != NONE)

    def vertex_info(self, row: int) -> VertexInfo:
        """Return the properties of one vertex."""
        info = super().vertex_info(row)
        return info._replace(placed=info.placed or bool(self.attributes.status[row] != NONE))

    def sizes(self) -> dict[str, int]:
        """Return counts and bytes."""
        sizes, rows = super().sizes(), self.graph.row_count
        missing = (self.graph.arrival[:rows] >= 0) & (self.store.placed[:rows] == 0)
        missing &= self.attributes.status[:rows] == NONE
        return sizes | {"unplaced": int(np.count_nonzero(missing)), "bytes": sizes["bytes"] + self.attributes.nbytes}

    def diagnostics(self) -> dict[str, Any]:
        """Return sizes, counters and quality measures."""
        store = self.attributes
        return super().diagnostics() | {"attributed": store.rows, "attribute_names": store.projection.size}

    def get_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows as users see them."""
        return self._join(super().get_vectors(rows), self.attributes.parts[rows])

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of one row as users see it."""
        return self._join(super().get_vector(row)[None], self.attributes.parts[row : row + 1])[0]

    def unit_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows, scaled to length one and not rotated."""
        return self._join(super().unit_vectors(rows), self.attributes.parts[rows])

    def copy_vectors(self, rows: RowArray) -> tuple[Any, Callable[[Any], NDArray[np.float32]]]:
        """Return a copy of the stored vectors of rows, and the function that converts it to served vectors."""
        stored, to_served = super().copy_vectors(rows)
        return (stored, self.attributes.parts[rows]), partial(_serve_copy, to_served, self.attribute_weight)

    def empty_changes(self, sequence: int) -> Changes:
        """Build the empty changes of a batch that had already been applied under this sequence number."""
        no_rows = np.empty(0, np.int64)
        return Changes(no_rows, *self.copy_vectors(no_rows), np.empty(0, np.bool_), [], sequence, False)

    def preview(
        self, rows: RowArray, weights: NDArray[np.float32], attributes: AttributeRows | None = None
    ) -> NDArray[np.float32]:
        """Return the vector of a new vertex with edges to these rows, and with these attributes."""
        part = self.attributes.preview(rows, weights, attributes)
        return self._join(super().preview(rows, weights)[None], part[None])[0]

    def nearest(
        self, search: Search, like: int | NDArray[np.float64], count: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a row (itself excluded) or with a vector, highest first.

        The search is exact.
        """
        del search  # the index of a model without attributes
        middle = super().dim
        if isinstance(like, int):
            query, exclude = self.unit_vectors(np.array([like]))[0].astype(np.float64), like
        else:
            query, exclude = np.concatenate([self.rule.to_internal(like[:middle]), like[middle:]]), -1
        rows = slice(self.graph.row_count)
        alive = (self.store.placed[rows] == 1) | (self.attributes.status[rows] != NONE)
        scaling = ViewScaling(np.array([0, middle, self.dim]), np.array([1.0, self.attribute_weight]), np.ones(2))
        found, cosines = exact.nearest(
            JoinedRows(self),  # type: ignore[arg-type]  # read block by block
            alive,
            query[None],
            scaling,
            min(count, max(len(self), 1)),
            np.array([exclude]),
            self.graph.threads,
        )
        kept = found[0] >= 0
        return found[0][kept], cosines[0][kept]

    def nearest_by_attributes(
        self, like: int | AttributeRows, count: int, among: RowArray | None = None
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows whose attribute parts have the highest cosine with that of a row or of given attributes."""
        store = self.attributes
        rows = np.arange(self.graph.row_count) if among is None else among
        alive = store.status[rows] == OWN
        if isinstance(like, int):
            part, alive = store.parts[like].astype(np.float64), alive & (rows != like)
        else:
            part = store.preview(np.empty(0, np.int64), np.empty(0, np.float32), like).astype(np.float64)
        scaling = ViewScaling(np.array([0, store.columns]), np.ones(1), np.ones(1))
        found, cosines = exact.nearest(
            store.parts[rows], alive, part[None], scaling, min(count, max(rows.size, 1)), threads=self.graph.threads
        )
        kept = found[0] >= 0
        return rows[found[0][kept]], cosines[0][kept]

    def _join(self, edge: NDArray[np.float32], parts: NDArray[np.float32]) -> NDArray[np.float32]:
        return _join(edge, parts, self.attribute_weight)


class JoinedRows:
    """Edge parts and attribute parts of all rows side by side, read block by block. For a search."""

    def __init__(self, engine: AttributedEngine) -> None:
        self._store, self._scaling, self._parts = engine.store, engine.rule.scaling, engine.attributes.parts
        self.shape, self.ndim = (engine.graph.row_count, engine.dim), 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        """Return some rows: their edge parts have length one."""
        stored, parts = widen_half(self._store.vectors[rows]), self._parts[rows]
        joined = np.empty((len(parts), self.shape[1]), np.float32)
        middle = stored.shape[1]
        units = np.empty(stored.shape, np.float32)
        scale_to_unit(stored, self._scaling, units)
        joined[:, :middle], joined[:, middle:] = units, parts
        return joined


def _join(edge: NDArray[np.float32], parts: NDArray[np.float32], weight: float) -> NDArray[np.float32]:
    joined = np.empty((len(edge), edge.shape[1] + parts.shape[1]), np.float32)
    join_rows(np.ascontiguousarray(edge), np.ascontiguousarray(parts), weight, joined)
    return joined


def _serve_copy(
    to_served: Callable[[Any], NDArray[np.float32]], weight: float, copied: tuple[Any, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Convert a copy of the two parts of rows to served vectors."""
    return _join(to_served(copied[0]), copied[1], weight)
