"""Counters of an engine: batches, events, changes, and the growth of the graph since the last anchor."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import WeightScale
from ripplevec.rules.anchor import CorrectionError

_log = logging.getLogger("ripplevec.engine")

COUNTERS = (
    "sequence",
    "events",
    "changes",
    "anchors",
    "vertices_at_anchor",
    "edges_at_anchor",
    "edge_events",
    "rows_shortened",
    "anchors_refused",
)
"""Names of the counters, in the order in which they are saved."""


class EngineCounters:
    """Counters of an engine, and the decision whether an anchor is due."""

    anchor_growth: float
    start_size: int

    def reset_counters(self) -> None:
        """Set all counters to zero."""
        self.sequence = self.events = self.changes = self.anchors = 0
        self.vertices_at_anchor = self.edges_at_anchor = 0  # size of the graph at the last anchor
        self.edge_events = 0  # edges changed since the last anchor
        self.rows_shortened = 0  # since the last anchor: rows scaled back to the length bound
        self.anchors_refused = 0  # consecutive anchors that found no usable vectors
        self.growth_slack = 0.0  # fewer new vertices and edges than this cannot make an anchor due; 0: not known

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def edges(self) -> int:
        """Number of edges."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether the start has been computed."""
        raise NotImplementedError

    @property
    def weight_scale(self) -> WeightScale:
        """Scale of the stored weights; weights that do not decay are stored as they are."""
        return WeightScale()

    def count_connected(self) -> int:
        """Return the number of vertices that have edges."""
        raise NotImplementedError

    @property
    def growth(self) -> float:
        """Growth of the graph since the last anchor: the share of new vertices, or half that of changed edges.

        The larger share is used. Both are relative to the size at the last anchor. A shortened row counts like a new
        vertex: its local updates have become inaccurate.
        """
        return self._growth(len(self), self.edge_events)

    def _growth(self, vertices: int, edges: int) -> float:
        by_vertices = (vertices + self.rows_shortened) / max(self.vertices_at_anchor, 1) - 1
        return max(by_vertices, edges / (2 * max(self.edges_at_anchor, 1)))

    def may_exceed_growth(self, vertices: int, edges: int) -> bool:
        """Return whether an anchor, or the start, may be due after up to this many new vertices and changed edges."""
        if not self.ready:
            enough = 2 * (self.edges + edges) >= self.start_size
            return enough and self.count_connected() + 2 * edges >= self.start_size
        growth = self._growth(len(self) + vertices, self.edge_events + edges)
        return self.anchor_growth > 0 and growth >= self.due_growth

    @property
    def anchor_interval(self) -> float:
        """Growth of the graph from one anchor to the next."""
        return self.anchor_growth

    @property
    def due_growth(self) -> float:
        """Growth of the graph since the last anchor at which the next one must begin."""
        return self.anchor_interval

    @property
    def announced_anchors(self) -> int:
        """Number of anchors whose vectors are all served."""
        return self.anchors

    def counters(self) -> dict[str, int]:
        """Return the counters by name."""
        return {name: getattr(self, name) for name in COUNTERS}

    def restore_counters(self, saved: NDArray[np.int64]) -> None:
        """Set the counters to saved ones, in the order of `COUNTERS`."""
        for name, value in zip(COUNTERS, saved.tolist(), strict=True):
            setattr(self, name, value)

    def _record_batch(self, events: int, edges: int, changes: int, shortened: int) -> bool:
        """Count an applied batch; return whether an anchor is due."""
        self.sequence += 1
        self.events += events
        self.edge_events += edges
        self.changes += changes
        if not self.ready:  # a model that began empty gets its start even if anchors are off
            return 2 * self.edges >= self.start_size and self.count_connected() >= self.start_size
        if not self.anchor_growth:
            self.rows_shortened, self.growth_slack = self.rows_shortened + shortened, inf
            return False
        due_growth = self.due_growth
        due = self.growth >= due_growth
        self.rows_shortened += shortened  # only from the next batch on: `may_exceed_growth` cannot predict it
        self.growth_slack = (due_growth - self.growth) * min(self.vertices_at_anchor, 2 * self.edges_at_anchor)
        return due

    def _run_anchor(self, correct: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Correct all vectors and count the anchor, or that it was refused; return the rows that moved."""
        try:
            moved = correct()
        except CorrectionError as error:
            moved = self._record_refused_anchor(error)
        else:
            self._record_anchor()
        self._record_size()
        return moved

    def _record_anchor(self) -> None:
        self.anchors, self.anchors_refused = self.anchors + 1, 0

    def _record_refused_anchor(self, error: CorrectionError) -> NDArray[np.int64]:
        """Count an anchor that found no usable vectors; return the rows that it moved: none."""
        self.anchors_refused += 1
        _log.error("anchor refused, vectors kept: sequence=%d reason=%s", self.sequence, error)
        return np.empty(0, np.int64)

    def _record_size(self) -> None:
        """Count growth from the current size on, as after an anchor."""
        self.vertices_at_anchor = len(self)
        self.edges_at_anchor = int(min(self.edges, self.weight_scale.effective_edges))  # decayed ones count in part
        self.edge_events = self.rows_shortened = 0
        self.growth_slack = 0.0
