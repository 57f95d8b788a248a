"""Compilation without reference counts, half-precision numbers, and memory prefetching for Numba kernels.

Kernels get half-precision arrays as raw bits (uint16), and all other arrays unchanged. One kernel serves both: it reads
a cell with `as_float` and writes it with `store_float`. Kernels that do not use these two get rows from `widen_half`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

CACHE_LINE_BYTES = 64  # unit of transfer between memory and cache
MAX_HALF = 65504.0  # largest half-precision number; larger values are clamped to it

allocation_free = partial(njit, cache=True, nogil=True, _nrt=False)
"""Decorator of kernels that create no array, and call only such kernels: compiled without reference counts.

Numba counts the references to every array that a kernel receives or slices. The counters are atomic, and a kernel gets
a dozen arrays at a time, so counting can take ten times as long as the work. A kernel with this decorator that creates
an array does not compile.
"""


def widen_half(rows: NDArray[Any]) -> NDArray[Any]:
    """Convert half-precision rows to single precision for computing; return other rows unchanged."""
    return rows.astype(np.float32) if rows.dtype == np.float16 else rows


@intrinsic
def _half_to_float(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic
def _float_to_half(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), generate


def as_float(cell: Any) -> Any:
    """Return the number in a cell of an array: half-precision bits as float32, any other value unchanged."""
    return np.uint16(cell).view(np.float16).astype(np.float32) if isinstance(cell, np.uint16) else cell


@overload(as_float)
def _overload_as_float(cell: Any) -> Any:
    def widen(cell: Any) -> Any:
        return _half_to_float(cell)

    def keep(cell: Any) -> Any:
        return cell

    return widen if cell == types.uint16 else keep


def store_float(cells: Any, index: int, value: Any) -> None:
    """Write a number to a cell of a one-dimensional array, as half-precision bits if the array is uint16."""
    half = cells.dtype == np.uint16
    cells[index] = np.float16(np.clip(value, -MAX_HALF, MAX_HALF)).view(np.uint16) if half else value


@overload(store_float)
def _overload_store_float(cells: Any, index: int, value: Any) -> Any:
    def narrow(cells: Any, index: int, value: Any) -> None:
        cells[index] = _float_to_half(np.float32(min(max(value, np.float32(-MAX_HALF)), np.float32(MAX_HALF))))

    def keep(cells: Any, index: int, value: Any) -> None:
        cells[index] = value

    return narrow if cells.dtype == types.uint16 else keep


@intrinsic
def prefetch(typing: Any, array: Any, row: Any, line: Any) -> Any:
    """Prefetch a cache line: `line` lines after the start of a row of an array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        stride = builder.extract_value(view.strides, 0)
        offset = builder.add(builder.mul(args[1], stride), builder.mul(args[2], stride.type(CACHE_LINE_BYTES)))
        bytes_ = builder.bitcast(view.data, cgutils.voidptr_t)
        address = builder.gep(bytes_, [offset])
        llvm_prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [cgutils.voidptr_t],
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[ir.IntType(32)] * 3]),
        )
        for_reading, high_locality, data_cache = (ir.IntType(32)(flag) for flag in (0, 3, 1))
        builder.call(llvm_prefetch, [address, for_reading, high_locality, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate
