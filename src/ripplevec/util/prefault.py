"""Allocation of memory pages ahead of use, on another thread.

The first write to a page makes the kernel find and clear memory. A huge page (2 MiB) takes a fraction of a millisecond,
and several milliseconds on a virtual machine whose host has to find the memory too: longer than an arrival may take.
"""

from __future__ import annotations

import ctypes
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from os import getpid
from typing import Any

from numpy.typing import NDArray

from ripplevec.util.parallel import submit

_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE: allocates pages as a write would, and leaves their content unchanged
_PIECE = 1 << 21  # bytes per call: the kernel holds a lock during a call, for which a thread that allocates waits
_PAGE = 1 << 12


def prefault(array: NDArray[Any]) -> Future[int] | None:
    """Begin to allocate the pages of an array, on another thread; return None where this is not possible.

    The future has the number of bytes that were allocated: 0 if the kernel is too old (before Linux 5.14). Nothing
    depends on it; a page that is needed earlier is allocated by its first use.
    """
    if sys.platform != "linux" or not array.size:
        return None
    return submit(_thread_of_process(getpid()), partial(_populate, array))


def _populate(array: NDArray[Any]) -> int:
    """Allocate the complete pages of an array; `array` keeps the memory alive."""
    first = -(-array.ctypes.data // _PAGE) * _PAGE
    end = (array.ctypes.data + array.nbytes) // _PAGE * _PAGE
    done = 0
    for begin in range(first, end, _PIECE):
        size = min(_PIECE, end - begin)
        if _madvise()(begin, size, _POPULATE_WRITE) != 0:
            break
        done += size
    return done


@cache
def _madvise() -> Any:
    """Return the system call; it releases the GIL, which `mmap.madvise` does not."""
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


@cache
def _thread_of_process(process: int) -> ThreadPoolExecutor:
    """Return the thread that allocates pages; a forked child does not inherit the threads of its parent."""
    return ThreadPoolExecutor(1, thread_name_prefix="ripplevec-memory")
