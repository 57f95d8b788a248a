from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.views import _kernels as kernels
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.aligned_matrix import as_strided_columns

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(seed=SEEDS, factors=st.tuples(*[st.floats(-2, 2)] * 3), tau=st.floats(0, 5))
def test_combine_agrees_with_the_dense_operator(
    random_sample: Any, seed: int, factors: tuple[float, float, float], tau: float
) -> None:
    sample, draw = random_sample(seed), np.random.default_rng(seed)
    source, target = draw.standard_normal((2, sample.rows, 3))
    source[~sample.active] = 0
    center = sample.degree @ source / sample.active.sum()
    expected = factors[0] * sample.operator_matrix(tau) @ source + factors[1] * source + factors[2] * target
    expected[~sample.active] = 0
    before = target.copy()
    read, write = as_strided_columns(source), as_strided_columns(target)
    kernels.combine(sample.adjacency.links, read, center, tau + 1e-9, factors, write, 4, 17)
    np.testing.assert_allclose(target[4:17], expected[4:17], atol=1e-6)
    assert np.array_equal(np.delete(target, slice(4, 17), 0), np.delete(before, slice(4, 17), 0))


@settings(max_examples=25)
@given(seed=SEEDS, edges=st.integers(0, 400), first=st.integers(0, 30), width=st.integers(1, 40))
def test_combine_of_some_columns_gives_the_same_bits_as_of_all(
    random_sample: Any, seed: int, edges: int, first: int, width: int
) -> None:
    sample, draw = random_sample(seed, edges=edges), np.random.default_rng(seed)
    source, target = draw.standard_normal((2, sample.rows, 70)).astype(np.float32)
    center, part = draw.standard_normal(70), slice(first, first + width)
    separate, rest = target[:, part].copy(), target.copy()
    inputs = sample.adjacency.links, 0.5, (1.5, -0.5, 2.0)
    for read, shift, write in (
        (source, center, target),
        (source[:, part], center[part], separate),
        (np.ascontiguousarray(source[:, part]), center[part], rest[:, part]),
    ):
        links, tau, factors = inputs
        kernels.combine(links, as_strided_columns(read), shift, tau, factors, as_strided_columns(write), 0, sample.rows)
    assert separate.tobytes() == target[:, part].tobytes() == rest[:, part].tobytes()


@settings(max_examples=25)
@given(seed=SEEDS, edges=st.integers(0, 200))
def test_multiply_vector_agrees_with_the_dense_product(random_sample: Any, seed: int, edges: int) -> None:
    sample, source = random_sample(seed, edges=edges), np.random.default_rng(seed).standard_normal(30)
    target = np.full(30, np.nan)
    kernels.multiply_vector(sample.adjacency.links, source, target, 4, 17)
    np.testing.assert_allclose(target[4:17], (sample.matrix @ source)[4:17], atol=1e-9)
    assert np.isnan(np.delete(target, slice(4, 17))).all()


@settings(max_examples=25)
@given(seed=SEEDS, tau=st.floats(0, 5))
def test_sum_and_subtract_kernels_skip_rows_without_edges(random_sample: Any, seed: int, tau: float) -> None:
    sample, draw = random_sample(seed, edges=25), np.random.default_rng(seed)
    links, rows = sample.adjacency.links, draw.standard_normal((sample.rows, 3)).astype(np.float32)
    total = np.full(3, np.nan)
    kernels.sum_weighted_rows(links, as_strided_columns(rows), tau, 5, 25, total)
    np.testing.assert_allclose(total, sample.row_weights(tau)[5:25] @ rows[5:25].astype(float), rtol=1e-9, atol=1e-9)
    expected = rows - np.where(sample.active[:, None], [1.0, -2.0, 0.5], 0.0) * (np.arange(30) >= 5)[:, None]
    kernels.subtract_from_rows(links, as_strided_columns(rows), np.array([1.0, -2.0, 0.5]), 5, 30)
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_fill_noise_is_independent_of_the_partition(random_sample: Any) -> None:
    sample = random_sample(3, vertices=400, edges=500)
    links, words = sample.adjacency.links, np.random.default_rng(0).integers(0, 2**64, 400, np.uint64)
    whole, parts = np.ones((2, 400, 5), np.float32)
    kernels.fill_noise(links, words, whole, 0, 400)
    for first, last in ((200, 400), (0, 200)):
        kernels.fill_noise(links, words, parts, first, last)
    assert whole.tobytes() == parts.tobytes()
    assert not whole[~sample.active].any()
    drawn = whole[sample.active].ravel()
    assert -1 <= drawn.min() < -0.9
    assert 0.9 < drawn.max() <= 1
    assert abs(drawn.mean()) < 0.06
    assert np.unique(drawn).size > 0.99 * drawn.size
    assert np.abs(np.corrcoef(whole[sample.active].T) - np.eye(5)).max() < 0.2


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 100, 129])
def test_pairwise_sum_adds_every_entry_once(width: int) -> None:
    entries = np.arange(1, width + 3, dtype=np.float64)  # small integers: the sum is exact in any order
    assert kernels.pairwise_sum(entries, width) == width * (width + 1) / 2


