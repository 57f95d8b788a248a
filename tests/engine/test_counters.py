"""Counters of an engine, and when an anchor or a start is due."""

from __future__ import annotations

import logging
from math import inf

import pytest

from ripplevec.engine.counters import COUNTERS, EngineCounters
from ripplevec.rules.anchor import CorrectionError


class Counters(EngineCounters):
    """Counters with sizes that a test sets."""

    def __init__(self, *, anchor_growth: float = 0.1, start_size: int = 10, ready: bool = True) -> None:
        self.anchor_growth, self.start_size = anchor_growth, start_size
        self.vertex_count, self.edge_count, self.connected = 0, 0, 0
        self.is_ready = ready
        self.reset_counters()

    def __len__(self) -> int:
        return self.vertex_count

    @property
    def edges(self) -> int:
        return self.edge_count

    @property
    def ready(self) -> bool:
        return self.is_ready

    def count_connected(self) -> int:
        return self.connected

    def set_sizes(self, vertices: int, edges: int) -> None:
        self.vertex_count, self.edge_count, self.connected = vertices, edges, vertices

    def apply(self, *, events: int = 0, edges: int = 0, changes: int = 0, shortened: int = 0) -> bool:
        """Count a batch, as an engine does; return whether an anchor is due."""
        return self._record_batch(events, edges, changes, shortened)

    def anchor(self) -> None:
        """Count an anchor, as an engine does."""
        self._record_anchor()
        self._record_size()

    def refuse_anchor(self, reason: str) -> int:
        """Count a refused anchor, as an engine does; return the number of moved rows."""
        return self._record_refused_anchor(CorrectionError(reason)).size


@pytest.fixture
def counters() -> Counters:
    """Counters right after an anchor of 100 vertices and 200 edges."""
    made = Counters()
    made.set_sizes(100, 200)
    made.anchor()
    return made


def test_counters_after_reset_are_zero_and_in_saved_order() -> None:
    assert list(Counters().counters()) == list(COUNTERS)
    assert set(Counters().counters().values()) == {0}


def test_apply_adds_to_the_counters(counters: Counters) -> None:
    assert not counters.apply(events=3, edges=2, changes=5, shortened=1)
    counted = counters.counters()
    assert (counted["sequence"], counted["events"], counted["edge_events"], counted["changes"]) == (1, 3, 2, 5)
    assert (counted["rows_shortened"], counted["anchors"]) == (1, 1)


@pytest.mark.parametrize(("vertices", "edge_events", "growth"), [(105, 0, 0.05), (100, 80, 0.2), (110, 20, 0.1)])
def test_growth_is_the_larger_of_vertices_and_half_of_edges(
    counters: Counters, vertices: int, edge_events: int, growth: float
) -> None:
    counters.set_sizes(vertices, 200)
    counters.edge_events = edge_events
    assert counters.growth == pytest.approx(growth)


def test_growth_counts_a_shortened_row_like_a_vertex_from_the_next_batch_on(counters: Counters) -> None:
    assert not counters.apply(events=1, edges=0, changes=10, shortened=10)
    assert counters.growth == pytest.approx(0.1)
    assert counters.apply(events=1, edges=0, changes=0, shortened=0)


def test_apply_beyond_the_growth_makes_an_anchor_due(counters: Counters) -> None:
    assert not counters.apply(events=39, edges=39, changes=0, shortened=0)
    assert counters.apply(events=1, edges=1, changes=0, shortened=0)


def test_apply_without_anchors_is_never_due_and_has_unlimited_slack() -> None:
    counters = Counters(anchor_growth=0)
    counters.set_sizes(10**6, 10**6)
    assert not counters.apply(events=1, edges=10**6, changes=0, shortened=0)
    assert counters.growth_slack == inf


def test_growth_slack_bounds_the_growth_without_an_anchor(counters: Counters) -> None:
    counters.apply(events=20, edges=20, changes=0, shortened=0)
    assert counters.growth_slack == pytest.approx(0.05 * 100)
    within = int(counters.growth_slack) - 1
    assert not counters.may_exceed_growth(within, within)


@pytest.mark.parametrize(("vertices", "edges", "due"), [(9, 0, False), (10, 0, True), (0, 39, False), (0, 40, True)])
def test_may_exceed_growth_bounds_the_growth(counters: Counters, vertices: int, edges: int, due: bool) -> None:
    assert counters.may_exceed_growth(vertices, edges) == due


@pytest.mark.parametrize("anchor_growth", [0, 0.1])
def test_start_is_due_at_the_start_size_whether_or_not_there_are_anchors(anchor_growth: float) -> None:
    counters = Counters(anchor_growth=anchor_growth, start_size=10, ready=False)
    counters.set_sizes(9, 20)
    assert not counters.apply(events=20, edges=20, changes=0, shortened=0)
    assert counters.may_exceed_growth(1, 1)
    counters.set_sizes(10, 21)
    assert counters.apply(events=1, edges=1, changes=0, shortened=0)


def test_record_size_resets_the_counters_since_the_anchor(counters: Counters) -> None:
    counters.apply(events=20, edges=20, changes=0, shortened=2)
    counters.set_sizes(105, 220)
    counters.anchor()
    assert (counters.growth, counters.growth_slack) == (0, 0)
    assert (counters.vertices_at_anchor, counters.edges_at_anchor) == (105, 220)
    assert (counters.edge_events, counters.rows_shortened, counters.events) == (0, 0, 20)


def test_refused_anchors_are_logged_and_counted_until_one_succeeds(
    counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert counters.refuse_anchor("not finite") == 0
    assert counters.anchors_refused == 2
    assert caplog.messages[0] == "anchor refused, vectors kept: sequence=0 reason=not finite"
    counters.anchor()
    assert (counters.anchors_refused, counters.anchors) == (0, 2)
