"""Tests of the schedule of anchors."""

from __future__ import annotations

from typing import Any

import pytest

from ripplevec import Embedder
from ripplevec.engine.correction_schedule import MAX_INTERVAL, MAX_SPREAD, SMALL_GRAPH, CorrectionSchedule


def engine_of_size(vertices: int, **parameters: Any) -> CorrectionSchedule:
    engine = Embedder(dim=4, **parameters)._engine
    engine.vertices_at_anchor = vertices
    return engine


def test_interval_grows_with_the_graph_up_to_a_maximum() -> None:
    intervals = [engine_of_size(vertices).anchor_interval for vertices in (100, SMALL_GRAPH, 10**5, 10**6, 10**9)]
    assert intervals[0] == intervals[1] < intervals[2] <= intervals[3] <= intervals[4] == MAX_INTERVAL


@pytest.mark.parametrize("parameters", [{"anchor_growth": 0.1}, {"anchor_pace": "immediate"}])
def test_interval_that_the_user_has_set_does_not_depend_on_the_size(parameters: dict[str, Any]) -> None:
    small, large = (engine_of_size(vertices, **parameters).anchor_interval for vertices in (100, 10**7))
    assert small == large


def test_gradual_correction_begins_before_it_is_due() -> None:
    for vertices in (100, 10_000, 10**6):
        gradual = engine_of_size(vertices, anchor_growth=0.1)
        immediate = engine_of_size(vertices, anchor_growth=0.1, anchor_pace="immediate")
        assert immediate.due_growth == 0.1
        assert 0.1 - MAX_SPREAD <= gradual.due_growth < 0.1
    assert engine_of_size(10**6, anchor_growth=0.5).due_growth == pytest.approx(0.5 - MAX_SPREAD)


def test_rule_without_corrections_is_never_gradual() -> None:
    assert engine_of_size(10**6, rule="paper").due_growth == 0.0
