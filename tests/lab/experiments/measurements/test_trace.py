from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import stream
from ripplevec.lab.evaluation.protocols import Arrivals
from ripplevec.lab.experiments.measurements.trace import LocalAction, TracedModel, find_last_action
from ripplevec.lab.objective import Objective, polar_factor


def traced_model(graph: Dataset, **parameters: Any) -> TracedModel:
    return TracedModel(Embedder(dim=4, seed=7, **parameters), Arrivals.from_dataset(graph, 3), 120)


def stored_vectors(model: Embedder) -> Any:
    return model.engine.store.vectors[: model.engine.graph.row_count].astype(np.float64)


def apply_action(before: Any, influenced: Any) -> Any:
    """Apply Algorithm 2 of the paper in NumPy."""
    count = len(influenced)
    mean = before[influenced].mean(axis=0)
    after = np.vstack([before, mean])
    after[influenced] -= (1 - np.sqrt(1 - 1 / count)) * mean
    return after


@pytest.mark.parametrize("last", [120, 150, 239])
def test_traced_model_records_influenced_set_of_rule(graph: Dataset, last: int) -> None:
    one = traced_model(graph, rule="paper")
    state = one.advance_to(last)
    assert len(state.vectors) == len(state.before) + 1
    np.testing.assert_allclose(state.vectors, apply_action(state.before, state.influenced), atol=1e-14)
    assert np.array_equal(state.vectors, stored_vectors(one.model)[one.model.engine.store.placed[: last + 1] == 1])


def test_traced_model_equals_untraced_model(graph: Dataset) -> None:
    one = traced_model(graph)
    one.advance_to(239)
    alone = Embedder(dim=4, seed=7)
    stream(alone, graph, 0.5, 3)
    assert one.model.digest() == alone.digest()


def test_local_action_smoothness_equals_objective_and_printed_is_larger(graph: Dataset) -> None:
    one = traced_model(graph, rule="paper")
    for last in range(120, 150):
        state = one.advance_to(last)
        smoothness = Objective(state.adjacency, state.before, state.rows).loss(state.vectors).smoothness
        action = one.actions[-1]
        assert action.smoothness == pytest.approx(smoothness, abs=1e-14)
        assert action.printed_smoothness >= action.smoothness - 1e-14
    assert len({len(action.influenced) for action in one.actions}) > 2


def test_local_action_on_single_vertex_has_alpha_one() -> None:
    action = LocalAction(np.array([5]), np.array([[3.0, 4.0]]))
    assert (action.alpha, action.smoothness, action.printed_smoothness) == (1.0, 25.0, 25.0)


@pytest.mark.parametrize("anchor_growth", [0, 0.05])
def test_traced_model_orthonormalizes_rows_of_rule_ripple(graph: Dataset, anchor_growth: float) -> None:
    one = traced_model(graph, anchor_growth=anchor_growth)
    state = one.advance_to(239)
    np.testing.assert_allclose(state.vectors.T @ state.vectors, np.eye(4), atol=1e-12)
    rotation = one.model.engine.rule.coordinates.rotation  # type: ignore[attr-defined]
    assert (rotation is None) == (anchor_growth == 0)
    expected = polar_factor(stored_vectors(one.model)) @ (np.eye(4) if rotation is None else rotation)
    np.testing.assert_allclose(state.vectors, expected, atol=1e-12)


def test_traced_model_state_contains_placed_vertices_only() -> None:
    """Vertices 8 and 9 arrive without a path to the start; 7 is placed late, by the arrival of 10."""
    square = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 0), (4, 1), (5, 2), (5, 4), (6, 5), (6, 0)]
    graph = Dataset.from_pairs("parts", np.array([*square, (8, 9), (10, 7), (10, 1)]), np.zeros(11, np.int64))
    arrivals = Arrivals.from_dataset(graph, None)
    one = TracedModel(Embedder(dim=2, rule="paper"), arrivals, 6)
    assert find_last_action(arrivals, 6, 11) == 10
    assert find_last_action(arrivals, 6, 10) == 6  # 7 has no edge, 8 and 9 only one to each other
    state = one.advance_to(10)
    assert len(state.vectors) == 9
    assert state.rows.tolist() == list(range(7))
    assert state.influenced.tolist() == [1]
    dense = arrivals.graph(11).toarray()
    present = [0, 1, 2, 3, 4, 5, 6, 7, 10]
    assert np.array_equal(state.adjacency.toarray(), dense[np.ix_(present, present)])


def test_find_last_action_without_edge_to_start_raises() -> None:
    graph = Dataset.from_pairs("apart", np.array([(0, 1), (2, 3)]), np.zeros(4, np.int64))
    with pytest.raises(InvalidValueError, match="start: expected"):
        find_last_action(Arrivals.from_dataset(graph, None), 2, 4)
