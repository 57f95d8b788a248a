"""What an engine counts: batches, events, changes, and how far the graph has come since the last anchor."""

from __future__ import annotations

import logging
from math import inf

import numpy as np
from numpy.typing import NDArray

from ripplevec.rules.anchor import CorrectionError

_log = logging.getLogger("ripplevec.engine.engine")

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
"""The numbers an engine keeps, in the order in which they are saved."""


class EngineCounters:
    """The counters of an engine, and what follows from them."""

    anchor_growth: float
    start_size: int

    def reset_counters(self) -> None:
        """Nothing has happened yet."""
        self.sequence = self.events = self.changes = self.anchors = 0
        self.vertices_at_anchor = self.edges_at_anchor = self.edge_events = 0  # at and since the last anchor
        self.rows_shortened = 0  # rows scaled back to the bound since the last anchor
        self.anchors_refused = 0  # anchors in a row, up to now, whose result could not be used
        self.growth_slack = 0.0  # fewer vertices and edges than this surely make no anchor due; 0 where that is not known

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def edges(self) -> int:
        """How many edges there are."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether there has been a start."""
        raise NotImplementedError

    def count_connected(self) -> int:
        """How many vertices have edges."""
        raise NotImplementedError

    @property
    def growth(self) -> float:
        """By how much the graph has grown or changed since the last anchor: by vertices, or by half of its edges.

        A row that had to be shortened counts like a vertex that arrived: there the local steps have lost their way.
        """
        return self._growth(len(self), self.edge_events)

    def _growth(self, vertices: int, edges: int) -> float:
        by_vertices = (vertices + self.rows_shortened) / max(self.vertices_at_anchor, 1) - 1
        return max(by_vertices, edges / (2 * max(self.edges_at_anchor, 1)))

    def may_exceed_growth(self, vertices: int, edges: int) -> bool:
        """Whether an anchor, or the start, may be due after at most so many vertices and changes of edges."""
        if not self.ready:
            enough = 2 * (self.edges + edges) >= self.start_size
            return enough and self.count_connected() + 2 * edges >= self.start_size
        growth = self._growth(len(self) + vertices, self.edge_events + edges)
        return self.anchor_growth > 0 and growth >= self.anchor_growth

    def counters(self) -> dict[str, int]:
        """All of them by name."""
        return {name: getattr(self, name) for name in COUNTERS}

    def _count(self, events: int, edges: int, changes: int, shortened: int) -> bool:
        """Note that a batch has been applied; whether an anchor is due."""
        self.sequence += 1
        self.events += events
        self.edge_events += edges
        self.changes += changes
        if not self.ready:  # the start of a model that began empty comes whether or not there are anchors
            return 2 * self.edges >= self.start_size and self.count_connected() >= self.start_size
        due = self.anchor_growth > 0 and self.growth >= self.anchor_growth
        self.rows_shortened += shortened  # counts from the next batch on: before a batch nobody knows how many there will be
        room = self.anchor_growth - self.growth
        self.growth_slack = room * min(self.vertices_at_anchor, 2 * self.edges_at_anchor) if self.anchor_growth else inf
        return due

    def _note_anchor(self) -> None:
        self.anchors, self.anchors_refused = self.anchors + 1, 0

    def _refuse(self, error: CorrectionError) -> NDArray[np.int64]:
        """Go on with the vectors as they are, after an anchor that came to nothing; the rows that it moved: none."""
        self.anchors_refused += 1
        _log.error("correction refused, vectors kept: sequence=%d reason=%s", self.sequence, error)
        return np.empty(0, np.int64)

    def _note_size(self) -> None:
        self.vertices_at_anchor, self.edges_at_anchor, self.edge_events, self.rows_shortened = len(self), self.edges, 0, 0
        self.growth_slack = 0.0
