"""Exact search compared with NumPy, on random shapes with zero rows, duplicates and dead rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.search import exact
from ripplevec.search.exact import nearest
from ripplevec.views._kernels import ViewScaling


@dataclass
class Case:
    """The arguments of one search."""

    rows: NDArray[Any]
    alive: NDArray[Any]
    queries: NDArray[Any]
    scaling: ViewScaling
    count: int
    exclude: NDArray[np.int64]

    def search(self, threads: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return nearest(*vars(self).values(), threads)


def reference_cosines(case: Case) -> NDArray[np.float64]:
    """Return cosines of queries with scaled rows; −inf for rows that are no candidates."""

    def divide_by_length(matrix: NDArray[np.float64], power: float = 1.0) -> NDArray[np.float64]:
        length = np.linalg.norm(matrix, axis=1, keepdims=True) ** power
        return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)

    bounds, weights, flatten = case.scaling
    parts = np.split(case.rows.astype(np.float64), bounds[1:-1], axis=1)
    scaled = [w * divide_by_length(part, power) for part, w, power in zip(parts, weights, flatten, strict=True)]
    rows, queries = divide_by_length(np.hstack(scaled)), divide_by_length(case.queries.astype(np.float64))
    cosines = queries @ rows.T
    cosines[:, ~case.alive.astype(bool) | ~rows.any(axis=1)] = -np.inf
    cosines[~queries.any(axis=1)] = -np.inf
    excluding = np.flatnonzero(case.exclude >= 0)
    cosines[excluding, case.exclude[excluding]] = -np.inf
    return cosines


@st.composite
def cases(draw: st.DrawFn) -> Case:
    seed, length = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 60))
    widths = draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
    random = np.random.default_rng(seed)
    # A few distinct parts, some zero, at very different scales, give many duplicates and many empty views.
    distinct = random.standard_normal((6, sum(widths))) * 10.0 ** random.integers(-30, 30, (6, 1))
    bounds = np.concatenate([[0], np.cumsum(widths)])
    for row, group in random.integers(0, [6, len(widths)], (6, 2)):
        distinct[row, bounds[group] : bounds[group + 1]] = 0
    rows = distinct[random.integers(0, 6, length)]
    rows += (random.random((length, 1)) < 0.3) * random.standard_normal(rows.shape)
    queries = np.concatenate([rows[:4], random.standard_normal((2, sum(widths))), np.zeros((1, sum(widths)))])
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return Case(
        rows.astype(dtype),
        (random.random(length) < 0.8).astype(draw(st.sampled_from([np.uint8, np.bool_]))),
        queries.astype(dtype),
        ViewScaling(bounds, random.uniform(0.2, 3, len(widths)), random.choice([0, 0.3, 0.5, 1], len(widths))),
        draw(st.integers(1, 70)),
        random.integers(-1, max(length, 1), len(queries)) if length else np.full(len(queries), -1),
    )


@settings(deadline=None)
@given(case=cases(), block=st.sampled_from([1, 7, 4096]))
def test_nearest_returns_the_best_rows_in_order(case: Case, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ROWS_PER_BLOCK", block)
        found, cosines = case.search()
    expected = reference_cosines(case)
    candidates = np.isfinite(expected).sum(axis=1)
    assert found.shape == cosines.shape == (len(case.queries), case.count)
    assert np.array_equal((found >= 0).sum(axis=1), np.minimum(candidates, case.count))
    for query, row_numbers in enumerate(found):
        valid = row_numbers[row_numbers >= 0]
        assert len(set(valid)) == len(valid)
        assert (row_numbers[len(valid) :] == -1).all()
        assert (cosines[query, len(valid) :] == 0).all()
        assert np.abs(cosines[query]).max() <= 1
        np.testing.assert_allclose(cosines[query, : len(valid)], expected[query, valid], atol=2e-6)
        ranked = list(zip(-cosines[query, : len(valid)], valid, strict=True))
        assert ranked == sorted(ranked)
        if len(valid) == case.count:
            others = np.delete(expected[query], valid)
            assert others.max(initial=-np.inf) <= cosines[query, -1] + 2e-6


@settings(deadline=None, max_examples=30)
@given(case=cases(), block=st.sampled_from([3, 16]))
def test_nearest_gives_the_same_bits_for_any_threads_and_blocks(case: Case, block: int) -> None:
    whole = case.search()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ROWS_PER_BLOCK", block)
        patch.setattr(exact, "MAX_PENDING_CANDIDATES", 1)  # one query at a time
        again = case.search(threads=3)
    for one, other in zip(whole, again, strict=True):
        assert one.tobytes() == other.tobytes()


def unit_scaling(*bounds: int) -> ViewScaling:
    """Return a scaling of every view to length one, with equal weights."""
    return ViewScaling(np.array([0, *bounds]), np.ones(len(bounds)), np.ones(len(bounds)))


@pytest.mark.parametrize("block", [2, 4096])
def test_nearest_of_equal_rows_returns_the_lower_first(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "ROWS_PER_BLOCK", block)
    rows = np.tile(np.array([[1, 2, 3]], np.float32), (9, 1)) * np.array([[1, 2, 4, 1, 2, 4, 1, 2, 4]], np.float32).T
    found, cosines = nearest(rows, np.ones(9, bool), rows[:1], unit_scaling(3), 4, np.array([1]))
    assert found.tolist() == [[0, 2, 3, 4]]
    assert np.unique(cosines).size == 1


def test_nearest_weights_views() -> None:
    rows = np.array([[3, 4, 0, 0], [0, 0, 5, 12], [3, 4, 12, -5]], np.float32)
    alive, query = np.ones(3, bool), np.array([[3, 4, 5, 12]], np.float32)
    found, cosines = nearest(rows, alive, query, unit_scaling(4), 3)
    assert found.tolist() == [[1, 0, 2]]
    np.testing.assert_allclose(cosines, [[13 / 194**0.5, 5 / 194**0.5, 25 / 194]], rtol=1e-6)
    weighted = ViewScaling(np.array([0, 2, 4]), np.array([2.0, 1.0]), np.ones(2))
    query = np.array([[1.2, 1.6, 5 / 13, 12 / 13]], np.float32)  # the query as it is served
    found, cosines = nearest(rows, alive, query, weighted, 3)
    assert found.tolist() == [[0, 2, 1]]
    np.testing.assert_allclose(cosines, [[2 / 5**0.5, 4 / 5, 1 / 5**0.5]], rtol=1e-6)


def test_nearest_with_flatten_equalizes_part_lengths() -> None:
    rows, alive = np.array([[16, 0, 0, 1]], np.float32), np.ones(1, bool)
    for flatten, length in ((0.0, 16), (0.5, 4), (1.0, 1)):
        scaling = ViewScaling(np.array([0, 2, 4]), np.ones(2), np.full(2, flatten))
        _, cosines = nearest(rows, alive, np.array([[1, 0, 0, 0]], np.float32), scaling, 1)
        np.testing.assert_allclose(cosines, [[length / (length**2 + 1) ** 0.5]], rtol=1e-6)


def test_nearest_ignores_nonfinite_rows_and_queries() -> None:
    rows = np.array([[np.nan, 1], [np.inf, 1], [1, 1]], np.float32)
    found, cosines = nearest(rows, np.ones(3, bool), rows, unit_scaling(2), 2)
    assert found.tolist() == [[-1, -1], [-1, -1], [2, -1]]
    assert np.isfinite(cosines).all()


def test_nearest_does_not_modify_its_inputs() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    before = rows.copy()
    nearest(rows, np.ones(4, bool), rows, unit_scaling(1, 3), 2)
    assert np.array_equal(rows, before)


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("count", 0, "count"),
        ("alive", np.ones(3, bool), "alive"),
        ("queries", np.ones((1, 2), np.float32), "queries"),
        ("queries", np.ones(3, np.float32), "queries"),
        ("scaling", unit_scaling(2, 2, 3), "bounds"),
        ("scaling", unit_scaling(4), "bounds"),
        ("scaling", unit_scaling(3)._replace(weights=np.ones(2)), "weights"),
        ("scaling", unit_scaling(3)._replace(flatten=np.ones(2)), "weights"),
        ("exclude", np.zeros(2, np.int64), "exclude"),
    ],
)
def test_nearest_with_a_bad_argument_names_it(name: str, value: Any, reported: str) -> None:
    case = Case(
        np.ones((4, 3), np.float32),
        np.ones(4, bool),
        np.ones((1, 3), np.float32),
        unit_scaling(3),
        2,
        np.array([-1]),
    )
    setattr(case, name, value)
    with pytest.raises(InvalidValueError, match=f"^{reported}: expected"):
        case.search()
