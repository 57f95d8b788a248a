"""Decorators of Numba kernels, half-precision numbers, and memory prefetching.

Kernels get half-precision arrays as raw bits (uint16), and all other arrays unchanged. One kernel serves both: it reads
a cell with `as_float` and writes it with `store_float`. Kernels that do not use these two get rows from `widen_half`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from ripplevec._version import __version__

CACHE_LINE_BYTES = 64  # unit of transfer between memory and cache
MAX_HALF = 65504.0  # largest half-precision number; larger values are clamped to it


class _Index(IndexDataCacheFile):  # type: ignore[misc]
    """Index of the compiled versions of a kernel on disk. One that another version of the package wrote is ignored.

    Numba reads the types of the arguments before it compares versions, and fails if one of them has been renamed.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Compiled versions of a kernel on disk, for this version of the package and of the files with its source."""

    def __init__(self, function: Callable[..., Any], sources: frozenset[Path]) -> None:
        super().__init__(function)
        stamp = (__version__, *(_stamp(path) for path in sorted(sources)))
        self._cache_file = _Index(self._cache_path, self._impl.filename_base, stamp)


@cache
def _stamp(path: Path) -> tuple[float, int]:
    """Return time and size of a file, from which Numba also recognizes that a source has changed."""
    status = path.stat()
    return status.st_mtime, status.st_size


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function, cached on disk for this version of the package and of all files whose kernels it may call.

    Kernels that it calls become a part of it, so it must be compiled again if one of them has changed. Numba alone
    compares only the file of the function itself.
    """

    def enable_caching(self) -> None:
        """Store compiled versions on disk."""
        called = [value for value in self.py_func.__globals__.values() if isinstance(value, Kernel)]
        own = frozenset([Path(self.py_func.__code__.co_filename)])
        self.sources: frozenset[Path] = own.union(*(kernel.sources for kernel in called))
        self._cache = _KernelCache(self.py_func, self.sources)


class InnerKernel(Kernel):
    """A kernel that only kernels call: compiled without the wrapper that converts Python objects.

    Half of the kernels are of this kind, and compiling a wrapper takes as long as compiling a short kernel. A call from
    Python, as in tests, compiles the function once more.
    """

    def __call__(self, *arguments: Any) -> Any:
        """Call the function from Python."""
        return self._callable_kernel(*arguments)

    @cached_property
    def _callable_kernel(self) -> Kernel:
        return Kernel(self.py_func, targetoptions=self.targetoptions | {"no_cpython_wrapper": False})


def kernel(
    function: Callable[..., Any] | None = None, *, inner: bool = False, cache: bool = True, **options: Any
) -> Any:
    """Decorate a kernel: compile it when it is first called, cache it on disk, and run it without the GIL.

    Kernels that are inlined (`forceinline`), or `inner`, become an `InnerKernel`.
    """
    if function is None:
        return partial(kernel, inner=inner, cache=cache, **options)
    options = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True} | options
    if inner or options.get("forceinline"):
        decorated: Kernel = InnerKernel(function, targetoptions=options | {"no_cpython_wrapper": True})
    else:
        decorated = Kernel(function, targetoptions=options)
    if cache:
        decorated.enable_caching()
    return decorated


allocation_free = partial(kernel, _nrt=False)
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
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a · b + c, rounded once: one instruction, where separate operations would be two."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return c(c, c, c), generate


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
