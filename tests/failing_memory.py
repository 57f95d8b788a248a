"""A NumPy allocator that fails for the k-th array.

Use it in a separate process that ends with `os._exit`: arrays are freed by functions of this module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_SET_HANDLER, _GET_HANDLER = (
    304,
    305,
)  # positions of PyDataMem_SetHandler and PyDataMem_GetHandler in NumPy's C API table
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


_MALLOC, _CALLOC = (_POINTER, _POINTER, _SIZE), (_POINTER, _POINTER, _SIZE, _SIZE)  # result and argument types


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _POINTER),
        ("malloc", _POINTER),
        ("calloc", _POINTER),
        ("realloc", _POINTER),
        ("free", _POINTER),  # stays in C: it is called while exceptions propagate
    )


class FailingAllocator:
    """Counts the allocations of NumPy, and lets one of them fail."""

    def __init__(self) -> None:
        self.allocations_left, self.allocations = -1, 0
        default = _Handler.from_address(_pointer(_function(_GET_HANDLER)(), b"mem_handler"))
        self._functions = [
            self._failing_function(*_MALLOC, at=default.malloc),
            self._failing_function(*_CALLOC, at=default.calloc),
        ]
        pointers = [ctypes.cast(function, _POINTER).value for function in self._functions]
        self._handler = _Handler(b"failing", 1, default.context, *pointers, default.realloc, default.free)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
        self._capsule = capsule(ctypes.addressof(self._handler), b"mem_handler", None)

    def _failing_function(self, *types: Any, at: int) -> Any:
        """Create a C function that allocates like the one at this address, or fails."""
        default = ctypes.PYFUNCTYPE(*types)(at)

        def allocate(*arguments: Any) -> Any:
            self.allocations += 1
            self.allocations_left -= 1
            return None if self.allocations_left == -1 else default(*arguments)

        return ctypes.PYFUNCTYPE(*types)(allocate)

    @contextmanager
    def failing(self, number: int) -> Iterator[None]:
        """Let the allocation with this number fail; −1: only count them."""
        before = _function(_SET_HANDLER, ctypes.py_object)(self._capsule)
        self.allocations, self.allocations_left = 0, number if number >= 0 else 1 << 60
        try:
            yield
        finally:
            self.allocations_left = 1 << 60
            _function(_SET_HANDLER, ctypes.py_object)(before)


def _function(number: int, *types: Any) -> Any:
    """Return a function of NumPy's C API that returns an object."""
    table = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    functions = ctypes.cast(_pointer(table, None), ctypes.POINTER(_POINTER))
    return ctypes.PYFUNCTYPE(ctypes.py_object, *types)(functions[number] or 0)


def _pointer(capsule: Any, name: bytes | None) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _POINTER, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name))
