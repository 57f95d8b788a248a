"""Quality of the vectors on graphs with known classes; labels are never used to compute vectors."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.lab.evaluation import (
    classify,
    measure_aging,
    measure_anchor_cosines,
    score_at_end,
    score_on_arrival,
    stream,
)


@pytest.fixture(scope="module")
def growing() -> datasets.Dataset:
    return growing_communities(vertices=1_500, communities=6, edges_per_vertex=5, noise=0.15, seed=4)


@pytest.mark.parametrize("batch", [1, 100])
def test_stream_separates_communities_on_arrival_and_at_the_end(growing: datasets.Dataset, batch: int) -> None:
    result = stream(Embedder(dim=16), growing, start=0.3, seed=None, batch=batch)
    assert score_on_arrival(result).micro > 0.8
    assert score_at_end(result).micro > 0.9
    aged = measure_aging(result)
    assert aged.end.micro > aged.beginning.micro - 0.02  # a classifier trained at the start still works


def test_ripple_is_near_the_exact_embedding_and_better_than_paper(
    growing: datasets.Dataset,
) -> None:
    results = {rule: stream(Embedder(dim=16, rule=rule), growing, 0.3, batch=50) for rule in ("ripple", "paper")}
    scores = {rule: score_at_end(result).micro for rule, result in results.items()}
    order, labels, start = results["ripple"].order, results["ripple"].labels, results["ripple"].start
    vectors = Embedder(dim=16).fit(growing.edges).vectors(order)
    exact = classify(vectors, labels, np.arange(start), np.arange(start, len(order))).micro
    assert scores["ripple"] > max(scores["paper"] + 0.05, exact - 0.02)


def test_anchors_keep_served_coordinates(growing: datasets.Dataset) -> None:
    cosines = measure_anchor_cosines(Embedder(dim=16), growing, start=0.5, seed=0, batch=20)
    assert len(cosines) >= 5
    assert min(cosines) > 0.85
    assert np.mean(cosines) > 0.92


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "at_the_end", "on_arrival"), [("cora", 0.80, 0.70), ("blog", 0.73, 0.70)])
def test_published_graphs_reach_the_expected_scores(name: str, at_the_end: float, on_arrival: float, seed: int) -> None:
    try:
        data = datasets.load(name)
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    result = stream(Embedder(dim=90), data, start=0.5, seed=seed)
    assert score_at_end(result).micro >= at_the_end
    assert score_on_arrival(result).micro >= on_arrival
