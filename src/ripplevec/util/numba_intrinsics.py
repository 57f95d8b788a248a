"""What numba lacks: numbers of half precision, and asking memory for a line before it is needed.

Arrays of half precision are given to kernels as their bits (uint16). Every other array is what it is, so that one
kernel serves both: `as_float` reads a cell, `store_float` writes one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

CACHE_LINE_BYTES = 64  # bytes that come from memory together
MAX_HALF = 65504.0  # that half precision can hold; what is beyond is cut off there


@intrinsic
def _widened(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic
def _narrowed(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), generate


def as_float(cell: Any) -> Any:
    """The number in a cell of an array."""
    return np.uint16(cell).view(np.float16).astype(np.float32) if isinstance(cell, np.uint16) else cell


@overload(as_float)
def _number(cell: Any) -> Any:
    def widen(cell: Any) -> Any:
        return _widened(cell)

    def keep(cell: Any) -> Any:
        return cell

    return widen if cell == types.uint16 else keep


def store_float(cells: Any, place: int, value: Any) -> None:
    """Write a number to a cell of a one-dimensional array."""
    half = cells.dtype == np.uint16
    cells[place] = np.float16(np.clip(value, -MAX_HALF, MAX_HALF)).view(np.uint16) if half else value


@overload(store_float)
def _set_number(cells: Any, place: int, value: Any) -> Any:
    def narrow(cells: Any, place: int, value: Any) -> None:
        cells[place] = _narrowed(np.float32(min(max(value, np.float32(-MAX_HALF)), np.float32(MAX_HALF))))

    def keep(cells: Any, place: int, value: Any) -> None:
        cells[place] = value

    return narrow if cells.dtype == types.uint16 else keep


@intrinsic
def prefetch(typing: Any, array: Any, row: Any, line: Any) -> Any:
    """Ask for one line of memory: the one that holds the beginning of a row of an array, or one behind it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        stride = builder.extract_value(view.strides, 0)
        offset = builder.add(builder.mul(args[1], stride), builder.mul(args[2], stride.type(CACHE_LINE_BYTES)))
        bytes_ = builder.bitcast(view.data, cgutils.voidptr_t)
        place = builder.gep(bytes_, [offset])
        ask = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [cgutils.voidptr_t],
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[ir.IntType(32)] * 3]),
        )
        to_read, keep, data = (ir.IntType(32)(flag) for flag in (0, 3, 1))
        builder.call(ask, [place, to_read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate
