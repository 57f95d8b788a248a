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
from ripplevec.lab.evaluation.link_prediction import score_link_prediction, summarize_scores
from ripplevec.lab.evaluation.protocols import Arrivals

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)


@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(2, 6)), elements=st.integers(0, 4)))
def test_summarize_scores_equals_definitions(scores: np.ndarray) -> None:
    result = summarize_scores(scores)
    truth = np.zeros(scores.shape)
    truth[:, 0] = 1
    ranks = [1 + (row[1:] > row[0]).sum() + (row[1:] == row[0]).sum() / 2 for row in scores]
    assert result.auc == pytest.approx(roc_auc_score(truth.ravel(), scores.ravel()))
    assert result.mrr == pytest.approx(np.mean(1 / np.array(ranks)))
    assert result.edges == len(scores)


def test_score_link_prediction_of_communities_is_high(neighbor_mean: Any) -> None:
    result = score_link_prediction(neighbor_mean(), GRAPH)
    assert result.auc > 0.7
    assert result.mrr > 0.2


def test_score_link_prediction_of_constant_vectors_is_half(neighbor_mean: Any) -> None:
    model = neighbor_mean()
    model.vectors = lambda ids: np.ones((len(ids), 4))
    assert score_link_prediction(model, GRAPH).auc == pytest.approx(0.5)


@pytest.mark.parametrize("edges", ["together", "spread"])
def test_score_link_prediction_scores_and_delivers_every_edge_once(neighbor_mean: Any, edges: str) -> None:
    arrivals, model = Arrivals.from_dataset(GRAPH, 3, edges), neighbor_mean()
    degrees = [len(arrivals.neighbors(position)) for position in range(45, 90)]
    late = sum(len(arrivals.late_edges(position)) for position in range(45, 90))
    result = score_link_prediction(model, GRAPH, seed=3, edges=edges)
    assert result.edges == sum(count for count in degrees if count > 1) + late
    assert len(model.edges) == len(GRAPH.edges)


def test_score_link_prediction_previews_vertex_from_other_edges(neighbor_mean: Any) -> None:
    previews: list[tuple[list[int], bool]] = []
    model = neighbor_mean(dim=2)
    preview = model.preview
    model.preview = lambda near: previews.append((near, 4 in model.rows)) or preview(near)
    graph = Dataset.from_pairs("small", [[0, 1], [1, 2], [2, 3], [0, 4], [1, 4], [2, 4]], [0] * 5)
    result = score_link_prediction(model, graph, start=0.8, seed=None)
    assert previews == [([1, 2], False), ([0, 2], False), ([0, 1], False)]
    assert result.edges == 3


def test_score_link_prediction_never_samples_edges_as_negatives(neighbor_mean: Any) -> None:
    requested: list[list[int]] = []
    model = neighbor_mean()
    vectors = model.vectors
    model.vectors = lambda ids: requested.append(ids.tolist()) or vectors(ids)
    graph = Dataset.from_pairs("small", [[0, 1], [1, 2], [2, 3], [0, 5], [1, 5], [3, 4]], [0] * 6)
    result = score_link_prediction(model, graph, start=0.7, seed=None, negatives=50)
    assert result.edges == 2
    assert [ids[0] for ids in requested] == [0, 1]
    assert all(set(ids[1:]) == {2, 3, 4} for ids in requested)


def test_score_link_prediction_compares_late_edges_with_non_neighbors(neighbor_mean: Any) -> None:
    requested: list[list[int]] = []
    model, edges = neighbor_mean(), GRAPH.adjacency().toarray()
    vectors = model.vectors
    model.vectors = lambda ids: requested.append(ids.tolist()) or vectors(ids)
    model.partial_fit = lambda batch: None
    score_link_prediction(model, GRAPH, edges="spread")
    late = [(requested[at][0], requested[at + 1]) for at in range(len(requested)) if len(requested[at]) == 1]
    assert len(late) > 50
    assert all(edges[source, ids[0]] and not edges[source, ids[1:]].any() for source, ids in late)


def test_score_link_prediction_depends_on_seed_and_score(neighbor_mean: Any) -> None:
    result = score_link_prediction(neighbor_mean(), GRAPH)
    assert result == score_link_prediction(neighbor_mean(), GRAPH)
    assert result != score_link_prediction(neighbor_mean(), GRAPH, seed=1)
    assert result != score_link_prediction(neighbor_mean(), GRAPH, score="dot")


def test_score_link_prediction_of_embedder_is_above_chance() -> None:
    assert score_link_prediction(Embedder(dim=8), GRAPH, edges="spread").auc > 0.6


def test_score_link_prediction_with_invalid_arguments_raises(neighbor_mean: Any) -> None:
    with pytest.raises(InvalidValueError, match="score: expected one of"):
        score_link_prediction(neighbor_mean(), GRAPH, score="distance")
    with pytest.raises(InvalidValueError, match="negatives"):
        score_link_prediction(neighbor_mean(), GRAPH, negatives=0)
    with pytest.raises(InvalidValueError, match="edges that can be predicted"):
        score_link_prediction(neighbor_mean(), Dataset.from_pairs("bare", [[0, 1]], [0, 1, 0]))
