"""Work over fixed blocks of rows, on as many threads as asked for.

Each block writes its own part of the result. Where it matters how work is cut, as in sums, blocks depend on its size
alone and never on the number of threads: the bits are the same for any thread count. The kernels release the GIL, so
plain threads are enough.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock, get_native_id, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
BACKGROUND_NICENESS = 10  # how far work for which nobody waits stands back, in steps of niceness


def resolve_threads(threads: int | None) -> int:
    """The number of threads to use: what was asked for, else every core this process may run on."""
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def block_ranges(length: int, size: int) -> list[tuple[int, int]]:
    """The half-open ranges of `size` that cover `length`."""
    return [(first, min(first + size, length)) for first in range(0, length, size)]


def for_each_block(work: Callable[[int, int], None], length: int, *, size: int, threads: int) -> None:
    """Call `work(first, last)` for every block; returns when all are done, raises what any of them raised.

    The caller works too, and takes back from its helpers what they have not begun when it is done.
    """
    parts = block_ranges(length, size)
    left = iter(parts)  # of all threads: each takes the next

    def take() -> None:
        for first, last in left:
            work(first, last)

    helpers = range(min(threads, len(parts)) - 1)
    futures = [_pool(threads, os.getpid(), _own.background).submit(take) for _ in helpers]
    try:
        take()
    finally:
        begun = [future for future in futures if not future.cancel()]
        wait(begun)
    for future in begun:
        future.result()


def run_in_background(work: Callable[[], Result]) -> Result:
    """Do work for which nobody waits yet: this thread, and those it shares the work with, stand back."""
    _own.background = True
    lower_priority()
    return work()


class _Own(local):
    """What belongs to each thread."""

    background = False


_own = _Own()


def lower_priority() -> None:
    """Let other threads have the processor first, where a thread can say so: Linux."""
    if sys.platform == "linux":
        with suppress(OSError):
            own = os.getpriority(os.PRIO_PROCESS, get_native_id())
            os.setpriority(os.PRIO_PROCESS, get_native_id(), own + BACKGROUND_NICENESS)


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Small matrices on one thread: the same bits however many there are, and no time lost in sharing them out.

    The limit belongs to the process: it stays until the last of those who asked for it, in whatever thread, is done.
    """
    with _asking:
        limit = _blas().limit(limits=1, user_api="blas")
        if not _asked.waiting:
            _asked.first = limit
        _asked.waiting += 1
    try:
        yield
    finally:
        with _asking:
            _asked.waiting -= 1
            if not _asked.waiting:
                _asked.first.restore_original_limits()


class _Asked:
    """Who asked for one thread: how many are not done, and the limit of the first, which saw how it was before."""

    waiting = 0
    first: Any = None


_asked, _asking = _Asked(), Lock()


@cache
def _blas() -> ThreadpoolController:
    """The libraries to limit, looked up once: it takes longer than the algebra of a small anchor."""
    return ThreadpoolController()


@cache
def _pool(threads: int, process: int, background: bool) -> ThreadPoolExecutor:
    """The threads of a process; a forked child has none of its parent's, so it gets its own."""
    if background:
        return ThreadPoolExecutor(threads, thread_name_prefix="ripplevec-background", initializer=lower_priority)
    return ThreadPoolExecutor(threads, thread_name_prefix="ripplevec")
