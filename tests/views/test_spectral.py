from __future__ import annotations

from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.errors import InvalidValueError
from ripplevec.views import operators
from ripplevec.views.base import MIN_EIGENVALUE
from ripplevec.views.operators import Operator
from ripplevec.views.spectral import MAX_POWER, SpectralView

VIEW = SpectralView(tau=0.5, diffusion=2)
SHAPES: dict[str, list[tuple[int, int]]] = {
    "nothing": [],
    "one edge": [(0, 1)],
    "star": [(0, leaf) for leaf in range(1, 12)],
    "complete": list(combinations(range(10), 2)),
    "bipartite": list(product(range(5), range(5, 10))),
    "pairs": [(2 * i, 2 * i + 1) for i in range(6)],
    "path": [(i, i + 1) for i in range(11)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("columns", [1, 3, 20])
def test_start_and_anchor_of_any_graph_are_finite(create_sample: Any, shape: str, columns: int) -> None:
    sample = create_sample(14, SHAPES[shape])
    basis = VIEW.start(sample.adjacency, 14, columns, threads=1)
    again = VIEW.start(sample.adjacency, 14, columns, threads=1)
    assert basis.rows.tobytes() == again.rows.tobytes()
    anchored = VIEW.anchor(sample.adjacency, basis.rows.astype(np.float32), basis.mu, seed=0, threads=1)
    for result in (basis, anchored):
        assert result.rows.shape == (14, columns)
        assert all(np.isfinite(part).all() for part in (result.rows, result.mu, result.center))
        assert not result.rows[~sample.active].any()
        assert not result.rows[:, result.mu < MIN_EIGENVALUE].any()  # rounding and negative values give zero columns
        assert np.abs(result.rows).max(initial=0) < 100


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), edges=st.integers(5, 80), diffusion=st.sampled_from([0, 1, 3]))
def test_start_satisfies_the_refresh_equation(random_sample: Any, seed: int, edges: int, diffusion: float) -> None:
    sample = random_sample(seed, edges=edges)
    view = SpectralView(tau=0.5, diffusion=diffusion)
    basis = view.start(sample.adjacency, sample.rows, 5, threads=1)
    np.testing.assert_allclose(sample.degree @ basis.rows / sample.active.sum(), basis.center, atol=1e-8)
    expected = sample.matrix @ basis.rows - basis.center * sample.active[:, None]
    actual = sample.row_weights(basis.tau)[:, None] * basis.rows * basis.mu
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    if basis.rows.any():
        assert np.isclose((basis.rows**2).sum() / sample.active.sum(), 1)
        lengths = np.sqrt(sample.row_weights(basis.tau) @ basis.rows**2)
        positive = np.clip(basis.mu, 0, None)
        np.testing.assert_allclose(
            lengths / lengths[0], (positive / positive[0]) ** diffusion * (positive > MIN_EIGENVALUE), atol=1e-8
        )


@pytest.mark.parametrize("view", [VIEW, SpectralView(tau_per_degree=3.0, diffusion=1)])
def test_start_is_independent_of_the_weight_unit(random_sample: Any, create_sample: Any, view: SpectralView) -> None:
    sample = random_sample(0)
    scaled = create_sample(
        30, [(u, v, 8 * sample.matrix[u, v]) for u, v in np.argwhere(np.triu(sample.matrix)).tolist()]
    )
    one, other = (view.start(s.adjacency, 30, 4, threads=1) for s in (sample, scaled))
    assert np.isclose(other.tau, 8 * one.tau)
    np.testing.assert_allclose(one.mu, other.mu, atol=1e-7)
    np.testing.assert_allclose(one.rows, other.rows, atol=1e-5)


def test_tau_is_relative_to_mean_weight_or_mean_degree(create_sample: Any) -> None:
    sample = create_sample(5, [(0, 1, 2.0), (1, 2, 4.0)])  # mean weight 3, mean strength 12/3 = 4
    assert np.isclose(SpectralView(tau=0.5).start(sample.adjacency, 5, 1, threads=1).tau, 1.5)
    assert np.isclose(SpectralView(tau_per_degree=0.5).start(sample.adjacency, 5, 1, threads=1).tau, 2.0)


def test_anchor_of_an_exact_basis_changes_nothing(community_sample: Any) -> None:
    sample = community_sample()
    basis = VIEW.start(sample.adjacency, sample.rows, 4, threads=1)
    anchored = VIEW.anchor(sample.adjacency, basis.rows.astype(np.float32), basis.mu, seed=0, threads=1)
    assert anchored.rows.dtype == np.float32
    np.testing.assert_allclose(anchored.mu, basis.mu, atol=1e-5)
    signs = np.sign((anchored.rows * basis.rows).sum(axis=0))
    np.testing.assert_allclose(anchored.rows * signs, basis.rows, atol=2e-3)


