"""Statistics that select the views: measured when a graph becomes dense, then kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder, load
from ripplevec.views.graph_stats import DENSE_MEAN_DEGREE, GraphStats


def dense_edges(bipartite: bool, seed: int = 0) -> list[tuple[int, int]]:
    """Return edges of sixty vertices of degree about twelve; if bipartite, only between even and odd vertices."""
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, 60, (900, 2)).tolist()}
    return sorted((a, b) for a, b in pairs if (a + b) % 2 == 1 or (not bipartite and a < b))


def rule_of(model: Embedder) -> Any:
    return model.engine.rule


@pytest.mark.parametrize("bipartite", [True, False])
def test_graph_stats_of_a_dense_graph_detect_bipartiteness(bipartite: bool) -> None:
    stats = rule_of(Embedder(dim=8).fit(dense_edges(bipartite))).graph_stats
    assert stats.mean_degree >= DENSE_MEAN_DEGREE
    assert stats.bipartite == bipartite


def test_graph_stats_of_a_tree_are_not_bipartite() -> None:
    assert not rule_of(Embedder(dim=2).fit([(0, 1), (1, 2), (1, 3)])).graph_stats.bipartite


def test_graph_stats_are_kept_by_anchors_and_saved(tmp_path: Any) -> None:
    model = Embedder(dim=8, anchor_growth=0).fit(dense_edges(True))
    model.partial_fit([(0, 2), (0, 4), (2, 4)])  # edges within one side
    model.anchor()
    assert rule_of(model).graph_stats.bipartite
    assert len(rule_of(model).coordinates.views) == 1
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert rule_of(again).graph_stats == rule_of(model).graph_stats
    assert again.digest() == model.digest()


@pytest.mark.parametrize("bipartite", [True, False])
def test_views_change_when_a_graph_becomes_dense(bipartite: bool) -> None:
    edges = dense_edges(bipartite)
    model = Embedder(dim=8, anchor_growth=0).fit(edges[::6])
    assert rule_of(model).graph_stats.mean_degree < DENSE_MEAN_DEGREE
    model.partial_fit(edges)
    model.anchor()
    assert len(rule_of(model).coordinates.views) == (1 if bipartite else 2)


def test_views_of_a_bipartite_graph_that_becomes_dense_are_kept(tmp_path: Any) -> None:
    """Bipartiteness is tested at one anchor only: a later edge within one side does not change the views."""
    model = Embedder(dim=8, anchor_growth=0).fit(dense_edges(True)[::6])
    views = rule_of(model).coordinates.views
    for edges in (dense_edges(True), [(0, 2)]):
        model.partial_fit(edges)
        model.anchor()
        assert rule_of(model).graph_stats.bipartite
        assert rule_of(model).coordinates.views == views
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert rule_of(again).coordinates.views == views
    again.anchor()
    model.anchor()
    assert again.digest() == model.digest()


def test_from_state_without_bipartite_reads_false() -> None:
    assert GraphStats.from_state({"mean_degree": np.array(12.5)}) == GraphStats(12.5, False)
    for stats in (GraphStats(3.0), GraphStats(12.0, True)):
        assert GraphStats.from_state(stats.state()) == stats
