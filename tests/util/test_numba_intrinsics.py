"""Kernels without reference counts, half-precision numbers inside and outside kernels, and prefetching."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import NumbaError

from ripplevec.util.numba_intrinsics import MAX_HALF, allocation_free, as_float, prefetch, store_float, widen_half

floats = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40)


@njit
def read(cells: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] = as_float(cells[j])


@njit
def write(values: Any, cells: Any) -> None:
    for j in range(values.size):
        store_float(cells, j, values[j])


@njit
def prefetch_rows(array: Any, rows: Any) -> None:
    for row in rows:
        prefetch(array, row, 0)
        prefetch(array, row, 1)


def halves(values: list[float]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.clip(np.array(values, np.float32), -MAX_HALF, MAX_HALF).astype(np.float16)


@given(values=floats)
def test_store_and_load_half_precision_match_numpy(values: list[float]) -> None:
    exact = np.array(values, np.float32)
    cells, out = np.zeros(len(values), np.uint16), np.zeros(len(values), np.float32)
    write(exact, cells)
    assert np.array_equal(cells.view(np.float16), halves(values))
    read(cells, out)
    assert np.array_equal(out, halves(values).astype(np.float32))


@given(values=floats)
def test_store_and_load_outside_kernels_match_numpy(values: list[float]) -> None:
    cells = np.zeros(len(values), np.uint16)
    for place, value in enumerate(values):
        store_float(cells, place, np.float32(value))
    assert np.array_equal(cells.view(np.float16), halves(values))
    assert [as_float(cell) for cell in cells] == halves(values).astype(np.float32).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_store_and_load_other_types_are_unchanged(kind: type) -> None:
    values = np.random.default_rng(0).standard_normal(9).astype(kind)
    cells, out = np.zeros(9, kind), np.zeros(9, kind)
    write(values, cells)
    read(cells, out)
    assert np.array_equal(out, values)
    assert as_float(values[0]) == values[0]


def test_prefetch_any_address_changes_nothing() -> None:
    table = np.zeros(100, [("a", np.int64), ("b", np.int32)])
    for array in (np.ones((100, 7), np.float32), np.ones(100, np.uint16), table["b"]):
        before = array.copy()
        prefetch_rows(array, np.array([0, 5, 99, 10**6, -(10**6)]))
        assert np.array_equal(array, before)


def test_widen_half_changes_half_precision_only() -> None:
    values = np.array([[0.5, 2.0]])
    assert widen_half(values.astype(np.float16)).dtype == np.float32
    for kind in (np.float32, np.float64):
        assert widen_half(values.astype(kind)).dtype == kind
    assert np.array_equal(widen_half(values.astype(np.float16)), values)


def sum_first_column(rows: Any) -> float:
    total = 0.0
    for i in range(len(rows)):
        row = rows[i]
        total += row[0]
    return total


def test_allocation_free_kernel_counts_no_references() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    kernel = allocation_free(sum_first_column, cache=False)
    assert kernel(rows) == njit(sum_first_column)(rows) == 6
    assert "NRT_incref" not in kernel.inspect_asm(kernel.signatures[0])


def test_allocation_free_kernel_that_creates_an_array_does_not_compile() -> None:
    with pytest.raises(NumbaError, match="NRT required"):
        allocation_free(lambda size: np.empty(size).sum(), cache=False)(3)
