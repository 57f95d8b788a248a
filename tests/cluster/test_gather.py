"""Tests of gathering: a gathered model equals the model on one machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster import driver_reads
from ripplevec.cluster.driver_reads import gather_graph
from ripplevec.errors import RipplevecError


@pytest.mark.parametrize("kind", ["int", "text", "mixed"])
@pytest.mark.parametrize("directed", [False, True])
def test_gather_graph_matches_single_machine(grown_models: Any, kind: str, directed: bool) -> None:
    single, sharded = grown_models(kind=kind, directed=directed)
    graph, rows = gather_graph(sharded.engine)
    graph.check()
    order = single.engine.graph.rows_by_arrival()
    assert graph.ids.to_list(np.arange(graph.row_count)) == single.ids == sharded.engine.ids_of(rows)
    assert np.array_equal(graph.arrival[: graph.row_count], single.engine.graph.arrival[order])
    assert graph.next_arrival == single.engine.graph.next_arrival
    expected, gathered = single.engine.graph.adjacency.reorder(order).to_packed(), graph.adjacency.to_packed()
    for name, column in expected.items():
        assert np.array_equal(
            column[: graph.row_count] if len(column) > gathered[name].size else column, gathered[name]
        ), name


def test_objective_and_gap_match_single_machine(grown_models: Any) -> None:
    (single, sharded), earlier = grown_models(), grown_models(seed=3)
    gathered = [
        model.diagnostics(objective=True, gap=True, since=since)
        for model, since in zip((single, sharded), earlier, strict=True)
    ]
    assert gathered[1]["objective"] == pytest.approx(gathered[0]["objective"], rel=1e-4, abs=1e-6)
    assert gathered[1]["spectrum"] == pytest.approx(gathered[0]["spectrum"], rel=1e-4)


def test_gather_with_too_many_edges_raises(grown_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, sharded = grown_models()
    monkeypatch.setattr(driver_reads, "MAX_GATHERED_EDGES", 10)
    with pytest.raises(RipplevecError, match=r"expected at most 10 edges, got .*Use a model on one machine"):
        sharded.diagnostics(gap=True)


def test_anchor_gap_matches_single_machine(grown_models: Any) -> None:
    single, sharded = (model.anchor(gap=True).spectrum for model in grown_models())
    assert sharded[0] == pytest.approx(single[0], rel=1e-4)
    assert sharded[1] == pytest.approx(single[1], rel=1e-3)
    assert all(after >= before for before, after in zip(*sharded, strict=True))
