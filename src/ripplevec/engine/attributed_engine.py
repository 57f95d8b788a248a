"""The engine of a model with attributes: vectors are an edge part and an attribute part, side by side.

The edge part is that of `Engine`, with fewer dimensions. Nothing in it depends on attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes.state_check import check_attributes
from ripplevec.attributes.store import AttributeStore, select_attribute_arrays
from ripplevec.batch import AttributeRows, Batch, IdColumn, concat_ids
from ripplevec.engine.attributed_reads import PREFIX, AttributedReads, LocalAttributedReads
from ripplevec.engine.digest import compute_digest
from ripplevec.engine.engine import Engine
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta, strip_prefix
from ripplevec.views.base import Progress


class AttributeUpdates(AttributedReads):
    """Updates of attributes by a batch, on one machine or on shards."""

    def _follow_batch(self, batch: Batch, moved: RowArray) -> RowArray:
        named = np.unique(self.find_rows(concat_ids(batch.src, batch.dst)))
        all_moved = np.union1d(moved, self._set_attributes(named[named >= 0], batch.attributes))
        self.changes += all_moved.size - moved.size
        return all_moved

    def _set_attributes(self, named: RowArray, attributes: AttributeRows | None) -> RowArray:
        rows = np.empty(0, np.int64) if attributes is None else self.rows_of(attributes.ids)
        return self.attributes.update(named, rows, attributes)


class AttributedEngine(AttributeUpdates, LocalAttributedReads, Engine):
    """State of a model with attributes."""

    def __init__(self, *arguments: Any, columns: int, weight: float, seed: int, keep: bool, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.attribute_weight = weight
        self.attribute_dim = columns
        self.attributes = AttributeStore(self.graph, columns, seed, keep=keep)

    # ------------------------------------------------------------------ updates

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and compute its embedding."""
        super().start(batch, progress)
        self.attributes.grow()
        if batch.attributes is not None:
            self.attributes.set_start(self.rows_of(batch.attributes.ids), batch.attributes)

    def _follow_arrival(self, ids: IdColumn, attributes: AttributeRows | None) -> None:
        self._set_attributes(np.unique(self.find_rows(ids)), attributes)

    def _follow_delta(self, delta: GraphDelta) -> GraphDelta:
        if delta.vacated_rows.size:
            self.attributes.clear(delta.vacated_rows)
        return super()._follow_delta(delta)

    def anchor(self) -> RowArray:
        """Correct all vectors now; return the moved rows."""
        moved = super().anchor() if self.edges else np.empty(0, np.int64)
        self.attributes.grow()
        rows = self.rows_by_arrival()
        before = self._read_parts(rows)
        self.attributes.relearn()
        return np.union1d(moved, rows[self._find_moved_parts(before, self._read_parts(rows), self.change_threshold)])

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
