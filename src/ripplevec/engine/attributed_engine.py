"""The engine of a model with attributes: vectors are an edge part and an attribute part, side by side.

The edge part is that of `Engine`, with fewer dimensions. Nothing in it depends on attributes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes.state_check import check_attributes
from ripplevec.attributes.store import (
    LEARN_AT_ONCE,
    AttributeSettings,
    AttributeStore,
    WeightChooser,
    select_attribute_arrays,
)
from ripplevec.attributes.weight_choice import choose_weight
from ripplevec.batch import AttributeRows, Batch, IdColumn, concat_ids
from ripplevec.engine.attributed_reads import PREFIX, AttributedReads, LocalAttributedReads
from ripplevec.engine.correction_schedule import CorrectionSchedule
from ripplevec.engine.digest import HashedArray
from ripplevec.engine.engine import Engine
from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.graph.graph import GraphDelta, strip_prefix
from ripplevec.rules.ripple import RippleRule
from ripplevec.views.base import Progress
from ripplevec.views.view_choice import SharedEmbedding


class AttributeUpdates(AttributedReads, CorrectionSchedule):
    """Updates of attributes by a batch, on one machine or on shards."""

    _has_begun = False  # whether the start was computed in this batch

    def _correct(self) -> RowArray:
        self._has_begun = not self.ready
        return super()._correct()

    def _anchor_in_batch(self) -> RowArray:
        moved = super()._anchor_in_batch() if self.edges else np.empty(0, np.int64)
        self.attributes.grow()
        rows = self.rows_by_arrival()
        before = self._read_parts(rows)
        self.attributes.relearn()
        return np.union1d(moved, rows[self._find_moved_parts(before, self._read_parts(rows), self.change_threshold)])

    def _follow_batch(self, batch: Batch, moved: RowArray) -> RowArray:
        named = np.unique(self.find_rows(concat_ids(batch.src, batch.dst)))
        all_moved = np.union1d(moved, self._set_attributes(named[named >= 0], batch.attributes))
        if self._has_begun:
            all_moved = np.union1d(all_moved, self._choose_weight())
        self.changes += all_moved.size - moved.size
        return all_moved

    def _set_attributes(self, named: RowArray, attributes: AttributeRows | None) -> RowArray:
        rows = np.empty(0, np.int64) if attributes is None else self.rows_of(attributes.ids)
        return self.attributes.update(named, rows, attributes)

    def _choose_weight(self) -> RowArray:
        """Choose the weight of attribute parts if it is still to be chosen; return the rows that this moved."""
        self._has_begun = False
        if not self.ready or not self.attributes.choose_weight(self._weight_chooser):
            return np.empty(0, np.int64)
        rows = self.rows_by_arrival()
        return rows[self.placed(rows)]

    @property
    def _weight_chooser(self) -> WeightChooser:
        return partial(choose_weight, self._embed_edges)

    def _embed_edges(self, adjacency: Adjacency) -> NDArray[np.float32]:
        """Return the edge parts that the views of this model give to the rows of a graph."""
        rule = cast(RippleRule, self.rule)
        return SharedEmbedding(adjacency, rule.threads).embed(rule.coordinates.new_like())


class AttributedEngine(AttributeUpdates, LocalAttributedReads, Engine):
    """State of a model with attributes."""

    def __init__(self, *arguments: Any, settings: AttributeSettings, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.attribute_dim = settings.columns
        self.attributes = AttributeStore(self.graph, settings)

    # ------------------------------------------------------------------ updates

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and compute its embedding."""
        super().start(batch, progress)
        self.attributes.grow()
        if batch.attributes is not None:
            choose = self._weight_chooser if self.ready else None
            self.attributes.set_start(self.rows_of(batch.attributes.ids), batch.attributes, choose)

    def _follow_arrival(self, ids: IdColumn, attributes: AttributeRows | None) -> RowArray:
        return self._set_attributes(np.unique(self.find_rows(ids)), attributes)

    def _follow_delta(self, delta: GraphDelta) -> GraphDelta:
        if delta.vacated_rows.size:
            self.attributes.clear(delta.vacated_rows)
        return super()._follow_delta(delta)

    def anchor(self) -> RowArray:
        """Correct all vectors now, and choose the weight if it is still to be chosen; return the moved rows."""
        return np.union1d(self._anchor_in_batch(), self._choose_weight())

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
        check_attributes(saved, len(state["placed"]), columns, kept_from=LEARN_AT_ONCE * columns)
        super().restore(state)
        self.attributes = AttributeStore(self.graph, self.attributes.settings)
        self.attributes.restore(saved)

    def attribute_digest_arrays(self) -> dict[str, NDArray[Any] | HashedArray]:
        """Return the arrays of attributes that enter the digest."""
        return {**select_attribute_arrays(self.attributes.state(), self.rows_by_arrival())}
