from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev as polynomials
from scipy.linalg import subspace_angles
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from ripplevec.views import solvers
from ripplevec.views.operators import Operator
from ripplevec.views.solvers import (
    apply_chebyshev_filter,
    fix_signs,
    lanczos_all_copies,
    rayleigh_ritz,
    solve_leading_eigenpairs,
)

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=40)
@given(
    seed=SEEDS,
    vertices=st.integers(1, 30),
    edges=st.integers(0, 60),
    columns=st.integers(1, 8),
    tau=st.sampled_from([0.01, 0.5, 30.0]),
)
def test_solve_leading_eigenpairs_agrees_with_the_dense_matrix(
    random_sample: Any, seed: int, vertices: int, edges: int, columns: int, tau: float
) -> None:
    sample = random_sample(seed, vertices, edges)
    operator = Operator(sample.adjacency, sample.rows, tau)
    mu, vectors = solve_leading_eigenpairs(operator, columns)
    count = min(columns, max(operator.active_count - 1, 0))
    assert vectors.shape == (vertices, columns)
    assert not vectors[~sample.active].any()
    assert not vectors[:, count:].any()
    assert not mu[count:].any()
    if count:
        np.testing.assert_allclose(mu[:count], sample.spectrum(tau)[:count], atol=1e-9)
    np.testing.assert_allclose(operator.apply(vectors), vectors * mu, atol=1e-7)
    np.testing.assert_allclose(operator.gram(vectors, vectors), np.diag(np.arange(columns) < count), atol=1e-8)


def test_solve_leading_eigenpairs_iteratively_agrees_and_is_deterministic(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = community_sample()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    exact, expected = solve_leading_eigenpairs(operator, 4)
    assert sample.rows <= solvers.MAX_DENSE_SIZE
    monkeypatch.setattr(solvers, "MAX_DENSE_SIZE", 0)
    mu, vectors = solve_leading_eigenpairs(operator, 4)
    again = solve_leading_eigenpairs(operator, 4)
    assert mu.tobytes() == again[0].tobytes()
    assert vectors.tobytes() == again[1].tobytes()
    np.testing.assert_allclose(mu, exact, atol=1e-3)
    root = np.sqrt(operator.row_weights)[:, None]
    assert subspace_angles(root * vectors, root * expected).max() < 0.05


def iterate_subspace(operator: Operator, columns: int, progress: Any = None) -> Any:
    """Solve a small problem by subspace iteration, as if it were too large for the dense solver."""
    assert operator.active_count > 2 * columns + 2  # below that, the dense solver is always used
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers, "MAX_DENSE_SIZE", 0)
        return solve_leading_eigenpairs(operator, columns, progress)


@settings(max_examples=40)
@given(seed=SEEDS, edges=st.integers(60, 400), columns=st.integers(1, 8), tau=st.sampled_from([0.01, 0.5, 300.0]))
def test_iterate_subspace_converges_on_random_graphs(
    random_sample: Any, seed: int, edges: int, columns: int, tau: float
) -> None:
    sample = random_sample(seed, 100, edges)
    operator, exact = Operator(sample.adjacency, sample.rows, tau), sample.spectrum(tau)[:columns]
    mu, vectors = iterate_subspace(operator, columns)
    assert not vectors[~sample.active].any()
    assert (mu <= exact + 1e-5).all()
    assert abs(mu.sum() - exact.sum()) < 2e-3 * exact.sum()
    np.testing.assert_allclose(operator.gram(vectors, vectors), np.eye(columns), atol=1e-4)


def test_iterate_subspace_finds_repeated_eigenvalues(create_sample: Any) -> None:
    """Forty rings of five vertices: every eigenvalue has multiplicity 40 or 80."""
    rings = [(5 * ring + here, 5 * ring + (here + 1) % 5) for ring in range(40) for here in range(5)]
    sample = create_sample(200, rings)
    mu, _ = iterate_subspace(Operator(sample.adjacency, 200, 0.25), 60)
    np.testing.assert_allclose(mu, sample.spectrum(0.25)[:60], atol=2e-3)


@pytest.mark.parametrize("edges", [[(0, v) for v in range(1, 40)], [(u, v) for u in range(40) for v in range(u)]])
def test_iterate_subspace_handles_spectra_of_few_values(create_sample: Any, edges: list[tuple[int, int]]) -> None:
    sample = create_sample(40, edges)  # a star, and a complete graph
    mu, vectors = iterate_subspace(Operator(sample.adjacency, 40, 0.25), 5)
    np.testing.assert_allclose(mu, sample.spectrum(0.25)[:5], atol=1e-5)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("solver", ["subspace", "lanczos"])
def test_solvers_report_progress(community_sample: Any, solver: str) -> None:
    sample, reports = community_sample(groups=3, inside=3, across=200), []

    def progress(step: str, share: float) -> None:
        reports.append((step, share))

    if solver == "subspace":
        iterate_subspace(Operator(sample.adjacency, sample.rows, 0.5), 10, progress)
    else:
        lanczos_all_copies(lambda y: sample.matrix @ y, sample.rows, 10, 100.0, progress)
    assert reports
    assert {step for step, _ in reports} == {"start"}
    shares = [share for _, share in reports]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1


