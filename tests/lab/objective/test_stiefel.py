from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, sqrtm, subspace_angles
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.objective import (
    LossWeights,
    Objective,
    descend,
    minimize,
    polar_factor,
    project_to_tangent,
    random_start,
    retract,
    smoothness_loss,
    stiefel,
    warm_start,
)

SEEDS = st.integers(0, 2**32 - 1)
HOMOPHILY, SMOOTHNESS = LossWeights(0.0, 1.0), LossWeights(1.0, 0.0)


def orthogonality_error(vectors: Any) -> float:
    """Return the largest entry of |FᵀF − I|."""
    return float(np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max())


def grown_objective(make_planted_graph: Any, known: int = 50, columns: int = 4) -> Objective:
    """Return the planted graph after the last vertices joined the optimum of the first ones."""
    adjacency = make_planted_graph()
    first = minimize(Objective(adjacency[:known, :known]), random_start(known, columns)).vectors
    return Objective(adjacency, first)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_minimize_homophily_alone_finds_eigenvectors(
    make_planted_graph: Any, laplacian: Any, seed: int, monotone: bool
) -> None:
    adjacency = make_planted_graph()
    values, exact = np.linalg.eigh(laplacian(adjacency))
    assert values[4] > 5 * values[3]  # a gap: the subspace is unique
    found = minimize(Objective(adjacency, weights=HOMOPHILY), random_start(60, 4, seed), monotone=monotone)
    assert found.converged
    assert np.isclose(found.loss.homophily, values[:4].sum(), rtol=1e-8)
    assert subspace_angles(found.vectors, exact[:, :4]).max() < 1e-4


@settings(max_examples=20)
@given(seed=SEEDS, columns=st.integers(1, 6))
def test_minimize_homophily_alone_reaches_sum_of_smallest_eigenvalues(
    make_random_graph: Any, laplacian: Any, seed: int, columns: int
) -> None:
    adjacency = make_random_graph(seed, vertices=14, edges=40)
    found = minimize(Objective(adjacency, weights=HOMOPHILY), random_start(14, columns, seed), iterations=5000)
    values = np.linalg.eigvalsh(laplacian(adjacency))
    assert abs(found.loss.homophily - values[:columns].sum()) < 1e-6 * values[-1]


@settings(max_examples=20)
@given(seed=SEEDS, columns=st.integers(1, 5), monotone=st.booleans())
def test_minimize_smoothness_alone_finds_polar_factor(seed: int, columns: int, monotone: bool) -> None:
    before = np.random.default_rng(seed).standard_normal((12, columns))
    objective = Objective(csr_array((12, 12)), before, weights=SMOOTHNESS)
    found = minimize(objective, random_start(12, columns, seed), tolerance=1e-9, iterations=20_000, monotone=monotone)
    nearest = ((np.linalg.svd(before, compute_uv=False) - 1) ** 2).sum()
    assert np.isclose(found.loss.smoothness, nearest, rtol=1e-9, atol=1e-9)
    assert np.isclose(smoothness_loss(polar_factor(before), before), nearest)


@settings(max_examples=20)
@given(seed=SEEDS, newcomers=st.integers(1, 6))
def test_minimize_smoothness_with_new_vertices_keeps_small_singular_values(seed: int, newcomers: int) -> None:
    """With r free rows, JF may be any U diag(s) Vᵀ with s ≤ 1, at most r of them below 1: the r smallest of P."""
    before = np.random.default_rng(seed).standard_normal((9, 4)) / 3
    singular = np.linalg.svd(before, compute_uv=False)
    allowed = np.ones(4)
    allowed[max(4 - newcomers, 0) :] = np.minimum(singular, 1)[max(4 - newcomers, 0) :]
    objective = Objective(csr_array((9 + newcomers,) * 2), before, weights=SMOOTHNESS)
    found = minimize(objective, random_start(9 + newcomers, 4, seed), tolerance=1e-9, iterations=20_000)
    assert np.isclose(found.loss.smoothness, ((singular - allowed) ** 2).sum(), rtol=1e-6, atol=1e-7)


def test_minimize_from_feasible_state_without_edges_costs_nothing() -> None:
    before = random_start(12, 3)
    objective = Objective(csr_array((15, 15)), before)
    found = minimize(objective, warm_start(objective, nudge=0))
    assert found.converged
    assert (found.iterations, found.loss.total) == (0, pytest.approx(0, abs=1e-28))
    np.testing.assert_allclose(found.vectors, np.vstack([before, np.zeros((3, 3))]), atol=1e-14)


def test_minimize_from_any_start_finds_same_optimum(make_planted_graph: Any) -> None:
    objective = grown_objective(make_planted_graph)
    warm = minimize(objective)
    assert warm.converged
    assert warm.loss.total < 0.9 * warm.losses[0].total
    for seed in range(5):
        found = minimize(objective, random_start(60, 4, seed), monotone=seed % 2 == 0)
        assert found.converged
        assert np.isclose(found.loss.total, warm.loss.total, rtol=1e-8)
        np.testing.assert_allclose(found.vectors, warm.vectors, atol=1e-4)


