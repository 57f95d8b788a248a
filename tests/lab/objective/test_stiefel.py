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
    Objective,
    Weights,
    descend,
    minimize,
    polar,
    random_start,
    retract,
    smoothness,
    stiefel,
    tangent,
    warm_start,
)

SEEDS = st.integers(0, 2**32 - 1)
HOMOPHILY, SMOOTHNESS = Weights(0.0, 1.0), Weights(1.0, 0.0)


def off(vectors: Any) -> float:
    """How far FᵀF is from I."""
    return float(np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max())


def streamed(planted: Any, known: int = 50, columns: int = 4) -> Objective:
    """The planted graph after the last vertices came to the optimum of the first ones."""
    adjacency = planted()
    first = minimize(Objective(adjacency[:known, :known]), random_start(known, columns)).vectors
    return Objective(adjacency, first)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_homophily_alone_is_solved_by_eigenvectors(planted: Any, laplacian: Any, seed: int, monotone: bool) -> None:
    adjacency = planted()
    values, exact = np.linalg.eigh(laplacian(adjacency))
    assert values[4] > 5 * values[3]  # a gap: the subspace is unique
    found = minimize(Objective(adjacency, weights=HOMOPHILY), random_start(60, 4, seed), monotone=monotone)
    assert found.converged
    assert np.isclose(found.loss.homophily, values[:4].sum(), rtol=1e-8)
    assert subspace_angles(found.vectors, exact[:, :4]).max() < 1e-4


@settings(max_examples=20)
@given(seed=SEEDS, columns=st.integers(1, 6))
def test_homophily_alone_is_the_sum_of_the_smallest_eigenvalues(
    randomly: Any, laplacian: Any, seed: int, columns: int
) -> None:
    adjacency = randomly(seed, vertices=14, edges=40)
    found = minimize(Objective(adjacency, weights=HOMOPHILY), random_start(14, columns, seed), iterations=5000)
    values = np.linalg.eigvalsh(laplacian(adjacency))
    assert abs(found.loss.homophily - values[:columns].sum()) < 1e-6 * values[-1]


@settings(max_examples=20)
@given(seed=SEEDS, columns=st.integers(1, 5), monotone=st.booleans())
def test_smoothness_alone_is_solved_by_the_polar_factor(seed: int, columns: int, monotone: bool) -> None:
    before = np.random.default_rng(seed).standard_normal((12, columns))
    objective = Objective(csr_array((12, 12)), before, weights=SMOOTHNESS)
    found = minimize(objective, random_start(12, columns, seed), tolerance=1e-9, iterations=20_000, monotone=monotone)
    nearest = ((np.linalg.svd(before, compute_uv=False) - 1) ** 2).sum()
    assert np.isclose(found.loss.smoothness, nearest, rtol=1e-9, atol=1e-9)
    assert np.isclose(smoothness(polar(before), before), nearest)


@settings(max_examples=20)
@given(seed=SEEDS, newcomers=st.integers(1, 6))
def test_newcomers_let_the_old_keep_what_is_short(seed: int, newcomers: int) -> None:
    """With r free rows, JF may be any U diag(s) Vᵀ with s ≤ 1 of which at most r are below: the r smallest of P's."""
    before = np.random.default_rng(seed).standard_normal((9, 4)) / 3
    singular = np.linalg.svd(before, compute_uv=False)
    allowed = np.ones(4)
    allowed[max(4 - newcomers, 0) :] = np.minimum(singular, 1)[max(4 - newcomers, 0) :]
    objective = Objective(csr_array((9 + newcomers,) * 2), before, weights=SMOOTHNESS)
    found = minimize(objective, random_start(9 + newcomers, 4, seed), tolerance=1e-9, iterations=20_000)
    assert np.isclose(found.loss.smoothness, ((singular - allowed) ** 2).sum(), rtol=1e-6, atol=1e-7)


def test_a_state_that_is_feasible_costs_nothing_in_smoothness() -> None:
    before = random_start(12, 3)
    objective = Objective(csr_array((15, 15)), before)
    found = minimize(objective, warm_start(objective, nudge=0))
    assert found.converged
    assert (found.iterations, found.loss.total) == (0, pytest.approx(0, abs=1e-28))
    np.testing.assert_allclose(found.vectors, np.vstack([before, np.zeros((3, 3))]), atol=1e-14)


