"""What views are chosen by: seen once a graph is dense, and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder, load
from ripplevec.views.graph_stats import DENSE_GRAPH, GraphStats


def dense(two_kinds: bool, seed: int = 0) -> list[tuple[int, int]]:
    """Sixty vertices with a dozen edges each; even ones have edges to odd ones only, if asked."""
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, 60, (900, 2)).tolist()}
    return sorted((a, b) for a, b in pairs if (a + b) % 2 == 1 or (not two_kinds and a < b))


def rule_of(model: Embedder) -> Any:
    return model._engine.rule


@pytest.mark.parametrize("two_kinds", [True, False])
def test_a_dense_graph_is_looked_through(two_kinds: bool) -> None:
    traits = rule_of(Embedder(dim=8).fit(dense(two_kinds))).graph_stats
    assert traits.mean_degree >= DENSE_GRAPH
    assert traits.bipartite == two_kinds


def test_a_tree_is_two_sided_by_chance_and_counts_as_any_other_graph() -> None:
    assert not rule_of(Embedder(dim=2).fit([(0, 1), (1, 2), (1, 3)])).graph_stats.bipartite


def test_what_was_chosen_is_kept_and_saved(tmp_path: Any) -> None:
    model = Embedder(dim=8, anchor_growth=0).fit(dense(True))
    model.partial_fit([(0, 2), (0, 4), (2, 4)])  # two of a kind
    model.anchor()
    assert rule_of(model).graph_stats.bipartite
    assert len(rule_of(model).coordinates.views) == 1
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert rule_of(again).graph_stats == rule_of(model).graph_stats
    assert again.digest() == model.digest()


@pytest.mark.parametrize("two_kinds", [True, False])
def test_a_graph_that_becomes_dense_gets_its_views_then(two_kinds: bool) -> None:
    edges = dense(two_kinds)
    model = Embedder(dim=8, anchor_growth=0).fit(edges[::6])
    assert rule_of(model).graph_stats.mean_degree < DENSE_GRAPH
    model.partial_fit(edges)
    model.anchor()
    assert len(rule_of(model).coordinates.views) == (1 if two_kinds else 2)


def test_a_graph_of_two_kinds_that_becomes_dense_keeps_its_view(tmp_path: Any) -> None:
    """Seen at one anchor, it is not asked again: an edge between two of a kind changes nothing of it."""
    model = Embedder(dim=8, anchor_growth=0).fit(dense(True)[::6])
    views = rule_of(model).coordinates.views
    for edges in (dense(True), [(0, 2)]):
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


def test_states_without_the_second_trait_are_read() -> None:
    assert GraphStats.from_state({"mean_degree": np.array(12.5)}) == GraphStats(12.5, False)
    for traits in (GraphStats(3.0), GraphStats(12.0, True)):
        assert GraphStats.from_state(traits.state()) == traits