def test_warm_start_nudge_leaves_saddle_of_zero_rows(make_planted_graph: Any) -> None:
    """Vertices without edges add no loss with any vector, so the optimum gives them the length that others avoid."""
    objective = Objective(csr_array(block_diag(make_planted_graph().toarray(), np.zeros((6, 6)))), random_start(60, 12))
    stuck = minimize(objective, warm_start(objective, nudge=0))
    free, anywhere = minimize(objective), minimize(objective, random_start(66, 12, 5))
    assert stuck.converged
    assert free.converged
    assert not stuck.vectors[60:].any()
    assert free.loss.total < 0.99 * stuck.loss.total
    assert np.isclose(free.loss.total, anywhere.loss.total, rtol=1e-6)


def test_minimize_with_smoothness_fixes_rotation(make_planted_graph: Any) -> None:
    objective = grown_objective(make_planted_graph)
    rotated = Objective(objective.adjacency, objective.before @ random_start(4, 4))
    assert np.isclose(minimize(objective).loss.total, minimize(rotated).loss.total, rtol=1e-8)
    assert not np.allclose(minimize(objective).vectors, minimize(rotated).vectors, atol=0.1)


@settings(max_examples=20)
@given(seed=SEEDS, known=st.integers(0, 12), monotone=st.booleans())
def test_descend_iterates_are_feasible_and_monotone_on_request(
    make_random_graph: Any, seed: int, known: int, monotone: bool
) -> None:
    before = np.random.default_rng(seed).standard_normal((known, 3))
    objective = Objective(make_random_graph(seed), before)
    iterates = list(islice(descend(objective, random_start(12, 3, seed), monotone=monotone), 300))
    totals = np.array([point.loss.total for point in iterates])
    assert all(orthogonality_error(point.vectors) < 1e-10 for point in iterates)
    assert totals[-1] <= totals[0]
    if monotone:
        assert (np.diff(totals) < 0).all()


@pytest.mark.parametrize("monotone", [True, False])
def test_descend_steps_satisfy_armijo_condition(
    make_planted_graph: Any, monkeypatch: pytest.MonkeyPatch, monotone: bool
) -> None:
    monkeypatch.setattr(stiefel, "SUFFICIENT_DECREASE", 0.3)  # so much that some steps must be halved
    objective = Objective(make_planted_graph(), weights=HOMOPHILY)
    iterates = list(islice(descend(objective, random_start(60, 8, 1), monotone=monotone), 120))
    totals, reference, weight = [point.loss.total for point in iterates], iterates[0].loss.total, 1.0
    for before, after in pairwise(iterates):
        assert after.loss.total < reference - 0.3 * after.step * before.gradient_norm**2
        new = 1.0 if monotone else 0.85 * weight + 1  # how many losses the running mean is worth
        reference, weight = reference + (after.loss.total - reference) / new, new
    assert (np.diff(totals) > 0).any() != monotone


def test_descend_does_not_accumulate_rounding(make_planted_graph: Any) -> None:
    """The step as printed in the paper alone loses FᵀF = I, faster with every step."""
    objective = Objective(make_planted_graph(), weights=HOMOPHILY)
    assert (
        max(orthogonality_error(point.vectors) for point in islice(descend(objective, random_start(60, 30, 3)), 2000))
        < 1e-12
    )


def test_minimize_reports_progress_and_losses(make_planted_graph: Any) -> None:
    objective, reports = grown_objective(make_planted_graph), []
    found = minimize(objective, random_start(60, 4), progress=lambda what, share: reports.append((what, share)))
    assert found.iterations == len(found.losses) - 1 == len(found.gradient_norms) - 1 == len(reports) - 1
    assert found.loss == objective.loss(found.vectors)
    assert reports[-1] == ("minimizing the objective", 1.0)
    inside = project_to_tangent(found.vectors, objective.gradient(found.vectors))
    assert np.isclose(found.gradient_norms[-1], np.linalg.norm(inside))
    assert found.gradient_norms[-1] <= 1e-6 * objective.lipschitz_bound * 2


def test_minimize_stops_at_iteration_limit(make_planted_graph: Any) -> None:
    objective, start = grown_objective(make_planted_graph), random_start(60, 4)
    short = minimize(objective, start, iterations=3)
    assert (short.iterations, short.converged) == (3, False)
    longer = minimize(objective, start, iterations=50)
    assert longer.losses[:4] == short.losses
    assert np.array_equal(start, random_start(60, 4))
    nothing = minimize(objective, start, iterations=0)
    assert np.array_equal(nothing.vectors, start)


