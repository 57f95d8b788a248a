"""Sums over neighbors and the step they lead to, against plain NumPy, in single and in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.rules import _gather_kernels as kernels

EVERYBODY = 1 << 60


@pytest.fixture(params=["float32", "float16"])
def world(request: pytest.FixtureRequest, engine_of: Any, edges_of: Any) -> kernels.World:
    engine = engine_of(edges_of(1, edges=300), dim=8, storage=request.param)
    return engine.rule.world(engine.field)


def numbers(world: kernels.World) -> np.ndarray:
    kept = world.vectors
    return (kept.view(np.float16) if kept.dtype == np.uint16 else kept).astype(np.float64)


def around(world: kernels.World, row: int) -> tuple[np.ndarray, np.ndarray]:
    slots = slice(world.links.begin[row], world.links.begin[row] + world.links.count[row])
    return world.links.neighbor[slots], world.links.weight[slots].astype(np.float64)


def test_all_neighbors_are_added_up(world: kernels.World) -> None:
    total = np.empty(8, np.float32)
    for row in np.flatnonzero(world.links.count)[:20]:
        others, weights = around(world, row)
        sums = kernels.gather(world, row, EVERYBODY, np.uint64(1), total)
        np.testing.assert_allclose(total, weights @ numbers(world)[others], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(sums, [weights.sum(), (weights**2).sum()], rtol=1e-6)


def test_of_too_many_a_sample_is_scaled_up_to_the_strength(world: kernels.World) -> None:
    total = np.empty(8, np.float32)
    row = int(np.argmax(world.links.count))
    sum_a, _ = kernels.gather(world, row, 2, np.uint64(1), total)
    assert sum_a == pytest.approx(world.links.strength[row])


@pytest.mark.parametrize("without", [0, 1, 3])
def test_only_those_that_are_placed_and_came_before_are_added(world: kernels.World, without: int) -> None:
    total = np.empty(8, np.float32)
    row = int(np.argmax(world.links.count))
    others, weights = around(world, row)
    world.placed[others[:without]] = 0
    before = int(np.sort(world.arrival[others])[len(others) // 2])
    kept = (world.placed[others] == 1) & (world.arrival[others] < before)
    sums = kernels.gather_placed(world, row, before, total)
    np.testing.assert_allclose(total, weights[kept] @ numbers(world)[others[kept]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sums, [weights[kept].sum(), (weights[kept] ** 2).sum()], rtol=1e-6)


def test_the_step_is_the_one_of_the_method(world: kernels.World) -> None:
    total, frame = np.linspace(-2, 2, 8, dtype=np.float32), world.frame
    out = np.zeros(8, world.vectors.dtype)
    kernels.step(frame, total, 5.0, 7.0, out)
    mu, center = frame.columns.astype(np.float64)
    views = np.repeat(frame.views, np.diff(frame.bounds), axis=0)
    ratio = views[:, 2] * 7.0 / 25.0
    z = (total - center) / ((5.0 + views[:, 0]) * views[:, 1])
    expected = z * mu * (1 + ratio) / (mu**2 + ratio)
    got = out.view(np.float16).astype(np.float64) if out.dtype == np.uint16 else out
    np.testing.assert_allclose(got, expected, rtol=2e-3 if out.dtype == np.uint16 else 1e-5, atol=1e-6)


def test_to_look_ahead_changes_nothing(world: kernels.World) -> None:
    rows = np.flatnonzero(world.links.count).astype(np.int64)
    before = world.vectors.copy()
    for i in range(rows.size):
        kernels.look_ahead(world, rows, i, bool(i % 2))
    assert np.array_equal(world.vectors, before)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e30, 3e38])
def test_step_that_makes_a_long_row_keeps_its_direction_and_the_bound(world: kernels.World, size: float) -> None:
    """Also where squares, or the row itself, would not fit into single precision."""
    frame = world.frame._replace(views=world.frame.views.copy())
    frame.views[:, 3], frame.views[:, 4] = 2.0, 2.0 / np.sqrt(np.diff(frame.bounds))
    total = (size * np.linspace(-1, 1, 8)).astype(np.float32)
    out = np.zeros(8, world.vectors.dtype)
    shortened = kernels.step(frame, total, 1e-30, 1e-60, out)
    mu, center = frame.columns.astype(np.float64)
    views = np.repeat(frame.views, np.diff(frame.bounds), axis=0)
    row = (total - center) / ((1e-30 + views[:, 0]) * views[:, 1]) * mu * (1 + views[:, 2]) / (mu**2 + views[:, 2])
    parts = [slice(first, last) for first, last in zip(frame.bounds, frame.bounds[1:], strict=False)]
    lengths = [np.linalg.norm(row[part]) for part in parts]
    for part, length in zip(parts, lengths, strict=True):
        row[part] *= min(1.0, 2.0 / length)
    got = out.view(np.float16).astype(np.float64) if out.dtype == np.uint16 else out
    np.testing.assert_allclose(got, row, rtol=2e-3, atol=2e-3)
    assert shortened == any(length > 2.0 for length in lengths)


def test_step_from_a_sum_that_is_not_finite_is_zero(world: kernels.World) -> None:
    out = np.ones(8, world.vectors.dtype)
    assert kernels.step(world.frame, np.full(8, np.nan, np.float32), 1.0, 1.0, out) == 1
    assert not out.any()
