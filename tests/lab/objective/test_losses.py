from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.batch import Batch
from ripplevec.errors import InvalidValueError
from ripplevec.graph.graph import Graph
from ripplevec.lab.objective import Loss, LossWeights, Objective, homophily_loss, smoothness_loss

SEEDS = st.integers(0, 2**32 - 1)


def state(seed: int, vertices: int = 12, columns: int = 3, known: int = 9) -> tuple[Any, Any, Any]:
    """Return current vectors, previous vectors, and the current rows of the latter."""
    draw = np.random.default_rng(seed)
    now, before = draw.standard_normal((vertices, columns)), draw.standard_normal((known, columns))
    return now, before, draw.permutation(vertices)[:known]


@settings(max_examples=50)
@given(seed=SEEDS, edges=st.integers(0, 40), weighted=st.booleans())
def test_homophily_loss_equals_double_sum_and_trace(
    make_random_graph: Any, laplacian: Any, seed: int, edges: int, weighted: bool
) -> None:
    adjacency, (vectors, _, _) = make_random_graph(seed, edges=edges, weighted=weighted), state(seed)
    dense = adjacency.toarray()
    pairs = [(u, v) for u in range(12) for v in range(12)]
    double = 0.5 * sum(dense[u, v] * np.sum((vectors[u] - vectors[v]) ** 2) for u, v in pairs)
    once = sum(dense[u, v] * np.sum((vectors[u] - vectors[v]) ** 2) for u, v in pairs if u < v)
    trace = np.trace(vectors.T @ laplacian(adjacency) @ vectors)
    np.testing.assert_allclose(homophily_loss(vectors, adjacency), [double, once, trace], rtol=1e-10, atol=1e-12)


@given(seed=SEEDS, known=st.integers(0, 12), elsewhere=st.booleans())
def test_smoothness_loss_equals_sum_and_matrix_form(seed: int, known: int, elsewhere: bool) -> None:
    now, before, rows = state(seed, known=known)
    rows = rows if elsewhere else None
    places = np.arange(known) if rows is None else rows
    summed = sum(np.sum((now[place] - vector) ** 2) for place, vector in zip(places, before, strict=True))
    pick = np.eye(12)[places]  # J of the paper
    assert np.isclose(smoothness_loss(now, before, rows), summed)
    assert np.isclose(smoothness_loss(now, before, rows), np.linalg.norm(pick @ now - before) ** 2)


@settings(max_examples=50)
@given(seed=SEEDS, edges=st.integers(0, 40), known=st.integers(0, 12))
def test_objective_loss_is_weighted_as_in_paper(
    make_random_graph: Any, laplacian: Any, seed: int, edges: int, known: int
) -> None:
    adjacency, (now, before, rows) = make_random_graph(seed, edges=edges), state(seed, known=known)
    loss = Objective(adjacency, before, rows).loss(now)
    count = int(np.count_nonzero(np.triu(adjacency.toarray(), 1)))
    trace = np.trace(now.T @ laplacian(adjacency) @ now)
    expected = smoothness_loss(now, before, rows) / 12 + (trace / (4 * count) if count else 0.0)
    assert np.isclose(loss.total, expected)
    assert np.isclose(loss.smoothness, smoothness_loss(now, before, rows))
    assert np.isclose(loss.homophily, homophily_loss(now, adjacency))


@settings(max_examples=50)
@given(seed=SEEDS, edges=st.integers(0, 40), known=st.integers(0, 12), column=st.integers(0, 2))
def test_objective_gradient_equals_numeric_derivative(
    make_random_graph: Any, seed: int, edges: int, known: int, column: int
) -> None:
    adjacency, (now, before, rows) = make_random_graph(seed, edges=edges), state(seed, known=known)
    objective, width = Objective(adjacency, before, rows, weights=LossWeights(0.7, 0.3)), 1e-5
    numeric = np.empty(12)
    for row in range(12):
        shift = np.zeros_like(now)
        shift[row, column] = width
        numeric[row] = (objective.loss(now + shift).total - objective.loss(now - shift).total) / (2 * width)
    np.testing.assert_allclose(objective.gradient(now)[:, column], numeric, rtol=1e-6, atol=1e-6)