@given(seed=SEEDS, step=st.floats(1e-3, 1e3))
def test_retract_equals_polar_factor_of_step(seed: int, step: float) -> None:
    draw = np.random.default_rng(seed)
    vectors = random_start(8, 3, seed)
    direction = project_to_tangent(vectors, draw.standard_normal((8, 3)))
    np.testing.assert_allclose(vectors.T @ direction + direction.T @ vectors, 0, atol=1e-12)
    moved = retract(vectors, direction, step)
    printed = (vectors + step * direction) @ np.linalg.inv(sqrtm(np.eye(3) + step**2 * direction.T @ direction))
    np.testing.assert_allclose(moved, printed, atol=1e-9)
    np.testing.assert_allclose(moved, polar_factor(vectors + step * direction), atol=1e-9)
    assert orthogonality_error(moved) < 1e-10


@given(seed=SEEDS)
def test_project_to_tangent_gives_slope_along_retraction(make_random_graph: Any, seed: int) -> None:
    objective, vectors, width = Objective(make_random_graph(seed), np.ones((5, 3))), random_start(12, 3, seed), 1e-5
    direction = project_to_tangent(vectors, np.random.default_rng(seed).standard_normal((12, 3)))
    ahead, behind = (objective.loss(retract(vectors, direction, sign * width)).total for sign in (1, -1))
    slope = np.vdot(project_to_tangent(vectors, objective.gradient(vectors)), direction)
    assert np.isclose((ahead - behind) / (2 * width), slope, rtol=1e-5, atol=1e-6)


def test_polar_factor_of_any_rank_is_feasible() -> None:
    draw = np.random.default_rng(0)
    full = draw.standard_normal((9, 4))
    np.testing.assert_allclose(polar_factor(full), full @ np.linalg.inv(sqrtm(full.T @ full)), atol=1e-10)
    for low in (np.zeros((9, 4)), full[:, :1] @ np.ones((1, 4)), np.eye(4)):
        assert orthogonality_error(polar_factor(low)) < 1e-12
    with pytest.raises(InvalidValueError, match="at least as many rows as columns"):
        polar_factor(np.zeros((3, 4)))


def test_warm_start_places_new_vertices_at_mean_of_neighbors() -> None:
    edges = [
        (0, 1, 1.0),
        (0, 3, 1.0),
        (1, 3, 3.0),
        (3, 4, 2.0),
    ]  # 3 and 4 are new, 4 is linked to 3 only; 5 has no edge
    dense = np.zeros((6, 6))
    for u, v, weight in edges:
        dense[u, v] = dense[v, u] = weight
    before = np.array([[1.0, 2.0], [5.0, -2.0], [0.0, 1.0]])
    objective = Objective(csr_array(dense), before)
    placed = np.vstack([before, [4.0, -1.0], np.zeros((2, 2))])
    np.testing.assert_allclose(warm_start(objective, nudge=0), polar_factor(placed), atol=1e-14)
    placed[3] = 0
    np.testing.assert_allclose(warm_start(objective, new="zero", nudge=0), polar_factor(placed), atol=1e-14)
    moved = Objective(csr_array(dense), before, np.array([4, 2, 0]))
    np.testing.assert_allclose(warm_start(moved, new="zero", nudge=0)[[4, 2, 0]], polar_factor(before), atol=1e-14)


def test_minimize_with_invalid_start_raises(make_planted_graph: Any) -> None:
    objective = Objective(make_planted_graph())
    with pytest.raises(InvalidValueError, match="no previous state"):
        minimize(objective)
    with pytest.raises(InvalidValueError, match="60 rows"):
        minimize(objective, random_start(59, 4))
    with pytest.raises(InvalidValueError, match="FᵀF = I"):
        minimize(objective, np.ones((60, 4)))
    with pytest.raises(InvalidValueError, match="new"):
        warm_start(grown_objective(make_planted_graph), new="random")


def test_minimize_agrees_with_trust_region_solver(make_planted_graph: Any) -> None:
    """Compare with a trust-region method, which is of second order and shares only the loss with `minimize`."""
    pymanopt = pytest.importorskip("pymanopt")
    objective = grown_objective(make_planted_graph)
    manifold = pymanopt.manifolds.Stiefel(60, 4)

    @pymanopt.function.numpy(manifold)
    def cost(vectors: Any) -> float:
        return objective.loss(vectors).total

    @pymanopt.function.numpy(manifold)
    def gradient(vectors: Any) -> Any:
        return objective.gradient(vectors)

    @pymanopt.function.numpy(manifold)
    def hessian(vectors: Any, direction: Any) -> Any:
        return objective.gradient(vectors + direction) - objective.gradient(vectors)  # the loss is quadratic

    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    solver = pymanopt.optimizers.TrustRegions(verbosity=0, min_gradient_norm=1e-10)
    theirs, ours = solver.run(problem, initial_point=random_start(60, 4, 7)), minimize(objective, tolerance=1e-8)
    assert np.isclose(theirs.cost, ours.loss.total, rtol=1e-9)
    np.testing.assert_allclose(theirs.point, ours.vectors, atol=1e-4)
