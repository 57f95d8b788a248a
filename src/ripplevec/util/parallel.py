"""Threads: parallel loops over fixed blocks of rows, low priority for background work, and a limit for BLAS.

Each block writes its own part of the result. Where the division into blocks matters, as in sums, the blocks depend on
the size of the work alone and never on the number of threads: the result is identical bit for bit for any thread
count. The kernels release the GIL, so ordinary threads are sufficient.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock, get_ident, get_native_id, local
from typing import Any, TypeVar
from weakref import WeakSet

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
BACKGROUND_NICENESS = 10  # added to the niceness of background threads


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads to use: `threads`, or by default every core that this process may use."""
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def block_ranges(length: int, size: int) -> list[tuple[int, int]]:
    """Split 0 … length−1 into half-open ranges (first, last) of `size`; the final range may be shorter."""
    return [(first, min(first + size, length)) for first in range(0, length, size)]


def for_each_block(work: Callable[[int, int], None], length: int, *, size: int, threads: int) -> None:
    """Call `work(first, last)` for every block; return when all are done, or raise the exception of a failed block.

    The calling thread works too. When it is done, it cancels the pool tasks that have not started.
    """
    ranges = block_ranges(length, size)
    remaining = iter(ranges)  # shared by all threads: each takes the next block

    def process_blocks() -> None:
        for first, last in remaining:
            work(first, last)

    pool_tasks = range(min(threads, len(ranges)) - 1)
    if not pool_tasks:
        process_blocks()
        return
    futures = []
    for _ in pool_tasks:
        future = submit(_pool(threads, os.getpid(), _thread.background), process_blocks)
        if future is None:
            break
        futures.append(future)
    try:
        process_blocks()
    finally:
        started = [future for future in futures if not future.cancel()]
        wait(started)
    for future in started:
        future.result()


def submit(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Future[Result] | None:
    """Submit work to a pool; return None if pools accept none, because the main thread of the program has ended.

    Other threads of the program continue then, and have to do the work themselves.
    """
    try:
        return pool.submit(work)
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        return None


def run_in_background(work: Callable[[], Result]) -> Result:
    """Run work at low priority, in this thread and in the threads that process its blocks."""
    _thread.background = True
    lower_priority()
    return work()


class _ThreadState(local):
    """Settings of each thread."""

    background = False  # whether the thread runs background work


_thread = _ThreadState()


def lower_priority() -> None:
    """Lower the scheduling priority of this thread, if the platform supports it per thread (Linux)."""
    if sys.platform == "linux":
        with suppress(OSError):
            niceness = os.getpriority(os.PRIO_PROCESS, get_native_id())
            os.setpriority(os.PRIO_PROCESS, get_native_id(), niceness + BACKGROUND_NICENESS)


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread for small matrices: same bits for any thread count, and no overhead of sharing.

    The limit applies to the whole process: it stays until the last active context, in whatever thread, has ended.
    """
    context = _BlasContext()
    with _blas_lock, _control_of_blas():
        limit = _blas().limit(limits=1, user_api="blas")
        if _blas_limit.original is None:
            _blas_limit.original = limit
        _blas_limit.contexts.add(context)
    try:
        yield
    finally:
        with _blas_lock, _control_of_blas():
            _blas_limit.contexts.discard(context)
            if not _blas_limit.contexts and _blas_limit.original is not None:
                _blas_limit.original.restore_original_limits()
                _blas_limit.original = None


@contextmanager
def _control_of_blas() -> Iterator[None]:
    """Let this thread set the number of BLAS threads, and any other thread afterward.

    threadpoolctl ignores limits of OpenBLAS that are set by another thread than the first. The limit here is shared by
    all threads and set under a lock, so any of them may set it.
    """
    _release_control_of_blas()
    try:
        yield
    finally:
        _release_control_of_blas()


def _release_control_of_blas() -> None:
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):  # since threadpoolctl 3.8
            library.clear_controlling_thread(force=True)


class _BlasContext:
    """One active context, and the thread that it belongs to."""

    def __init__(self) -> None:
        self.thread = get_ident()


class _BlasLimit:
    """The active contexts, and the limit object of the first one, which holds the original settings.

    Contexts are referenced weakly: one that an interrupt has destroyed between its entry and its exit does not count,
    and the next complete context restores the original settings.
    """

    def __init__(self) -> None:
        self.contexts: WeakSet[_BlasContext] = WeakSet()
        self.original: Any = None


_blas_limit, _blas_lock = _BlasLimit(), Lock()


def _forget_other_threads() -> None:
    """Remove the contexts of threads that a forked child does not have; one of them may have held the lock."""
    global _blas_lock
    _blas_lock = Lock()
    for context in list(_blas_limit.contexts):
        if context.thread != get_ident():
            _blas_limit.contexts.discard(context)


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_forget_other_threads)


@cache
def _blas() -> ThreadpoolController:
    """Return the BLAS libraries, looked up once: a lookup takes longer than the algebra of a small anchor."""
    return ThreadpoolController()


@cache
def _pool(threads: int, process: int, background: bool) -> ThreadPoolExecutor:
    """Return the thread pool of a process; a forked child does not inherit the threads of its parent."""
    if background:
        return ThreadPoolExecutor(threads, thread_name_prefix="ripplevec-background", initializer=lower_priority)
    return ThreadPoolExecutor(threads, thread_name_prefix="ripplevec")
