from __future__ import annotations

import logging
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec import Embedder, SpectralView, load
from ripplevec.errors import FormatError
from ripplevec.lab.datasets.synthetic import planted_partition, purchases
from ripplevec.lab.evaluation.label_metrics import Classifier
from ripplevec.rules import ripple
from ripplevec.views import background_choice, view_choice
from ripplevec.views.graph_sample import SampledGraph
from ripplevec.views.recipes import RECIPES
from ripplevec.views.view_choice import (
    HIDDEN_SHARE,
    ViewChoice,
    choose_views,
    hide_edges,
    rank_hidden_edges,
    reconsider_views,
)

NAMES = list(RECIPES)


def sample_of(edges: NDArray[np.int64], vertices: int) -> SampledGraph:
    return SampledGraph(vertices, edges, np.ones(len(edges), np.float32))


def communities(**options: Any) -> SampledGraph:
    data = planted_partition(**{"communities": 10, "size": 60, "inside": 6, "elsewhere": 1, "seed": 0} | options)
    return sample_of(data.edges, data.vertices)


def popular_vertices(vertices: int = 900, hubs: int = 12, kinds: int = 4, seed: int = 0) -> SampledGraph:
    """Vertices linked to three hubs of their kind and to popular vertices of any kind: there are no communities."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, hubs // kinds, (vertices, 3)) * kinds + (np.arange(vertices) % kinds)[:, None]
    to_hubs = np.column_stack([own.ravel(), np.repeat(np.arange(vertices), 3) + hubs])
    popularity = rng.pareto(1.5, vertices) + 1
    others = rng.choice(vertices, (vertices * 30, 2), p=popularity / popularity.sum()) + hubs
    pairs = np.unique(np.sort(np.concatenate([to_hubs, others]), axis=1), axis=0)
    return sample_of(pairs[pairs[:, 0] < pairs[:, 1]], vertices + hubs)


def test_hidden_edges_are_absent_and_ranked_among_non_neighbors() -> None:
    graph = communities()
    hidden = hide_edges(graph, 0)
    count = int(HIDDEN_SHARE * len(graph.pairs))
    assert hidden.adjacency.edge_count == len(graph.pairs) - count
    assert 0 < hidden.query.size <= count
    known = {frozenset(pair) for pair in graph.pairs.tolist()}
    degree = hidden.adjacency.links.degree
    assert (degree[hidden.query] >= degree[hidden.target]).all()
    assert not hidden.adjacency.has_edges(hidden.query, hidden.target).any()
    for query, target, others, counts in zip(
        hidden.query.tolist(), hidden.target.tolist(), hidden.others.tolist(), hidden.counts.tolist(), strict=True
    ):
        assert frozenset((query, target)) in known
        assert all(counts)
        assert not any(other == query or frozenset((query, other)) in known for other in others)


def test_folds_hide_different_edges() -> None:
    graph = communities()
    hidden = [
        {frozenset(pair) for pair in zip(fold.query.tolist(), fold.target.tolist(), strict=True)}
        for fold in (hide_edges(graph, 0, number) for number in range(3))
    ]
    assert not hidden[0] & hidden[1]
    assert not hidden[1] & hidden[2]
    ranks = rank_hidden_edges(graph, RECIPES, 8, 0, 1)
    assert ranks is not None
    assert ranks.shape == (len(RECIPES), sum(map(len, hidden)))


def test_neighbors_of_a_vertex_linked_to_all_others_do_not_count() -> None:
    star = np.array([(0, leaf) for leaf in range(1, 200)] + [(leaf, leaf + 1) for leaf in range(1, 199)])
    hidden = hide_edges(sample_of(star, 200), 0)
    assert not hidden.counts[hidden.query == 0].any()


def test_ranks_equal_a_plain_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, dim = communities(inside=8), 12
    monkeypatch.setattr(view_choice, "MAX_FOLDS", 1)
    ranks = rank_hidden_edges(graph, RECIPES, dim, 0, 1)
    hidden = hide_edges(graph, 0)
    assert ranks is not None
    kept = np.column_stack(hidden.adjacency.to_csr().nonzero())
    for index, views in enumerate(RECIPES.values()):
        model = Embedder(dim=dim, views=list(views), anchor_growth=0).fit(kept[kept[:, 0] < kept[:, 1]])
        vectors = np.zeros((graph.vertices, dim))
        vectors[model.ids] = model.to_numpy()
        query = vectors[hidden.query]
        cosine = (query * vectors[hidden.target]).sum(axis=1)
        others = np.einsum("ij,ikj->ik", query, vectors[hidden.others])
        expected = 1 / (1 + (others > cosine[:, None]).sum(axis=1))
        assert abs(ranks[index].mean() - expected.mean()) < 0.02  # the solver of the choice stops earlier


def test_choice_is_deterministic_for_any_number_of_threads() -> None:
    graph = communities()
    assert len({choose_views(graph, RECIPES, 16, 0, threads) for threads in (1, 2, 2)}) == 1


def test_choice_for_sparse_communities_has_no_hub_view() -> None:
    assert len(RECIPES[choose_views(communities(), RECIPES, 16, 0, 1).recipe]) == 1


def test_choice_for_hubs_has_a_hub_view() -> None:
    choice = choose_views(popular_vertices(), RECIPES, 16, 0, 1)
    assert len(RECIPES[choice.recipe]) == 2
    assert choice.scores[NAMES.index(choice.recipe)] > max(choice.scores[:2]) + 0.05


@pytest.mark.parametrize("per_user", [8, 30])
def test_choice_for_a_bipartite_graph_has_no_hub_view(per_user: int) -> None:
    data = purchases(1_000, 200, groups=8, per_user=per_user, seed=0)
    choice = choose_views(sample_of(data.edges, data.vertices), RECIPES, 32, 0, 1)
    assert len(RECIPES[choice.recipe]) == 1


def test_equal_recipes_are_chosen_in_order() -> None:
    same = {"first": RECIPES["communities"], "second": RECIPES["communities"]}
    assert choose_views(communities(), same, 16, 0, 1).recipe == "first"


@pytest.mark.parametrize(("inside", "name"), [(4, "sparse"), (20, "communities+strong-hubs")])
def test_choice_for_a_tiny_graph_is_by_density(inside: int, name: str) -> None:
    choice = choose_views(communities(communities=2, size=30, inside=inside), RECIPES, 8, 0, 1)
    assert (choice.recipe, choice.scores) == (name, ())


def test_reconsidered_views_change_only_for_a_large_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, sparse = popular_vertices(), "sparse"
    first = choose_views(graph, RECIPES, 16, 0, 1)
    assert reconsider_views(graph, RECIPES, sparse, 16, 0, 1).recipe == first.recipe
    monkeypatch.setattr(view_choice, "MIN_GAIN", 0.9)
    kept = reconsider_views(graph, RECIPES, sparse, 16, 0, 1)
    assert (kept.recipe, kept.scores) == (sparse, first.scores)


def test_saved_choice_is_restored() -> None:
    for choice in (ViewChoice(), ViewChoice("communities", (0.25, 0.5, 0.75, 0.5, 0.25), 100)):
        assert ViewChoice.from_state(choice.state(), RECIPES) == choice


@pytest.mark.parametrize(
    ("density", "name"),
    [((3.0, False), "sparse"), ((12.0, False), "communities+strong-hubs"), ((12.0, True), "communities")],
)
def test_choice_of_an_earlier_version_is_read_and_saved_unchanged(density: tuple[float, bool], name: str) -> None:
    mean_degree, bipartite = density
    state = {"mean_degree": np.array(mean_degree)} | ({"bipartite": np.array(True)} if bipartite else {})
    choice = ViewChoice.from_state(state, RECIPES)
    assert choice.recipe == name
    assert choice.state() == state
    assert ViewChoice.from_state(state, {"given": [SpectralView(tau=1.0)]}).recipe == "given"


def test_choice_is_in_diagnostics_and_log(caplog: pytest.LogCaptureFixture) -> None:
    graph = communities()
    with caplog.at_level(logging.INFO, "ripplevec.rules"):
        report = Embedder(dim=16).fit(graph.pairs).diagnostics()
    assert report["views"] == "sparse"
    assert list(report["view_scores"]) == NAMES
    assert "views chosen: when=start views=sparse" in caplog.text


def test_own_candidates_are_compared() -> None:
    candidates = {"narrow": [SpectralView(tau=0.25, tail=0.1)], "wide": [SpectralView(tau_per_degree=64, tail=0.35)]}
    report = Embedder(dim=16, views=candidates).fit(popular_vertices().pairs).diagnostics()
    assert report["views"] == "wide"
    assert report["view_scores"]["wide"] > report["view_scores"]["narrow"]


def test_model_with_candidates_is_saved_and_loaded(tmp_path: Path) -> None:
    model = Embedder(dim=16, views={"a": RECIPES["sparse"], "b": RECIPES["communities"]}).fit(communities().pairs)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.digest() == model.digest()
    assert again.diagnostics()["view_scores"] == model.diagnostics()["view_scores"]


def test_saved_choice_out_of_range_is_refused(tmp_path: Path) -> None:
    model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "a")])
    state = model.engine.state() | {"rule_recipe": np.frombuffer(b"other", np.uint8)}
    with pytest.raises(FormatError, match="recipe"):
        Embedder(dim=4).engine.restore(state)


def grow(model: Embedder, graph: SampledGraph, batch: int) -> None:
    for first in range(0, len(graph.pairs), batch):
        model.partial_fit(graph.pairs[first : first + batch])


@pytest.mark.parametrize("pace", ["gradual", "immediate"])
def test_model_that_began_small_changes_its_views_once(pace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = popular_vertices()
    order = np.random.default_rng(0).permutation(len(graph.pairs))
    pairs = graph.pairs[order]
    model = Embedder(dim=16, anchor_pace=pace).fit(pairs[:400])
    assert model.diagnostics()["views"] == "sparse"
    names = []
    for first in range(400, len(pairs), 100):
        model.partial_fit(pairs[first : first + 100])
        names.append(model.diagnostics()["views"])
    changes = [after for before, after in zip(["sparse", *names], names, strict=False) if after != before]
    assert 1 <= len(changes) <= 2
    assert len(RECIPES[changes[-1]]) == 2


def score_later(old: Any, new: Any, labels: Any, half: Any) -> list[float]:
    """Train a classifier on old vectors of one half; return its scores for old and new vectors of the other half."""
    train, test = half == 0, half == 1
    classifier = Classifier.train(old[train], labels[train])
    return [classifier.score(rows[test], labels[test]).micro for rows in (old, new)]


@pytest.mark.parametrize(("before", "after"), permutations(RECIPES, 2))
def test_change_between_any_two_recipes_keeps_a_classifier_valid(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripple, "choose_views", lambda graph, *rest: ViewChoice(before, (), len(graph.pairs)))
    changed = ViewChoice(after, (), 10**9)
    monkeypatch.setattr(background_choice, "reconsider_views", lambda *arguments: changed)
    data = planted_partition(communities=10, size=60, inside=6, elsewhere=2, seed=0)
    pairs = np.random.default_rng(0).permutation(data.edges)
    model = Embedder(dim=16).fit(pairs[:800])
    batches = iter(np.split(pairs[800:], range(40, len(pairs) - 800, 40)))
    while model.diagnostics()["views"] == before:
        ids = np.array(model.ids)
        old = model.vectors(ids)
        model.partial_fit(next(batches))
    scores = np.array([score_later(old, model.vectors(ids), data.labels[ids], half) for half in (ids % 2, 1 - ids % 2)])
    assert scores[:, 0].mean() > 0.85
    assert scores[:, 1].mean() > scores[:, 0].mean() - 0.02


def test_choice_in_progress_is_saved_and_continued(tmp_path: Path) -> None:
    graph = popular_vertices()
    pairs = graph.pairs[np.random.default_rng(0).permutation(len(graph.pairs))]
    model, saved = Embedder(dim=16).fit(pairs[:400]), 0
    for first in range(400, 4_000, 100):
        model.partial_fit(pairs[first : first + 100])
        if model.engine.rule.background_choice is not None:  # type: ignore[union-attr]
            saved += 1
            model.save(tmp_path / f"{saved}")
            again = load(tmp_path / f"{saved}")
            assert again.digest() == model.digest()
            model = again if saved % 2 else model
    reference = Embedder(dim=16).fit(pairs[:400])
    for first in range(400, 4_000, 100):
        reference.partial_fit(pairs[first : first + 100])
    assert saved > 0
    assert model.digest() == reference.digest()
