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
def test_a_matrix_begins_with_a_cache_line(rows: int, columns: int, kind: Any) -> None:
    matrix = aligned_zeros(rows, columns, kind)
    assert matrix.shape == (rows, columns)
    assert matrix.dtype == kind
    assert matrix.ctypes.data % CACHE_LINE_BYTES == 0
    assert matrix.flags.c_contiguous
    assert not matrix.any()


@pytest.mark.parametrize("in_a_file", [False, True])
@pytest.mark.parametrize("given_as", [np.float16, np.float32, np.float64])
def test_a_copy_is_of_its_own_and_holds_at_least_float32(given_as: Any, in_a_file: bool, tmp_path: Path) -> None:
    whole = np.random.default_rng(0).standard_normal((50, 6)).astype(given_as)
    block = copy_aligned(whole[:, 2:5], 2, tmp_path if in_a_file else None)
    assert not list(tmp_path.iterdir()), "the file has no name"
    assert block.dtype == (np.float64 if given_as == np.float64 else np.float32)
    assert np.array_equal(block, whole[:, 2:5])
    assert not np.shares_memory(block, whole)


@given(rows=st.integers(0, 9), width=st.integers(1, 9), first=st.integers(0, 8))
def test_columns_are_seen_where_they_are(rows: int, width: int, first: int) -> None:
    whole = np.arange(rows * 9.0).reshape(rows, 9)
    some = whole[:, first : first + width]
    flat, stride, wide = as_strided_columns(some)
    assert (stride, wide) == (9, some.shape[1])
    for row in range(rows):
        assert flat[row * stride : row * stride + wide].tolist() == some[row].tolist()
    if rows:
        flat[-1] = -1.0
        assert some[-1, -1] == -1.0


def test_columns_that_do_not_lie_side_by_side_are_refused() -> None:
    for apart in (np.zeros((4, 6))[:, ::2], np.zeros((4, 6), order="F")):
        with pytest.raises(ValueError, match="side by side"):
            as_strided_columns(apart)