def test_where_it_starts_does_not_matter(planted: Any) -> None:
    objective = streamed(planted)
    warm = minimize(objective)
    assert warm.converged
    assert warm.loss.total < 0.9 * warm.losses[0].total
    for seed in range(5):
        found = minimize(objective, random_start(60, 4, seed), monotone=seed % 2 == 0)
        assert found.converged
        assert np.isclose(found.loss.total, warm.loss.total, rtol=1e-8)
        np.testing.assert_allclose(found.vectors, warm.vectors, atol=1e-4)


def test_rows_of_zeros_are_a_saddle_that_a_nudge_leaves(planted: Any) -> None:
    """Vertices without edges cost nothing wherever they are, so vectors there spare the others."""
    objective = Objective(csr_array(block_diag(planted().toarray(), np.zeros((6, 6)))), random_start(60, 12))
    stuck = minimize(objective, warm_start(objective, nudge=0))
    free, anywhere = minimize(objective), minimize(objective, random_start(66, 12, 5))
    assert stuck.converged
    assert free.converged
    assert not stuck.vectors[60:].any()
    assert free.loss.total < 0.99 * stuck.loss.total
    assert np.isclose(free.loss.total, anywhere.loss.total, rtol=1e-6)


def test_smoothness_takes_the_freedom_to_turn(planted: Any) -> None:
    objective = streamed(planted)
    turned = Objective(objective.adjacency, objective.before @ random_start(4, 4))
    assert np.isclose(minimize(objective).loss.total, minimize(turned).loss.total, rtol=1e-8)
    assert not np.allclose(minimize(objective).vectors, minimize(turned).vectors, atol=0.1)


@settings(max_examples=20)
@given(seed=SEEDS, known=st.integers(0, 12), monotone=st.booleans())
def test_every_iterate_is_feasible_and_none_is_worse_when_monotone(
    randomly: Any, seed: int, known: int, monotone: bool
) -> None:
    before = np.random.default_rng(seed).standard_normal((known, 3))
    objective = Objective(randomly(seed), before)
    way = list(islice(descend(objective, random_start(12, 3, seed), monotone=monotone), 300))
    totals = np.array([point.loss.total for point in way])
    assert all(off(point.vectors) < 1e-10 for point in way)
    assert totals[-1] <= totals[0]
    if monotone:
        assert (np.diff(totals) < 0).all()


@pytest.mark.parametrize("monotone", [True, False])
def test_every_step_brings_its_share_of_the_promised_descent(
    planted: Any, monkeypatch: pytest.MonkeyPatch, monotone: bool
) -> None:
    monkeypatch.setattr(stiefel, "SUFFICIENT", 0.3)  # so much that some steps must be halved
    objective = Objective(planted(), weights=HOMOPHILY)
    way = list(islice(descend(objective, random_start(60, 8, 1), monotone=monotone), 120))
    totals, reference, seen = [point.loss.total for point in way], way[0].loss.total, 1.0
    for before, after in pairwise(way):
        assert after.loss.total < reference - 0.3 * after.step * before.gradient_norm**2
        new = 1.0 if monotone else 0.85 * seen + 1  # how many losses the running mean is worth
        reference, seen = reference + (after.loss.total - reference) / new, new
    assert (np.diff(totals) > 0).any() != monotone


def test_rounding_does_not_add_up(planted: Any) -> None:
    """The printed step alone loses FᵀF = I at a rate that grows with the number of steps."""
    objective = Objective(planted(), weights=HOMOPHILY)
    assert max(off(point.vectors) for point in islice(descend(objective, random_start(60, 30, 3)), 2000)) < 1e-12


def test_the_way_is_reported(planted: Any) -> None:
    objective, said = streamed(planted), []
    found = minimize(objective, random_start(60, 4), progress=lambda what, share: said.append((what, share)))
    assert found.iterations == len(found.losses) - 1 == len(found.gradient_norms) - 1 == len(said) - 1
    assert found.loss == objective.loss(found.vectors)
    assert said[-1] == ("minimizing the objective", 1.0)
    inside = tangent(found.vectors, objective.gradient(found.vectors))
    assert np.isclose(found.gradient_norms[-1], np.linalg.norm(inside))
    assert found.gradient_norms[-1] <= 1e-6 * objective.steepness * 2