@given(seed=SEEDS, known=st.integers(0, 12))
def test_objective_lipschitz_bound_bounds_hessian(
    make_random_graph: Any, laplacian: Any, seed: int, known: int
) -> None:
    adjacency, (_, before, rows) = make_random_graph(seed), state(seed, known=known)
    objective = Objective(adjacency, before, rows)
    hessian = 2 * objective.weights.homophily * laplacian(adjacency)
    hessian[rows, rows] += 2 * objective.weights.smoothness
    assert np.linalg.eigvalsh(hessian)[-1] <= objective.lipschitz_bound * (1 + 1e-12)


def test_loss_weights_count_vertices_and_edges_once() -> None:
    path = csr_array(
        np.array([[0, 2, 0, 0], [2, 0, 5, 0], [0, 5, 7, 0], [0, 0, 0, 0]], float)
    )  # with a self-loop on the third vertex
    assert LossWeights.from_graph(path) == LossWeights(1 / 4, 1 / 8)
    assert LossWeights.from_graph(csr_array((3, 3))) == LossWeights(1 / 3, 0.0)
    assert LossWeights.from_graph(csr_array((0, 0))) == LossWeights(0.0, 0.0)


def test_objective_loss_of_small_graph_equals_hand_computation() -> None:
    adjacency = csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], float))
    now, before = np.array([[1.0], [0.0], [3.0]]), np.array([[0.0], [0.0]])
    assert Objective(adjacency, before).loss(now) == Loss(1.0, 10.0, 1 / 3 + 10 / 8)
    assert Objective(adjacency).loss(now) == Loss(0.0, 10.0, 10 / 8)
    assert Objective(adjacency, before, np.array([1, 2])).loss(now).smoothness == 9.0


def test_homophily_loss_of_constant_components_is_zero(make_planted_graph: Any) -> None:
    apart = make_planted_graph(across=0)
    members = np.repeat(np.eye(4), 15, axis=0) / np.sqrt(15)
    assert 0 <= homophily_loss(members, apart) < 1e-12


def test_objective_accepts_single_precision_and_leaves_inputs_unchanged(make_random_graph: Any) -> None:
    adjacency, (now, before, rows) = make_random_graph(3), state(3)
    single = [now.astype(np.float32), before.astype(np.float32)]
    copies = [adjacency.toarray(), *(part.copy() for part in single)]
    loss, gradient = Objective(adjacency, single[1], rows).loss_and_gradient(single[0])
    assert gradient.dtype == np.float64
    assert np.isclose(loss.total, Objective(adjacency, before, rows).loss(now).total, rtol=1e-5)
    for part, copy in zip([adjacency.toarray(), *single], copies, strict=True):
        assert np.array_equal(part, copy)


def test_objective_accepts_matrix_of_graph() -> None:
    graph = Graph()
    list(graph.apply(Batch.from_any([(2, 0, 0.1), (0, 1, 0.3), (2, 1, 0.7), (0, 2, 0.2)])))  # one edge twice
    adjacency, vectors = graph.adjacency.to_csr()[:3, :3], np.eye(3)
    assert LossWeights.from_graph(adjacency) == LossWeights(1 / 3, 1 / 12)
    assert np.isclose(homophily_loss(vectors, adjacency), 2 * (0.1 + 0.3 + 0.7 + 0.2))


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ([[0, 1], [0, 0]], "symmetric"),
        ([[0, -1], [-1, 0]], "negative"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        ([[0, 1, 0], [1, 0, 0]], "square"),
    ],
)
def test_objective_with_invalid_matrix_raises(dense: list[list[float]], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Objective(csr_array(np.array(dense, float)))


@pytest.mark.parametrize("rows", [[0, 1], [0, 1, 1], [0, 1, 12], [-1, 1, 2]])
def test_objective_with_invalid_rows_raises(make_random_graph: Any, rows: list[int]) -> None:
    with pytest.raises(InvalidValueError, match="rows"):
        Objective(make_random_graph(0), np.zeros((3, 2)), np.array(rows))


@pytest.mark.parametrize("shape", [(11, 2), (12, 3), (12,)])
def test_objective_loss_with_wrong_shape_raises(make_random_graph: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValueError, match="12 vertices and 2 columns"):
        Objective(make_random_graph(0), np.zeros((3, 2))).loss(np.zeros(shape))
