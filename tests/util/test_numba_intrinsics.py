"""Kernels without reference counts, half-precision numbers inside and outside kernels, and prefetching."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import NumbaError

from ripplevec.util.numba_intrinsics import (
    MAX_HALF,
    InnerKernel,
    allocation_free,
    as_float,
    kernel,
    prefetch,
    store_float,
    widen_half,
)

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
    summed = allocation_free(sum_first_column, cache=False)
    assert summed(rows) == njit(sum_first_column)(rows) == 6
    assert "NRT_incref" not in summed.inspect_asm(summed.signatures[0])


def test_allocation_free_kernel_that_creates_an_array_does_not_compile() -> None:
    with pytest.raises(NumbaError, match="NRT required"):
        allocation_free(lambda size: np.empty(size).sum(), cache=False)(3)


@kernel(inner=True, cache=False)
def double(value: int) -> int:
    return 2 * value


@kernel(forceinline=True, cache=False)
def increment(value: int) -> int:
    return value + 1


@kernel(cache=False)
def double_and_increment(value: int) -> Any:
    return increment(double(value))


def test_inner_kernels_are_compiled_without_wrappers_and_can_be_called_from_python() -> None:
    assert isinstance(double, InnerKernel)
    assert isinstance(increment, InnerKernel)
    assert double_and_increment(4) == 9
    assert not any("_ZN7cpython" in code for code in double.inspect_llvm().values())
    assert (double(4), increment(4)) == (8, 5)


UPGRADED = """
from typing import NamedTuple
import sys
from ripplevec.util import numba_intrinsics
class {name}(NamedTuple):
    size: int
@numba_intrinsics.kernel
def measure(box):
    return {factor} * box.size
print(measure({name}(3)), sum(measure.stats.cache_hits.values()))
"""


def run_version(folder: Path, name: str, factor: int) -> str:
    (folder / "boxes.py").write_text(UPGRADED.format(name=name, factor=factor))
    command = [sys.executable, "-c", "import boxes"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_kernel_after_an_upgrade_that_renames_a_class_is_compiled_again(tmp_path: Path) -> None:
    assert run_version(tmp_path, "Box", 1) == "3 0"
    assert run_version(tmp_path, "Box", 1).startswith("3")
    assert run_version(tmp_path, "Carton", 20) == "60 0"
    assert run_version(tmp_path, "Carton", 20).startswith("60")


def test_kernel_is_compiled_again_if_a_kernel_in_another_file_has_changed(tmp_path: Path) -> None:
    head = "from ripplevec.util import numba_intrinsics\n"
    inner = head + "@numba_intrinsics.kernel(inner=True)\ndef scale(value):\n    return {factor} * value\n"
    middle = (
        "from inner import scale\n"
        + head
        + "@numba_intrinsics.kernel\ndef shift(value):\n    return scale(value) + 1\n"
    )
    outer = (
        "from middle import shift\n" + head + "@numba_intrinsics.kernel\ndef measure(value):\n    return shift(value)\n"
    )
    (tmp_path / "middle.py").write_text(middle)
    (tmp_path / "outer.py").write_text(outer + "print(measure(3), sum(measure.stats.cache_hits.values()))\n")
    outputs = []
    for factor in (1, 1, 20):
        (tmp_path / "inner.py").write_text(inner.format(factor=factor))
        command = [sys.executable, "-B", "-c", "import outer"]
        outputs.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split())
    assert outputs[0] == ["4", "0"]
    assert outputs[1][0] == "4"
    assert outputs[2] == ["61", "0"]


def test_kernel_of_another_version_of_the_package_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(UPGRADED.format(name="Box", factor=1))
    other = "from ripplevec.util import numba_intrinsics as n; n.__version__ = 'other'; import boxes"
    outputs = [
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for code in ("import boxes", "import boxes", other)
    ]
    assert [output.split() for output in outputs] == [["3", "0"], ["3", "1"], ["3", "0"]]
