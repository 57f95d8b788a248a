from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES
from ripplevec.views.aligned_matrix import aligned_zeros, as_strided_columns, copy_aligned


@given(rows=st.integers(1, 20), columns=st.integers(1, 40), kind=st.sampled_from([np.float32, np.float64]))
def test_aligned_zeros_is_aligned_to_a_cache_line(rows: int, columns: int, kind: Any) -> None:
    matrix = aligned_zeros(rows, columns, kind)
    assert matrix.shape == (rows, columns)
    assert matrix.dtype == kind
    assert matrix.ctypes.data % CACHE_LINE_BYTES == 0
    assert matrix.flags.c_contiguous
    assert not matrix.any()


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_copy_aligned_returns_an_independent_copy_of_at_least_float32(
    dtype: Any, in_file: bool, tmp_path: Path
) -> None:
    whole = np.random.default_rng(0).standard_normal((50, 6)).astype(dtype)
    block = copy_aligned(whole[:, 2:5], 2, tmp_path if in_file else None)
    assert not list(tmp_path.iterdir()), "the file is unnamed"
    assert block.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert np.array_equal(block, whole[:, 2:5])
    assert not np.shares_memory(block, whole)


@given(rows=st.integers(0, 9), width=st.integers(1, 9), first=st.integers(0, 8))
def test_as_strided_columns_shares_memory_with_the_matrix(rows: int, width: int, first: int) -> None:
    whole = np.arange(rows * 9.0).reshape(rows, 9)
    some = whole[:, first : first + width]
    flat, stride, wide = as_strided_columns(some)
    assert (stride, wide) == (9, some.shape[1])
    for row in range(rows):
        assert flat[row * stride : row * stride + wide].tolist() == some[row].tolist()
    if rows:
        flat[-1] = -1.0
        assert some[-1, -1] == -1.0


def test_as_strided_columns_with_noncontiguous_rows_raises() -> None:
    for strided in (np.zeros((4, 6))[:, ::2], np.zeros((4, 6), order="F")):
        with pytest.raises(ValueError, match="entries of a row: expected contiguous"):
            as_strided_columns(strided)
