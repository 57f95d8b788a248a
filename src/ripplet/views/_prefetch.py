"""A hint to the processor: this entry will be read soon. It changes no result, and no address is too far off for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

READ, KEEP, DATA = 0, 3, 1  # what for, how near to the core, and not instructions


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Have the cache line of `array[index]`, a flat array, on its way."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat = context.make_array(signature.args[0])(context, builder, arguments[0])
        at = context.cast(builder, arguments[1], signature.args[1], types.intp)
        place = cgutils.get_item_pointer(context, builder, signature.args[0], flat, [at], wraparound=False)
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [builder.bitcast(place, pointer), *(ir.Constant(number, n) for n in (READ, KEEP, DATA))])
        return context.get_dummy_value()

    return types.void(array, index), generate
