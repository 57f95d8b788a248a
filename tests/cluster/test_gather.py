"""A cluster in one place is what one machine would have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster import gather
from ripplevec.cluster.gather import gather_graph
from ripplevec.errors import RipplevecError


@pytest.mark.parametrize("kind", ["int", "text", "mixed"])
@pytest.mark.parametrize("directed", [False, True])
def test_the_whole_graph(grown: Any, kind: str, directed: bool) -> None:
    one, other = grown(kind=kind, directed=directed)
    graph, rows = gather_graph(other.engine)
    graph.check()
    order = one.engine.graph.rows_by_arrival()
    assert graph.ids.to_list(np.arange(graph.row_count)) == one.ids == other.engine.ids_of(rows)
    assert np.array_equal(graph.arrival[: graph.row_count], one.engine.graph.arrival[order])
    assert graph.next_arrival == one.engine.graph.next_arrival
    expected, found = one.engine.graph.adjacency.reorder(order).to_packed(), graph.adjacency.to_packed()
    for name, column in expected.items():
        assert np.array_equal(column[: graph.row_count] if len(column) > found[name].size else column, found[name]), name


def test_losses_and_gaps_are_those_of_the_graph_in_one_place(grown: Any) -> None:
    (one, other), earlier = grown(), grown(seed=3)
    found = [
        model.diagnostics(objective=True, gap=True, since=since)
        for model, since in zip((one, other), earlier, strict=True)
    ]
    assert found[1]["objective"] == pytest.approx(found[0]["objective"], rel=1e-4, abs=1e-6)
    assert found[1]["spectrum"] == pytest.approx(found[0]["spectrum"], rel=1e-4)


def test_a_graph_that_is_too_large_for_one_place_is_not_brought_there(
    grown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, other = grown()
    monkeypatch.setattr(gather, "MAX_GATHERED_EDGES", 10)
    with pytest.raises(RipplevecError, match=r"at most 10 edges together; it has .*: ask a model on one machine"):
        other.diagnostics(gap=True)


def test_an_anchor_may_be_asked_what_it_gained(grown: Any) -> None:
    one, other = (model.anchor(gap=True).spectrum for model in grown())
    assert other[0] == pytest.approx(one[0], rel=1e-4)
    assert other[1] == pytest.approx(one[1], rel=1e-3)
    assert all(after >= before for before, after in zip(*other, strict=True))
