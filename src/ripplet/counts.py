"""What an engine counts: batches, events, changes, and how far the graph has come since the last anchor."""

from __future__ import annotations

COUNTERS = ("sequence", "events", "changes", "anchors", "vertices_then", "edges_then", "edge_events")
"""The numbers an engine keeps, in the order in which they are saved."""


class Counts:
    """The counters of an engine, and what follows from them."""

    anchor_growth: float
    start_size: int

    def begin_counting(self) -> None:
        """Nothing has happened yet."""
        self.sequence = self.events = self.changes = self.anchors = 0
        self.vertices_then = self.edges_then = self.edge_events = 0  # at and since the last anchor

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

    def with_edges(self) -> int:
        """How many vertices have edges."""
        raise NotImplementedError

    @property
    def growth(self) -> float:
        """By how much the graph has grown or changed since the last anchor: by vertices, or by half of its edges."""
        vertices = len(self) / max(self.vertices_then, 1) - 1
        return max(vertices, self.edge_events / (2 * max(self.edges_then, 1)))

    def counters(self) -> dict[str, int]:
        """All of them by name."""
        return {name: getattr(self, name) for name in COUNTERS}

    def _count(self, events: int, edges: int, changes: int) -> bool:
        """Note that a batch has been applied; whether an anchor is due."""
        self.sequence += 1
        self.events += events
        self.edge_events += edges
        self.changes += changes
        if not self.ready:  # the start of a model that began empty comes whether or not there are anchors
            return 2 * self.edges >= self.start_size and self.with_edges() >= self.start_size
        return self.anchor_growth > 0 and self.growth >= self.anchor_growth

    def _note_size(self) -> None:
        self.vertices_then, self.edges_then, self.edge_events = len(self), self.edges, 0