@given(squared=st.floats(1e-120, 1e120), flatten=st.sampled_from([0.0, 0.3, 0.5, 1.0, 2.0]))
def test_inverse_length_power_is_a_power_of_the_length(squared: float, flatten: float) -> None:
    assert math.isclose(kernels.inverse_length_power(squared, flatten), math.sqrt(squared) ** -flatten, rel_tol=1e-9)


def served_reference(rows: NDArray[Any], scaling: ViewScaling) -> NDArray[np.float64]:
    parts = []
    for view, (first, last) in enumerate(zip(scaling.bounds, scaling.bounds[1:], strict=False)):
        part = rows[:, first:last].astype(np.float64)
        length = np.linalg.norm(part, axis=1, keepdims=True)
        power = np.where(length > 0, length, 1.0) ** -scaling.flatten[view]
        parts.append(scaling.weights[view] * part * power)
    whole = np.hstack(parts)
    length = np.linalg.norm(whole, axis=1, keepdims=True)
    return whole / np.where(length > 0, length, 1.0)


@settings(max_examples=50)
@given(seed=SEEDS, widths=st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_scale_to_unit_scales_each_view_and_normalizes(seed: int, widths: list[int]) -> None:
    draw = np.random.default_rng(seed)
    bounds = np.cumsum([0, *widths])
    scaling = ViewScaling(bounds, draw.uniform(0.2, 3, len(widths)), draw.choice([0, 0.3, 0.5, 1], len(widths)))
    rows = (draw.standard_normal((12, bounds[-1])) * 10.0 ** draw.integers(-6, 6, (12, 1))).astype(np.float32)
    rows[draw.integers(0, 12, 4), : bounds[1]] = 0
    rows[0] = 0
    served = np.empty_like(rows)
    kernels.scale_to_unit(rows, scaling, served)
    np.testing.assert_allclose(served, served_reference(rows, scaling), atol=3e-6)
    lengths = np.linalg.norm(served, axis=1)
    assert (np.isclose(lengths, 1, atol=1e-6) == rows.any(axis=1)).all()
    assert not served[0].any()
    kernels.scale_to_unit(rows, scaling, rows)  # in-place operation is allowed
    assert rows.tobytes() == served.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scale_to_unit_zeroes_parts_that_are_not_finite(value: float) -> None:
    scaling = ViewScaling(np.array([0, 2, 4]), np.ones(2), np.array([0.5, 1.0]))
    rows, served = np.array([[value, 1, 3, 4], [value, 1, 0, 0]], np.float32), np.empty((2, 4), np.float32)
    kernels.scale_to_unit(rows, scaling, served)
    np.testing.assert_allclose(served, [[0, 0, 0.6, 0.8], [0, 0, 0, 0]], atol=1e-7)


def test_scale_view_parts_returns_the_length_of_the_result() -> None:
    scaling = ViewScaling(np.array([0, 2, 4]), np.array([2.0, 1.0]), np.array([1.0, 0.0]))
    scaled = np.empty(4)
    length = kernels.scale_view_parts(np.array([3.0, 4.0, 5.0, 12.0]), scaling, scaled, np.empty(4))
    np.testing.assert_allclose(scaled, [1.2, 1.6, 5, 12])
    assert math.isclose(length, math.sqrt(4 + 169))
