"""Growable arrays: content, shared memory, fallbacks and files."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.util import growable_array
from ripplevec.util.growable_array import LARGE_BYTES, GrowableArray, grow_array, next_capacity


@given(sizes=st.lists(st.integers(0, 3000), max_size=8), large=st.sampled_from([1, 1000, LARGE_BYTES]))
def test_grow_keeps_content_and_zeroes_the_rest(sizes: list[int], large: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(growable_array, "LARGE_BYTES", large)
        rows, length = GrowableArray(np.float32, (3,)), 0
        for size in sizes:
            array = rows.grow(size)
            assert array is rows.array
            assert len(array) == max(size, length)
            assert not array[length:].any()
            array[length:] = np.arange(length, len(array))[:, None] + 1
            length = len(array)
        assert np.array_equal(rows.array[:, 1], np.arange(1, length + 1))


def test_grow_large_array_shares_memory() -> None:
    rows = GrowableArray(np.float32, (128,))
    before = rows.grow(LARGE_BYTES // 512)
    after = rows.grow(50 * LARGE_BYTES // 512)
    assert np.shares_memory(before, after)
    before[0] = 7
    assert after[0, 0] == 7
    assert after.flags.c_contiguous
    assert after.flags.writeable


def test_grow_with_fill_sets_new_rows() -> None:
    kind = np.dtype([("number", np.int64), ("flag", np.int8)])
    fill = np.array((5, -1), kind)
    rows = GrowableArray(kind, fill=fill)
    rows.grow(2)["number"] = 9
    assert rows.grow(200_000)["flag"].max() == -1
    assert rows.array["number"][:3].tolist() == [9, 9, 5]


def test_grow_without_address_space_uses_ordinary_array(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(mmap, "mmap", fail)
    rows = GrowableArray(np.float32, (2,))
    rows.grow(LARGE_BYTES)[5] = 3
    assert rows.grow(2 * LARGE_BYTES)[5, 1] == 3


def test_grow_beyond_reserved_space_copies_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growable_array, "RESERVED_BYTES", 4 * LARGE_BYTES)
    rows = GrowableArray(np.uint8)
    rows.grow(2 * LARGE_BYTES)[-1] = 1
    assert rows.grow(40 * LARGE_BYTES)[2 * LARGE_BYTES - 1] == 1
    assert rows.array.sum() == 1


def test_grow_in_directory_leaves_no_file_behind(tmp_path: Path) -> None:
    rows = GrowableArray(np.float16, (4,), directory=tmp_path)
    rows.grow(3)[:] = 2
    assert rows.grow(100_000)[:3].sum() == 24
    assert not rows.array[3:].any()
    rows.array[99_999] = 5
    assert list(tmp_path.iterdir()) == []


def test_next_capacity_doubles_few_rows_and_adds_a_sixteenth_to_many_up_to_a_limit() -> None:
    assert next_capacity(0, 1, 64) == 16
    assert next_capacity(800, 801, 64) == 1_616
    assert next_capacity(800, 5_000, 64) == 5_000
    assert next_capacity(1_000_000, 1_000_001, 64) == 1_000_000 + 16_384 + 16
    assert next_capacity(1_000_000, 1_000_001, 8) == 1_062_516
    assert next_capacity(10_000_000, 10_000_001, 8) == 10_000_000 + 131_072 + 16


@pytest.mark.parametrize("on_disk", [False, True])
def test_grow_row_by_row_without_reserved_space_allocates_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    monkeypatch.setattr(growable_array, "LARGE_BYTES", 1 << 60)
    rows, allocations = GrowableArray(np.int64, directory=tmp_path if on_disk else None), 0
    for size in range(1, 3_000):
        space = rows._space
        rows.grow(size)[-1] = size
        allocations += rows._space is not space
    assert rows.array.tolist() == list(range(1, 3_000))
    assert allocations < 150


def test_grow_large_array_allocates_the_next_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[int] = []
    monkeypatch.setattr(growable_array, "prefault", lambda array: requested.append(array.nbytes))
    rows = GrowableArray(np.uint8, (1024,))
    rows.grow(40_000)
    rows.grow(42_000)
    rows.grow(42_001)
    assert requested == [2_500 * 1024, 2_000 * 1024]


def test_allocate_requests_the_memory_of_large_arrays_that_are_not_in_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requested = list[int]()
    monkeypatch.setattr(growable_array, "prefault", lambda array: requested.append(len(array)))
    for rows, directory in ((10, None), (300_000, None), (300_000, tmp_path)):
        array = GrowableArray(np.float64, directory=directory)
        array.grow(rows)
        requested.clear()
        array.allocate()
        assert requested == ([rows] if rows > 10 and directory is None else [])


def test_grow_array_keeps_content_and_fills_rest() -> None:
    array = np.array([[1, 2], [3, 4]])
    assert grow_array(array, 3, -1).tolist() == [[1, 2], [3, 4], [-1, -1]]
    assert array.shape == (2, 2)
