from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import roc_auc_score

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.link_prediction import link_prediction, summary
from ripplevec.lab.evaluation.protocols import Arrivals

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)


@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(2, 6)), elements=st.integers(0, 4)))
def test_the_summary_is_that_of_the_definitions(scores: np.ndarray) -> None:
    told = summary(scores)
    truth = np.zeros(scores.shape)
    truth[:, 0] = 1
    ranks = [1 + (row[1:] > row[0]).sum() + (row[1:] == row[0]).sum() / 2 for row in scores]
    assert told.auc == pytest.approx(roc_auc_score(truth.ravel(), scores.ravel()))
    assert told.mrr == pytest.approx(np.mean(1 / np.array(ranks)))
    assert told.edges == len(scores)


def test_edges_inside_communities_are_foretold(neighbor_mean: Any) -> None:
    told = link_prediction(neighbor_mean(), GRAPH)
    assert told.auc > 0.7
    assert told.mrr > 0.2


def test_vectors_that_say_nothing_foretell_nothing(neighbor_mean: Any) -> None:
    model = neighbor_mean()
    model.vectors = lambda ids: np.ones((len(ids), 4))
    assert link_prediction(model, GRAPH).auc == pytest.approx(0.5)


@pytest.mark.parametrize("edges", ["together", "spread"])
def test_every_edge_is_scored_once_and_then_learned(neighbor_mean: Any, edges: str) -> None:
    arrivals, model = Arrivals.of(GRAPH, 3, edges), neighbor_mean()
    own = [len(arrivals.neighbors(place)) for place in range(45, 90)]
    late = sum(len(arrivals.late(place)) for place in range(45, 90))
    told = link_prediction(model, GRAPH, seed=3, edges=edges)
    assert told.edges == sum(count for count in own if count > 1) + late
    assert len(model.edges) == len(GRAPH.edges)


def test_a_newcomer_is_scored_from_its_other_edges_before_it_is_there(neighbor_mean: Any) -> None:
    seen: list[tuple[list[int], bool]] = []
    model = neighbor_mean(dim=2)
    foretell = model.preview
    model.preview = lambda near: seen.append((near, 4 in model.rows)) or foretell(near)
    graph = Dataset.from_pairs("small", [[0, 1], [1, 2], [2, 3], [0, 4], [1, 4], [2, 4]], [0] * 5)
    told = link_prediction(model, graph, start=0.8, seed=None)
    assert seen == [([1, 2], False), ([0, 2], False), ([0, 1], False)]
    assert told.edges == 3


def test_non_edges_are_never_edges(neighbor_mean: Any) -> None:
    asked: list[list[int]] = []
    model = neighbor_mean()
    look = model.vectors
    model.vectors = lambda ids: asked.append(ids.tolist()) or look(ids)
    graph = Dataset.from_pairs("small", [[0, 1], [1, 2], [2, 3], [0, 5], [1, 5], [3, 4]], [0] * 6)
    told = link_prediction(model, graph, start=0.7, seed=None, negatives=50)
    assert told.edges == 2
    assert [ids[0] for ids in asked] == [0, 1]
    assert all(set(ids[1:]) == {2, 3, 4} for ids in asked)


def test_late_edges_are_compared_with_strangers_of_their_newer_end(neighbor_mean: Any) -> None:
    asked: list[list[int]] = []
    model, edges = neighbor_mean(), GRAPH.adjacency().toarray()
    look = model.vectors
    model.vectors = lambda ids: asked.append(ids.tolist()) or look(ids)
    model.partial_fit = lambda batch: None
    link_prediction(model, GRAPH, edges="spread")
    late = [(asked[at][0], asked[at + 1]) for at in range(len(asked)) if len(asked[at]) == 1]
    assert len(late) > 50
    assert all(edges[source, ids[0]] and not edges[source, ids[1:]].any() for source, ids in late)


def test_the_seed_decides_and_a_dot_product_is_no_cosine(neighbor_mean: Any) -> None:
    told = link_prediction(neighbor_mean(), GRAPH)
    assert told == link_prediction(neighbor_mean(), GRAPH)
    assert told != link_prediction(neighbor_mean(), GRAPH, seed=1)
    assert told != link_prediction(neighbor_mean(), GRAPH, score="dot")


def test_an_embedder_foretells() -> None:
    assert link_prediction(Embedder(dim=8), GRAPH, edges="spread").auc > 0.6


def test_what_cannot_be_measured_is_refused(neighbor_mean: Any) -> None:
    with pytest.raises(InvalidValueError, match="score: expected one of"):
        link_prediction(neighbor_mean(), GRAPH, score="distance")
    with pytest.raises(InvalidValueError, match="negatives"):
        link_prediction(neighbor_mean(), GRAPH, negatives=0)
    with pytest.raises(InvalidValueError, match="edges that can be foretold"):
        link_prediction(neighbor_mean(), Dataset.from_pairs("bare", [[0, 1]], [0, 1, 0]))