@pytest.mark.parametrize("known", [0, 2])
def test_anchors_from_empty_columns_converge(community_sample: Any, known: int) -> None:
    """Empty columns are filled with noise and converge in a few anchors."""
    sample = community_sample()
    exact = VIEW.start(sample.adjacency, sample.rows, 4, threads=1)
    rows, mu = exact.rows.astype(np.float32), exact.mu.copy()
    rows[:, known:] = mu[known:] = 0
    for anchor in range(4):
        basis = VIEW.anchor(sample.adjacency, rows, mu, seed=anchor, threads=1)
        rows, mu = basis.rows, basis.mu
    np.testing.assert_allclose(mu, exact.mu, atol=1e-3)


def test_anchor_from_rows_of_another_view_finds_fewer_columns(community_sample: Any) -> None:
    sample = community_sample()
    hubs = SpectralView(tau_per_degree=16.0, tail=0.3)
    rows = VIEW.start(sample.adjacency, sample.rows, 12, threads=1).rows.astype(np.float32)
    exact = hubs.start(sample.adjacency, sample.rows, 3, threads=1)
    assert hubs.captured_spectrum(sample.adjacency, rows[:, :3], threads=1) < 0.98 * exact.mu.sum()
    basis = hubs.anchor(sample.adjacency, rows, None, columns=3, seed=0, threads=1)
    assert basis.rows.shape == exact.rows.shape
    np.testing.assert_allclose(basis.mu, exact.mu, atol=1e-4)
    signs = np.sign((basis.rows * exact.rows).sum(axis=0))
    np.testing.assert_allclose(basis.rows * signs, exact.rows, atol=2e-2)


def test_anchor_with_outdated_eigenvalues_recovers(community_sample: Any) -> None:
    """With eigenvalues of an earlier graph that are too large, the filter first damps wanted directions too."""
    sample = community_sample()
    exact = VIEW.start(sample.adjacency, sample.rows, 6, threads=1)
    rows = exact.rows + np.random.default_rng(0).normal(0, 0.3, exact.rows.shape) * sample.active[:, None]
    before = VIEW.captured_spectrum(sample.adjacency, rows, threads=1)
    stale = np.full(6, 0.9 * float(exact.mu[0]))
    assert exact.mu.min() < 0.5 * stale[0]
    basis = VIEW.anchor(sample.adjacency, rows.astype(np.float32), stale, seed=0, threads=1)
    after = VIEW.captured_spectrum(sample.adjacency, basis.rows, threads=1)
    assert before < 0.95 * exact.mu.sum() < 0.99 * exact.mu.sum() < after


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), edges=st.integers(2, 80), columns=st.integers(1, 6), tau=st.sampled_from([0, 2]))
def test_captured_spectrum_agrees_with_dense_matrices(
    random_sample: Any, seed: int, edges: int, columns: int, tau: float
) -> None:
    """Compare Ritz values on the span of random rows, and leading eigenvalues, with dense matrices."""
    sample = random_sample(seed, edges=edges)
    view, active = SpectralView(tau=tau), np.flatnonzero(sample.active)
    basis = view.start(sample.adjacency, sample.rows, columns, threads=1)
    rows = np.random.default_rng(seed).standard_normal((sample.rows, columns))
    measure, walk = sample.row_weights(basis.tau), sample.operator_matrix(basis.tau)
    block = (rows - measure @ rows / measure.sum())[active] * np.sqrt(measure[active])[:, None]
    left, lengths, _ = np.linalg.svd(block, full_matrices=False)
    left = left[:, lengths > 1e-4 * lengths[0]]
    root = np.sqrt(measure[active])
    symmetric = walk[np.ix_(active, active)] * root[:, None] / root
    ritz = np.linalg.eigvalsh(left.T @ ((symmetric + symmetric.T) / 2) @ left)
    captured, attainable = (
        view.captured_spectrum(sample.adjacency, rows, threads=1),
        view.attainable_spectrum(sample.adjacency, sample.rows, columns, threads=1),
    )
    assert captured == pytest.approx(ritz[ritz > 0].sum(), abs=1e-6)
    assert attainable == pytest.approx(np.maximum(sample.spectrum(basis.tau)[:columns], 0).sum(), abs=1e-9)
    assert captured <= attainable + 1e-9