def test_it_stops_when_told_to(planted: Any) -> None:
    objective, start = streamed(planted), random_start(60, 4)
    short = minimize(objective, start, iterations=3)
    assert (short.iterations, short.converged) == (3, False)
    longer = minimize(objective, start, iterations=50)
    assert longer.losses[:4] == short.losses
    assert np.array_equal(start, random_start(60, 4))
    nothing = minimize(objective, start, iterations=0)
    assert np.array_equal(nothing.vectors, start)


@given(seed=SEEDS, step=st.floats(1e-3, 1e3))
def test_a_retraction_is_the_polar_factor_of_the_step(seed: int, step: float) -> None:
    draw = np.random.default_rng(seed)
    vectors = random_start(8, 3, seed)
    direction = tangent(vectors, draw.standard_normal((8, 3)))
    np.testing.assert_allclose(vectors.T @ direction + direction.T @ vectors, 0, atol=1e-12)
    moved = retract(vectors, direction, step)
    printed = (vectors + step * direction) @ np.linalg.inv(sqrtm(np.eye(3) + step**2 * direction.T @ direction))
    np.testing.assert_allclose(moved, printed, atol=1e-9)
    np.testing.assert_allclose(moved, polar(vectors + step * direction), atol=1e-9)
    assert off(moved) < 1e-10


@given(seed=SEEDS)
def test_a_tangent_gradient_is_the_slope_along_the_curve(randomly: Any, seed: int) -> None:
    objective, vectors, width = Objective(randomly(seed), np.ones((5, 3))), random_start(12, 3, seed), 1e-5
    direction = tangent(vectors, np.random.default_rng(seed).standard_normal((12, 3)))
    ahead, behind = (objective.loss(retract(vectors, direction, sign * width)).total for sign in (1, -1))
    slope = np.vdot(tangent(vectors, objective.gradient(vectors)), direction)
    assert np.isclose((ahead - behind) / (2 * width), slope, rtol=1e-5, atol=1e-6)


def test_a_polar_factor_is_feasible_whatever_the_rank() -> None:
    draw = np.random.default_rng(0)
    full = draw.standard_normal((9, 4))
    np.testing.assert_allclose(polar(full), full @ np.linalg.inv(sqrtm(full.T @ full)), atol=1e-10)
    for low in (np.zeros((9, 4)), full[:, :1] @ np.ones((1, 4)), np.eye(4)):
        assert off(polar(low)) < 1e-12
    with pytest.raises(InvalidValueError, match="at least as many rows as columns"):
        polar(np.zeros((3, 4)))


def test_a_warm_start_puts_newcomers_between_their_neighbors() -> None:
    edges = [(0, 1, 1.0), (0, 3, 1.0), (1, 3, 3.0), (3, 4, 2.0)]  # 3 and 4 are new, 4 knows only 3; 5 knows nobody
    dense = np.zeros((6, 6))
    for u, v, weight in edges:
        dense[u, v] = dense[v, u] = weight
    before = np.array([[1.0, 2.0], [5.0, -2.0], [0.0, 1.0]])
    objective = Objective(csr_array(dense), before)
    placed = np.vstack([before, [4.0, -1.0], np.zeros((2, 2))])
    np.testing.assert_allclose(warm_start(objective, nudge=0), polar(placed), atol=1e-14)
    placed[3] = 0
    np.testing.assert_allclose(warm_start(objective, new="zero", nudge=0), polar(placed), atol=1e-14)
    moved = Objective(csr_array(dense), before, np.array([4, 2, 0]))
    np.testing.assert_allclose(warm_start(moved, new="zero", nudge=0)[[4, 2, 0]], polar(before), atol=1e-14)


def test_bad_starts_are_refused(planted: Any) -> None:
    objective = Objective(planted())
    with pytest.raises(InvalidValueError, match="no state before"):
        minimize(objective)
    with pytest.raises(InvalidValueError, match="60 rows"):
        minimize(objective, random_start(59, 4))
    with pytest.raises(InvalidValueError, match="FᵀF = I"):
        minimize(objective, np.ones((60, 4)))
    with pytest.raises(InvalidValueError, match="new"):
        warm_start(streamed(planted), new="random")


def test_another_solver_finds_the_same(planted: Any) -> None:
    """Trust regions: second order, another retraction, nothing in common but the loss."""
    pymanopt = pytest.importorskip("pymanopt")
    objective = streamed(planted)
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