@pytest.mark.parametrize("converged", [0, 1, 2])
def test_lanczos_all_copies_without_convergence_searches_the_rest(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch, converged: int
) -> None:
    """Runs that return only some of the pairs are repeated; without any pair there is nothing to continue from."""

    def fail_to_converge(*args: Any, **options: Any) -> Any:
        values, vectors = eigsh(*args, **options)
        raise ArpackNoConvergence("no", values[-converged:][:converged], vectors[:, -converged:][:, :converged])

    matrix, count = community_sample().matrix, 4 if converged else 0
    monkeypatch.setattr(solvers, "eigsh", fail_to_converge)
    values, vectors = lanczos_all_copies(lambda y: matrix @ y, len(matrix), 4, 100.0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:count], atol=1e-7)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-6)


def test_lanczos_all_copies_finds_every_copy_of_repeated_eigenvalues() -> None:
    draw = np.random.default_rng(0)
    block = draw.standard_normal((30, 30))
    matrix = np.kron(np.eye(9), block + block.T)  # every eigenvalue nine times
    values, vectors = lanczos_all_copies(lambda y: matrix @ y, len(matrix), 25, 100.0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:25], atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(25), atol=1e-9)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-5)


@settings(max_examples=25)
@given(seed=SEEDS, degree=st.integers(1, 6), low=st.floats(-1, -0.2), high=st.floats(0.1, 0.6))
def test_apply_chebyshev_filter_agrees_with_the_polynomial(
    random_sample: Any, seed: int, degree: int, low: float, high: float
) -> None:
    sample, draw = random_sample(seed), np.random.default_rng(seed)
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = draw.standard_normal((sample.rows, 3)) * sample.active[:, None]
    mapped = (2 * sample.operator_matrix(0.5) - (high + low) * np.diag(sample.active.astype(float))) / (high - low)
    coefficients = polynomials.cheb2poly([0] * degree + [1])
    expected = sum(c * np.linalg.matrix_power(mapped, power) @ block for power, c in enumerate(coefficients))
    apply_chebyshev_filter(operator, block, low, high, degree)
    np.testing.assert_allclose(block, expected, rtol=1e-7, atol=1e-6)


def test_rayleigh_ritz_values_increase_toward_eigenvalues(community_sample: Any) -> None:
    sample = community_sample()
    operator, exact = Operator(sample.adjacency, sample.rows, 0.5), sample.spectrum(0.5)[:4]
    block = operator.make_noise(0, 4, np.float64)
    operator.deflate(block)
    values = rayleigh_ritz(operator, block)
    for _ in range(10):
        apply_chebyshev_filter(operator, block, -1.0, 0.6, 4)
        better = rayleigh_ritz(operator, block)
        assert (better >= values - 1e-9).all()
        assert (better <= exact + 1e-9).all()
        values = better
    np.testing.assert_allclose(values, exact, atol=1e-7)
    np.testing.assert_allclose(operator.gram(block, block), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(operator.apply(block), block * values, atol=1e-4)


def test_rayleigh_ritz_with_and_without_cholesky_agrees(community_sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = community_sample()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = operator.make_noise(2, 4, np.float64) @ np.array(
        [[1e4, 1, 0, 2], [0, 3, 1, 1], [0, 0, 1e-2, 1], [0, 0, 0, 1]]
    )
    operator.deflate(block)
    vectors, same = block.copy(), block.copy()
    values = rayleigh_ritz(operator, vectors)
    monkeypatch.setattr(solvers, "CHOLESKY_TOLERANCE", 2.0)  # no block is accepted
    others = rayleigh_ritz(operator, same)
    np.testing.assert_allclose(values, others, atol=1e-9)
    np.testing.assert_allclose(np.abs(operator.gram(vectors, same)), np.eye(4), atol=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_rayleigh_ritz_of_a_rank_deficient_block_gives_zero_columns(community_sample: Any, rank: int) -> None:
    sample = community_sample()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = np.zeros((sample.rows, 5))
    if rank:
        basis = operator.make_noise(1, rank, np.float64)
        block = basis @ np.random.default_rng(0).standard_normal((rank, 5))
        operator.deflate(block)
    values = rayleigh_ritz(operator, block)
    assert values.shape == (5,)
    assert block[:, :rank].any(axis=0).all()
    assert not block[:, rank:].any()
    assert not values[rank:].any()
    np.testing.assert_allclose(operator.gram(block, block), np.diag(np.arange(5) < rank), atol=1e-6)


@given(seed=SEEDS, columns=st.integers(0, 4))
def test_fix_signs_makes_the_largest_entry_positive(seed: int, columns: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((6, columns))
    fixed = fix_signs(vectors)
    assert np.array_equal(np.abs(fixed), np.abs(vectors))
    assert np.array_equal(fixed, fix_signs(-vectors))
    assert (np.abs(fixed).max(axis=0, initial=0) == fixed.max(axis=0, initial=0)).all()