def test_anchor_gives_the_same_bits_for_any_number_of_threads(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 16)
    sample = community_sample()
    rows = Operator(sample.adjacency, sample.rows, 1.0).make_noise(5, 6, np.float32)
    rows[:, 4] = 0
    bases = [
        VIEW.anchor(sample.adjacency, rows.copy(), np.full(6, 0.3), seed=1, threads=threads) for threads in (1, 2, 3)
    ]
    assert len({basis.rows.tobytes() + basis.mu.tobytes() + basis.center.tobytes() for basis in bases}) == 1


@pytest.mark.parametrize("degree", [1, 4, 5])
def test_anchor_in_column_chunks_agrees_with_all_columns(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch, degree: int
) -> None:
    sample, view = community_sample(groups=12), SpectralView(tau=0.5, diffusion=2, degree=degree)
    rows = Operator(sample.adjacency, sample.rows, 1.0).make_noise(5, 40, np.float32)
    whole, parts = rows.copy(), rows.copy()
    expected = view.anchor(sample.adjacency, whole, np.full(40, 0.3), seed=1, threads=1)
    monkeypatch.setattr(operators, "WORKSPACE_BYTES", 0)
    basis = view.anchor(sample.adjacency, parts, np.full(40, 0.3), seed=1, threads=2)
    np.testing.assert_allclose(basis.mu, expected.mu, atol=1e-6)
    np.testing.assert_allclose(basis.rows @ basis.rows.T, expected.rows @ expected.rows.T, atol=1e-3)
    assert np.shares_memory(basis.rows, parts)  # no second matrix of that size


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("share", [0, -1, np.nan, np.inf, "much"]),
        ("weight", [0, -1, np.nan]),
        ("tau", [-1, np.nan, np.inf, "small"]),
        ("diffusion", [-1, np.nan]),
        ("tail", [0, -0.1, 1.5, np.nan, "long"]),
        ("tail_per_degree", [-1, np.nan]),
        ("flatten", [-0.1]),
        ("ridge", [-1]),
        ("degree", [0, -3, 1.5]),
        ("device", ["gpu", None]),
    ],
)
def test_spectral_view_with_a_bad_value_names_the_parameter(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidValueError, match=rf"SpectralView\.{name}: expected .*, got"):
            SpectralView(**{"tau": 1.0, name: value})


@pytest.mark.parametrize("both", [{}, {"tau": 1.0, "tau_per_degree": 1.0}])
def test_spectral_view_with_none_or_both_taus_raises(both: dict[str, float]) -> None:
    with pytest.raises(InvalidValueError, match="either tau or tau_per_degree"):
        SpectralView(**both)


def test_spectral_view_with_two_powers_raises() -> None:
    for name in ("tail", "tail_per_degree"):
        with pytest.raises(InvalidValueError, match="at most one of diffusion, tail and tail_per_degree"):
            SpectralView(tau=1.0, diffusion=3, **{name: 0.1})


@pytest.mark.parametrize("tail", [0.05, 0.5, 1.0])
def test_tail_sets_the_relative_length_of_the_last_column(community_sample: Any, tail: float) -> None:
    sample = community_sample()
    basis = SpectralView(tau=0.5, tail=tail).start(sample.adjacency, sample.rows, 12, threads=1)
    operator = Operator(sample.adjacency, sample.rows, basis.tau)
    lengths = operator.column_norms(basis.rows)
    np.testing.assert_allclose(lengths, np.sqrt(np.diag(operator.gram(basis.rows, basis.rows))), rtol=1e-6)
    assert lengths[-1] / lengths[0] == pytest.approx(tail, rel=1e-3)
    assert (np.diff(lengths) <= 1e-6).all()


def test_tail_per_degree_scales_with_the_mean_degree(community_sample: Any) -> None:
    sample = community_sample()
    degree = Operator(sample.adjacency, sample.rows, 0.5).mean_degree
    start = partial(SpectralView.start, adjacency=sample.adjacency, rows=sample.rows, columns=12, threads=1)
    same = start(SpectralView(tau=0.5, tail=0.1)), start(SpectralView(tau=0.5, tail_per_degree=0.1 / degree))
    np.testing.assert_allclose(same[0].rows, same[1].rows, rtol=1e-5, atol=1e-6)
    even = start(SpectralView(tau=0.5, tail=1.0)), start(SpectralView(tau=0.5, tail_per_degree=9.0))
    np.testing.assert_allclose(even[0].rows, even[1].rows, rtol=1e-5, atol=1e-6)


def test_power_of_a_flat_spectrum_is_bounded() -> None:
    view = SpectralView(tau=0.5, tail=0.1)
    assert view._power(np.ones(5), 4.0) == view._power(np.zeros(0), 4.0) == MAX_POWER
