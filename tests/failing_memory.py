"""NumPy gets no memory for one of its arrays: the k-th that is asked for.

For a process of its own, which should end with `os._exit`: arrays are freed by functions of this module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_SET_HANDLER, _GET_HANDLER = 304, 305  # where NumPy's table of functions has PyDataMem_SetHandler and its other half
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


_MALLOC, _CALLOC = (_POINTER, _POINTER, _SIZE), (_POINTER, _POINTER, _SIZE, _SIZE)  # what they give, and take


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _POINTER),
        ("malloc", _POINTER),
        ("calloc", _POINTER),
        ("realloc", _POINTER),
        ("free", _POINTER),  # stays in C: it is called while errors are on their way
    )


class Arrays:
    """What NumPy asks for while this is in use."""

    def __init__(self) -> None:
        self.left, self.asked = -1, 0
        usual = _Handler.from_address(_pointer(_function(_GET_HANDLER)(), b"mem_handler"))
        self._kept = [self._sometimes(*_MALLOC, at=usual.malloc), self._sometimes(*_CALLOC, at=usual.calloc)]
        own = [ctypes.cast(function, _POINTER).value for function in self._kept]
        self._handler = _Handler(b"failing", 1, usual.context, *own, usual.realloc, usual.free)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
        self._capsule = capsule(ctypes.addressof(self._handler), b"mem_handler", None)

    def _sometimes(self, *kinds: Any, at: int) -> Any:
        """A function in C that gives memory as the one at this address does, or none."""
        usual = ctypes.PYFUNCTYPE(*kinds)(at)

        def give(*asked: Any) -> Any:
            self.asked += 1
            self.left -= 1
            return None if self.left == -1 else usual(*asked)

        return ctypes.PYFUNCTYPE(*kinds)(give)

    @contextmanager
    def failing(self, number: int) -> Iterator[None]:
        """Have the array with this number get no memory; −1: have them counted."""
        before = _function(_SET_HANDLER, ctypes.py_object)(self._capsule)
        self.asked, self.left = 0, number if number >= 0 else 1 << 60
        try:
            yield
        finally:
            self.left = 1 << 60
            _function(_SET_HANDLER, ctypes.py_object)(before)


def _function(number: int, *kinds: Any) -> Any:
    """One of NumPy's functions, which gives an object."""
    table = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    functions = ctypes.cast(_pointer(table, None), ctypes.POINTER(_POINTER))
    return ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(functions[number] or 0)


def _pointer(capsule: Any, name: bytes | None) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _POINTER, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name))
