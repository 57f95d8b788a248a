"""Neighbor sums and the local step compared with NumPy, in single and in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.rules import _gather_kernels as kernels

UNLIMITED = 1 << 60


@pytest.fixture(params=["float32", "float16"])
def state(request: pytest.FixtureRequest, engine_of: Any, edges_of: Any) -> kernels.KernelState:
    engine = engine_of(edges_of(1, edges=300), dim=8, storage=request.param)
    return engine.rule.kernel_state(engine.store)


def vectors_of(state: kernels.KernelState) -> np.ndarray:
    rows = state.vectors
    return (rows.view(np.float16) if rows.dtype == np.uint16 else rows).astype(np.float64)


def neighbors_of(state: kernels.KernelState, row: int) -> tuple[np.ndarray, np.ndarray]:
    slots = slice(state.links.begin[row], state.links.begin[row] + state.links.degree[row])
    return state.links.neighbor[slots], state.links.weight[slots].astype(np.float64)


def test_gather_sums_all_neighbors(state: kernels.KernelState) -> None:
    total = np.empty(8, np.float32)
    for row in np.flatnonzero(state.links.degree)[:20]:
        others, weights = neighbors_of(state, row)
        sums = kernels.gather(state, row, UNLIMITED, np.uint64(1), total)
        np.testing.assert_allclose(total, weights @ vectors_of(state)[others], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(sums, [weights.sum(), (weights**2).sum()], rtol=1e-6)


def test_gather_above_the_limit_scales_a_sample_to_the_strength(state: kernels.KernelState) -> None:
    total = np.empty(8, np.float32)
    row = int(np.argmax(state.links.degree))
    sum_a, _ = kernels.gather(state, row, 2, np.uint64(1), total)
    assert sum_a == pytest.approx(state.links.strength[row])


@pytest.mark.parametrize("unplaced", [0, 1, 3])
def test_gather_placed_sums_earlier_placed_neighbors_only(state: kernels.KernelState, unplaced: int) -> None:
    total = np.empty(8, np.float32)
    row = int(np.argmax(state.links.degree))
    others, weights = neighbors_of(state, row)
    state.placed[others[:unplaced]] = 0
    before = int(np.sort(state.arrival[others])[len(others) // 2])
    used = (state.placed[others] == 1) & (state.arrival[others] < before)
    sums = kernels.gather_placed(state, row, before, total)
    np.testing.assert_allclose(total, weights[used] @ vectors_of(state)[others[used]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sums, [weights[used].sum(), (weights[used] ** 2).sum()], rtol=1e-6)


def test_local_step_follows_the_equation_of_the_method(state: kernels.KernelState) -> None:
    total, coefficients = np.linspace(-2, 2, 8, dtype=np.float32), state.coefficients
    out = np.zeros(8, state.vectors.dtype)
    kernels.local_step(coefficients, total, 5.0, 7.0, out)
    mu, center = coefficients.per_column.astype(np.float64)
    views = np.repeat(coefficients.per_view, np.diff(coefficients.bounds), axis=0)
    ratio = views[:, 2] * 7.0 / 25.0
    z = (total - center) / ((5.0 + views[:, 0]) * views[:, 1])
    expected = z * mu * (1 + ratio) / (mu**2 + ratio)
    got = out.view(np.float16).astype(np.float64) if out.dtype == np.uint16 else out
    np.testing.assert_allclose(got, expected, rtol=2e-3 if out.dtype == np.uint16 else 1e-5, atol=1e-6)


def test_prefetch_rows_changes_nothing(state: kernels.KernelState) -> None:
    rows = np.flatnonzero(state.links.degree).astype(np.int64)
    before = state.vectors.copy()
    for i in range(rows.size):
        kernels.prefetch_rows(state, rows, i, bool(i % 2))
    assert np.array_equal(state.vectors, before)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e30, 3e38])
def test_local_step_of_a_long_row_keeps_direction_and_bound(state: kernels.KernelState, size: float) -> None:
    """This also holds if squares, or the row itself, overflow single precision."""
    coefficients = state.coefficients._replace(per_view=state.coefficients.per_view.copy())
    coefficients.per_view[:, 3], coefficients.per_view[:, 4] = 2.0, 2.0 / np.sqrt(np.diff(coefficients.bounds))
    total = (size * np.linspace(-1, 1, 8)).astype(np.float32)
    out = np.zeros(8, state.vectors.dtype)
    shortened = kernels.local_step(coefficients, total, 1e-30, 1e-60, out)
    mu, center = coefficients.per_column.astype(np.float64)
    views = np.repeat(coefficients.per_view, np.diff(coefficients.bounds), axis=0)
    row = (total - center) / ((1e-30 + views[:, 0]) * views[:, 1]) * mu * (1 + views[:, 2]) / (mu**2 + views[:, 2])
    parts = [slice(first, last) for first, last in zip(coefficients.bounds, coefficients.bounds[1:], strict=False)]
    lengths = [np.linalg.norm(row[part]) for part in parts]
    for part, length in zip(parts, lengths, strict=True):
        row[part] *= min(1.0, 2.0 / length)
    got = out.view(np.float16).astype(np.float64) if out.dtype == np.uint16 else out
    np.testing.assert_allclose(got, row, rtol=2e-3, atol=2e-3)
    assert shortened == any(length > 2.0 for length in lengths)


def test_local_step_from_a_nonfinite_sum_is_zero(state: kernels.KernelState) -> None:
    out = np.ones(8, state.vectors.dtype)
    assert kernels.local_step(state.coefficients, np.full(8, np.nan, np.float32), 1.0, 1.0, out) == 1
    assert not out.any()
