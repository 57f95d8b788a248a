from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.protocols import stream
from ripplevec.lab.evaluation.stability import AnchorWatch, ageing, anchor_cosines

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)


@pytest.mark.parametrize(("batch", "anchors"), [(1, 5), (5, 5), (45, 1)])
def test_the_cosine_of_each_anchor_is_that_of_its_turn(neighbor_mean: Any, batch: int, anchors: int) -> None:
    model = neighbor_mean(dim=2, anchor_every=10, angle=0.3)
    assert anchor_cosines(model, GRAPH, batch=batch) == pytest.approx([math.cos(0.3)] * anchors)


def test_movements_are_the_distances_that_known_vertices_went_at_each_step() -> None:
    class Model:
        def vectors(self, ids: Any) -> Any:
            return np.zeros((len(ids), 2))

    class Moved:
        anchored = False

        def __init__(self, ids: list[int], vectors: Any) -> None:
            self.ids, self.vectors = ids, np.array(vectors, float)

    watch, model = AnchorWatch(), Model()
    watch.begin(model, np.array([0, 1]))
    watch.step(model, np.array([0, 1, 2]), 1, Moved([0, 1, 2], [[3, 4], [0, 1], [9, 9]]))  # 2 is new
    watch.step(model, np.array([0, 1, 2]), 0, Moved([0, 2], [[3, 4], [9, 11]]))
    assert watch.movements == pytest.approx([6.0, 2.0])


def test_without_anchors_there_is_nothing_to_report(neighbor_mean: Any) -> None:
    assert anchor_cosines(neighbor_mean(), GRAPH) == []


def test_a_classifier_does_not_age_where_nothing_moves(neighbor_mean: Any) -> None:
    age = ageing(stream(neighbor_mean(), GRAPH))
    assert age.beginning == age.end
    assert age.beginning.micro > 0.6


def test_a_classifier_ages_when_the_coordinates_turn(neighbor_mean: Any) -> None:
    age = ageing(stream(neighbor_mean(dim=3, anchor_every=90, angle=math.pi), GRAPH, batch=5))
    assert age.end.micro < age.beginning.micro - 0.2


def test_ageing_scores_only_what_was_not_trained_on(neighbor_mean: Any) -> None:
    result = stream(neighbor_mean(), GRAPH)
    noise = np.random.default_rng(0).standard_normal((result.start, 60))
    unlearnable = replace(result, start_vectors=noise, final_vectors=noise)
    assert ageing(unlearnable).beginning.micro < 0.7
