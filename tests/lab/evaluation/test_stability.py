from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.protocols import stream
from ripplevec.lab.evaluation.stability import AnchorObserver, measure_aging, measure_anchor_cosines

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)


@pytest.mark.parametrize(("batch", "anchors"), [(1, 5), (5, 5), (45, 1)])
def test_measure_anchor_cosines_equal_cosine_of_rotation(neighbor_mean: Any, batch: int, anchors: int) -> None:
    model = neighbor_mean(dim=2, anchor_every=10, angle=0.3)
    assert measure_anchor_cosines(model, GRAPH, batch=batch) == pytest.approx([math.cos(0.3)] * anchors)


def test_anchor_observer_counts_successive_steps_of_an_anchor_once() -> None:
    class Model:
        current = np.array([[1.0, 0.0], [1.0, 0.0]])

        def vectors(self, ids: Any) -> Any:
            return self.current[ids]

    class Changed:
        anchored = True
        ids: tuple[int, ...] = ()
        vectors = np.empty((0, 2))

    class Unchanged(Changed):
        anchored = False

    observer, model, present = AnchorObserver(), Model(), np.array([0, 1])
    observer.begin(model, present)
    for vertex in (0, 1):  # an anchor that turns one vector at a time
        model.current[vertex] = 0.6, 0.8
        observer.step(model, present, 0, Changed())
    observer.step(model, present, 0, Unchanged())
    observer.step(model, present, 0, Changed())
    assert observer.cosines == pytest.approx([0.6, 1.0])


def test_anchor_observer_movements_sum_distances_of_known_vertices() -> None:
    class Model:
        def vectors(self, ids: Any) -> Any:
            return np.zeros((len(ids), 2))

    class Changed:
        anchored = False

        def __init__(self, ids: list[int], vectors: Any) -> None:
            self.ids, self.vectors = ids, np.array(vectors, float)

    observer, model = AnchorObserver(), Model()
    observer.begin(model, np.array([0, 1]))
    observer.step(model, np.array([0, 1, 2]), 1, Changed([0, 1, 2], [[3, 4], [0, 1], [9, 9]]))  # 2 is new
    observer.step(model, np.array([0, 1, 2]), 0, Changed([0, 2], [[3, 4], [9, 11]]))
    assert observer.movements == pytest.approx([6.0, 2.0])


def test_measure_anchor_cosines_without_anchors_is_empty(neighbor_mean: Any) -> None:
    assert measure_anchor_cosines(neighbor_mean(), GRAPH) == []


def test_measure_aging_without_movement_shows_no_aging(neighbor_mean: Any) -> None:
    age = measure_aging(stream(neighbor_mean(), GRAPH))
    assert age.beginning == age.end
    assert age.beginning.micro > 0.6


def test_measure_aging_after_rotation_shows_aging(neighbor_mean: Any) -> None:
    age = measure_aging(stream(neighbor_mean(dim=3, anchor_every=90, angle=math.pi), GRAPH, batch=5))
    assert age.end.micro < age.beginning.micro - 0.2


def test_measure_aging_scores_held_out_vertices_only(neighbor_mean: Any) -> None:
    result = stream(neighbor_mean(), GRAPH)
    noise = np.random.default_rng(0).standard_normal((result.start, 60))
    unlearnable = replace(result, start_vectors=noise, final_vectors=noise)
    assert measure_aging(unlearnable).beginning.micro < 0.7
