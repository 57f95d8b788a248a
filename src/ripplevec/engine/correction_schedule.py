"""The schedule of anchors: when a correction of all vectors begins, and what the stream pays for it with each batch."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ripplevec.batch import Batch
from ripplevec.engine.reads import EngineReads
from ripplevec.graph.adjacency import DUPLICATE_POLICIES, RowArray
from ripplevec.graph.batch_validation import bound_growth
from ripplevec.rules.anchor import CorrectionError
from ripplevec.rules.ripple import RippleRule

SMALL_GRAPH = 8_000
"""Vertices up to which the growth between two anchors does not depend on the size of the graph."""

INTERVAL_EXPONENT, MAX_INTERVAL = 0.8, 0.7
"""Of larger graphs, the growth between anchors increases with this power of the size, up to a maximum: from 200,000
vertices on, anchors cost at most about twice as much as the arrivals themselves. Communities of many vertices change
slowly (`benchmarks/anchor_interval.py`)."""

MAX_SPREAD = 0.1
"""Largest growth over which the cost of a gradual correction is spread. Over more growth, arrivals pay less at a time,
and the correction is less exact: over 0.1, about as exact as an immediate one (`benchmarks/anchor_spread.py`)."""

SPREAD_VERTICES = 40_000
"""The cost is spread over at most this share of the growth between two anchors: vertices / SPREAD_VERTICES, up to 1/2.
A smaller graph costs less to correct, and its corrections are complete sooner."""

NO_ROWS = np.empty(0, np.int64)


class CorrectionSchedule(EngineReads):
    """The schedule of anchors, the same for a model on one machine and on shards.

    A subclass implements the operations of a correction, at the end of this class.
    """

    gradual: bool  # whether the stream pays for anchors in small slices
    scale_interval: bool  # whether large graphs are corrected after more growth than small ones
    change_threshold: float  # distance by which a served vector has to move to be reported
    update_incomplete: bool  # whether an update has begun and not finished: the state must not be used

    @property
    def anchor_interval(self) -> float:
        """Growth of the graph from one anchor to the next."""
        if not self.scale_interval:
            return self.anchor_growth
        scale = max(1.0, self.vertices_at_anchor / SMALL_GRAPH) ** INTERVAL_EXPONENT
        return min(self.anchor_growth * scale, MAX_INTERVAL)

    @property
    def due_growth(self) -> float:
        """Growth of the graph since the last anchor at which the next one must begin, to be complete in time."""
        return self.anchor_interval - (self._correction_spread if self._is_gradual else 0.0)

    @property
    def _correction_spread(self) -> float:
        """Growth of the graph over which the cost of a gradual correction is spread."""
        return min(MAX_SPREAD, self.anchor_interval * min(0.5, max(self.vertices_at_anchor, 1) / SPREAD_VERTICES))

    @property
    def announced_anchors(self) -> int:
        """Number of anchors whose vectors are all served."""
        correction = self.correction  # read once: slices beside readers may end it
        return self.anchors - (correction is not None and correction.swapped)

    @property
    def _is_gradual(self) -> bool:
        return self.gradual and isinstance(self.rule, RippleRule)

    def anchor(self) -> RowArray:
        """Correct all vectors now, or compute the start of a model that began empty; return the moved rows."""
        return self._anchor_in_batch()

    def _may_exceed_interval(self, batch: Batch) -> bool:
        if self.ready and self._is_gradual:
            return False
        has_edges = self.has_edges if self.duplicate_policy == DUPLICATE_POLICIES["ignore"] else None
        vertices, edges = bound_growth(batch, self.find_rows, self.degrees, has_edges)
        return self.may_exceed_growth(vertices, edges + self._count_expiring(batch))

    def _correct_if_due(self, due: bool, moved: RowArray, first_new: int, batch_growth: float) -> RowArray:
        """Correct all vectors, or continue a gradual correction; return the rows that it moved.

        Slices are left to `continue_correction`, and what it has computed is published here. But a batch that pays for
        a whole correction computes it here: its result is a part of the batch.
        `batch_growth` is the growth of the graph by the batch, which may begin a correction and pay for a part of it.
        """
        if not (self._is_gradual and self.ready):
            return self._anchor_in_batch() if due else NO_ROWS
        if self.correction is not None:
            self._follow_moved(moved, first_new)
        elif due and self.edges:
            overdue = min(self.growth - self.due_growth, batch_growth)
            self.correction = self._begin_correction()
            if self.correction is None:
                return self._anchor_in_batch()
            self.correction.plan(self._row_count, self._correction_spread, self.growth - overdue)
        if self.correction is None:
            return NO_ROWS
        pays_for_all = self.growth - self.correction.paid_growth >= self._correction_spread
        if not (self.correction.can_publish or pays_for_all):
            return NO_ROWS
        if pays_for_all:
            return self._advance_correction(self.correction.earn_credit(self.growth))
        return self._publish_correction(self.correction)

    def continue_correction(self) -> None:
        """Compute the slices that the last batch has paid for. For the writer; readers may be active.

        Does nothing if these slices are already computed.
        """
        if self.correction is not None:
            self.update_incomplete = True
            self._advance_correction(self.correction.earn_credit(self.growth), hidden_only=True)
            self.update_incomplete = False

    def _advance_correction(self, credit: float, *, hidden_only: bool = False) -> RowArray:
        """Compute slices of the current correction worth this credit; return rows whose served vector moved.

        With `hidden_only`, nothing changes for readers: the next batch publishes what has been computed.
        """
        announced = [NO_ROWS]
        while (correction := self.correction) is not None:
            try:
                if credit > 0:
                    self._compute_slices(correction, credit)
            except CorrectionError as error:
                self._abandon_correction()
                self._record_size()
                return self._record_refused_anchor(error)
            if hidden_only or not correction.can_publish:
                break
            announced.append(self._publish_correction(correction))
            credit = correction.credit
        return np.concatenate(announced)

    def _publish_correction(self, correction: Any) -> RowArray:
        """Let readers see what a correction has computed; return the rows whose served vector moved."""
        was_swapped = correction.swapped
        announced = self._publish_slices(correction)
        if correction.swapped and not was_swapped:
            self._adopt_correction(correction)
            self._record_anchor()
            self._record_size()
            correction.paid_growth = 0.0
        if correction.finished:
            self.correction = None
        return announced

    def _end_correction(self) -> RowArray:
        """Stop the current correction; return the rows that are served from it only now."""
        correction = self.correction
        if correction is None:
            return NO_ROWS
        announced = self._advance_correction(inf) if correction.swapped else NO_ROWS
        self._abandon_correction()
        return announced

    def _abandon_correction(self) -> None:
        if self.correction is not None:
            self.correction.abandon()
            self.correction = None

    # ------------------------------------------------------------------ operations, by subclasses

    def _count_expiring(self, batch: Batch) -> int:
        """Return an upper bound of the number of edges that expire with a batch."""
        raise NotImplementedError

    @property
    def _row_count(self) -> int:
        """Number of rows that a correction processes."""
        raise NotImplementedError

    def _anchor_in_batch(self) -> RowArray:
        """Correct all vectors at once, or compute the start of a model that began empty; return the moved rows."""
        raise NotImplementedError

    def _correct(self) -> RowArray:
        """Correct all vectors, or compute the start; return the moved rows."""
        raise NotImplementedError

    def _begin_correction(self) -> Any:
        """Begin a gradual correction; return None if all vectors have to be corrected at once."""
        raise NotImplementedError

    def _follow_moved(self, moved: RowArray, first_new: int) -> None:
        """Let the correction follow a batch that has moved these rows."""
        raise NotImplementedError

    def _compute_slices(self, correction: Any, credit: float) -> None:
        """Compute slices for `_advance_correction`, which readers do not see."""
        raise NotImplementedError

    def _publish_slices(self, correction: Any) -> RowArray:
        """Let readers see the slices computed so far; return the rows whose served vector moved."""
        raise NotImplementedError

    def _adopt_correction(self, correction: Any) -> None:
        """Use the new coordinates of a correction, whose rows have replaced the old ones."""
        raise NotImplementedError
