"""Search kernels compared with NumPy: dot product, heap, best rows of a block, and stale rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from ripplevec.search import _kernels as kernels
from ripplevec.util.numba_intrinsics import widen_half
from ripplevec.views._kernels import ViewScaling

SEEDS = st.integers(0, 2**32 - 1)


@njit
def product(first: Any, second: Any, work: Any) -> float:
    """Call `dot` as in production: inlined into another kernel."""
    return kernels.dot(first, second, work)


@pytest.mark.parametrize(("kind", "close"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@given(seed=SEEDS, width=st.integers(1, 300))
def test_dot_agrees_with_numpy_and_keeps_its_inputs(kind: type, close: float, seed: int, width: int) -> None:
    first, second = np.random.default_rng(seed).standard_normal((2, width)).astype(kind)
    work, before = np.full(width, np.nan, kind), (first.copy(), second.copy())
    expected = first.astype(np.float64) @ second.astype(np.float64)
    scale = np.linalg.norm(first) * np.linalg.norm(second)
    assert abs(product(first, second, work) - expected) <= close * scale
    assert np.array_equal((first, second), before)


@given(
    count=st.integers(1, 12),
    cosines=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0]), max_size=60),
)
def test_replace_heap_root_keeps_the_best_and_the_lower_of_equal_rows(count: int, cosines: list[float]) -> None:
    heap, found = np.full(count, -np.inf, np.float32), np.full(count, -1)
    for row, cosine in enumerate(cosines):
        if cosine > heap[0]:
            kernels.replace_heap_root(heap, found, np.float32(cosine), row)
        seen = np.array(cosines[: row + 1])
        best = np.lexsort((np.arange(row + 1), -seen))[:count]
        assert sorted(found[found >= 0]) == sorted(best)
        assert np.array_equal(heap[found >= 0], seen[found[found >= 0]].astype(np.float32))
        for place in range(1, count):
            above = (place - 1) // 2
            assert (heap[above], -found[above]) <= (heap[place], -found[place]) or found[above] == -1


def served_reference(rows: NDArray[Any], scaling: ViewScaling) -> NDArray[np.float64]:
    """Return normalized rows with weighted and flattened views."""
    out = np.zeros(rows.shape)
    for view, (first, last) in enumerate(zip(scaling.bounds, scaling.bounds[1:], strict=False)):
        part = rows[:, first:last].astype(np.float64)
        length = np.linalg.norm(part, axis=1, keepdims=True)
        flattened = np.divide(part, length ** scaling.flatten[view], out=np.zeros_like(part), where=length > 0)
        out[:, first:last] = scaling.weights[view] * flattened
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return np.divide(out, length, out=np.zeros_like(out), where=length > 0)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint16])
@given(seed=SEEDS, length=st.integers(0, 50), count=st.integers(1, 8), widths=st.sampled_from([(5,), (3, 9), (1, 20)]))
def test_collect_best_returns_the_highest_cosines(
    kind: type, seed: int, length: int, count: int, widths: tuple[int, ...]
) -> None:
    random, dim = np.random.default_rng(seed), sum(widths)
    drawn = random.standard_normal((length, dim))
    drawn[random.random(length) < 0.2] = 0
    stored = drawn.astype(np.float16).view(np.uint16) if kind == np.uint16 else drawn.astype(kind)
    rows = widen_half(stored.view(np.float16)) if kind == np.uint16 else stored
    scaling = ViewScaling(
        np.cumsum([0, *widths]), random.uniform(0.2, 3, len(widths)), random.choice([0.0, 0.3, 0.5, 1.0], len(widths))
    )
    queries = random.standard_normal((3, dim))
    queries = (queries / np.linalg.norm(queries, axis=1, keepdims=True)).astype(rows.dtype)
    alive, exclude = random.random(length) < 0.8, np.array([-1, 0, length - 1])
    cosines, found = np.full((3, count), 9, np.float32), np.full((3, count), 9)
    kernels.collect_best(rows, alive, queries, exclude, scaling, cosines, found)

    exact = queries.astype(np.float64) @ served_reference(rows, scaling).T
    for query in range(3):
        possible = np.flatnonzero(alive & rows.any(axis=1) & (np.arange(length) != exclude[query]))
        valid = found[query] >= 0
        assert valid.sum() == min(count, possible.size)
        assert np.isneginf(cosines[query, ~valid]).all()
        assert set(found[query, valid]) <= set(possible)
        assert len(set(found[query, valid])) == valid.sum()
        np.testing.assert_allclose(cosines[query, valid], exact[query, found[query, valid]], atol=1e-6)
        best = np.sort(exact[query, possible])[::-1][:count]
        np.testing.assert_allclose(np.sort(cosines[query, valid])[::-1], best, atol=1e-6)


def test_collect_best_clips_cosines() -> None:
    rows = np.random.default_rng(0).standard_normal((500, 7)).astype(np.float32)
    scaling = ViewScaling(np.array([0, 7]), np.ones(1), np.ones(1))
    queries = served_reference(rows, scaling).astype(np.float32) * np.float32(1 + 1e-6)
    cosines, found = np.empty((1_000, 1), np.float32), np.empty((1_000, 1), np.int64)
    exclude = np.full(1_000, -1)
    kernels.collect_best(rows, np.ones(500, bool), np.vstack([queries, -queries]), exclude, scaling, cosines, found)
    assert np.array_equal(found[:500, 0], np.arange(500))
    assert cosines.max() == 1


@given(seed=SEEDS, since=st.integers(-3, 6))
def test_find_stale_rows_returns_touched_and_unplaced_rows(seed: int, since: int) -> None:
    random = np.random.default_rng(seed)
    placed, indexed, queued = random.integers(0, 2, (3, 40)).astype(np.uint8)
    seen = random.integers(0, 5, 40)
    expected = np.where(placed == 1, seen > since, (indexed == 1) | (queued == 1))
    assert np.array_equal(kernels.find_stale_rows(seen, placed, indexed, queued, since), np.flatnonzero(expected))
