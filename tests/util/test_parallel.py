"""Parallel loops over blocks, BLAS thread limits, and background priority."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from ripplevec.util import parallel
from ripplevec.util.parallel import (
    block_ranges,
    for_each_block,
    limit_blas_to_one_thread,
    resolve_threads,
    run_in_background,
)


@given(length=st.integers(0, 500), size=st.integers(1, 60))
def test_block_ranges_cover_the_range_once_in_order(length: int, size: int) -> None:
    covered = [i for first, last in block_ranges(length, size) for i in range(first, last)]
    assert covered == list(range(length))
    assert all(0 < last - first <= size for first, last in block_ranges(length, size))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_for_each_block_any_number_of_threads_processes_each_block_once(threads: int) -> None:
    times = np.zeros(1000, np.int64)

    def work(first: int, last: int) -> None:
        times[first:last] += 1

    for_each_block(work, 1000, size=7, threads=threads)
    assert (times == 1).all()


def test_for_each_block_two_threads_run_in_parallel() -> None:
    together = threading.Barrier(2)
    for_each_block(lambda first, last: together.wait(60) and None, 2, size=1, threads=2)
    assert not together.broken  # both threads arrived


@pytest.mark.parametrize("threads", [2, 3])
def test_for_each_block_error_is_raised_after_all_blocks_are_done(threads: int) -> None:
    done = []
    started = threading.Event()

    def work(first: int, last: int) -> None:
        if first == 0:
            assert started.wait(60), "no other thread started"
            raise ZeroDivisionError
        started.set()
        done.append(first)

    with pytest.raises(ZeroDivisionError):
        for_each_block(work, 20, size=1, threads=threads)
    assert sorted(done) == list(range(1, 20))


def test_for_each_block_forked_process_has_its_own_threads() -> None:
    def run() -> None:
        for_each_block(lambda first, last: None, 8, size=1, threads=2)

    run()
    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join(120)
    alive = child.is_alive()
    child.kill()
    assert not alive
    assert child.exitcode == 0


@pytest.fixture
def blas_limit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A limit of this test alone: threads that other tests have abandoned may still hold the one of the process."""
    monkeypatch.setattr(parallel, "_blas_limit", parallel._BlasLimit())
    return parallel._blas_limit


def test_limit_blas_restores_the_number_of_threads(blas_limit: Any) -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        for _ in range(2):
            with limit_blas_to_one_thread():
                assert threads() == {1}
            assert threads() == {2}


def test_limit_blas_in_a_forked_child_does_not_wait_for_threads_of_the_parent(blas_limit: Any) -> None:
    entered, leave = threading.Event(), threading.Event()

    def limit() -> None:
        with limit_blas_to_one_thread(), parallel._blas_lock:
            entered.set()
            leave.wait(120)

    def limit_in_child() -> None:
        with limit_blas_to_one_thread():
            assert len(parallel._blas_limit.contexts) == 1
        assert parallel._blas_limit.original is None

    thread = threading.Thread(target=limit)
    thread.start()
    assert entered.wait(120)
    child = multiprocessing.get_context("fork").Process(target=limit_in_child)
    child.start()
    child.join(60)
    alive = child.is_alive()
    child.kill()
    leave.set()
    thread.join()
    assert not alive
    assert child.exitcode == 0


def test_limit_blas_in_another_thread_takes_effect_and_ends(blas_limit: Any) -> None:
    """The main thread has set a limit first; OpenBLAS would otherwise use all cores in the other thread."""

    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def work() -> None:
        with limit_blas_to_one_thread():
            seen.append(threads())
        seen.append(threads())

    seen: list[set[int]] = []
    with threadpool_limits(limits=2, user_api="blas"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == [{1}, {2}]
        with limit_blas_to_one_thread():
            assert threads() == {1}
        assert threads() == {2}


def test_resolve_threads_default_is_the_number_of_usable_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_threads(3) == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5}, raising=False)
    assert resolve_threads(None) == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert resolve_threads(None) == 1


def test_limit_blas_after_an_interrupted_context_is_restored_by_the_next(blas_limit: Any) -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        blas_limit.original = parallel._blas().limit(limits=1, user_api="blas")
        blas_limit.contexts.add(parallel._BlasContext())  # destroyed at once, as by an interrupt before its exit
        gc.collect()
        with limit_blas_to_one_thread():
            pass
        assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {2}


def test_limit_blas_overlapping_contexts_last_until_the_last_ends(blas_limit: Any) -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        first, second = limit_blas_to_one_thread(), limit_blas_to_one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their normal on this platform")
@pytest.mark.parametrize("threads", [1, 2])
def test_run_in_background_lowers_priority_of_all_its_threads(threads: int) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    normal, seen = priority(), []

    def work() -> str:
        for_each_block(lambda first, last: seen.append(priority()), 8, size=1, threads=threads)
        return "done"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(run_in_background(work)))
    thread.start()
    thread.join()
    assert results == ["done"]
    assert len(seen) == 8
    assert min(seen) > normal
    seen.clear()
    for_each_block(lambda first, last: seen.append(priority()), 8, size=1, threads=threads)
    assert set(seen) == {normal}


def test_blocks_are_processed_after_the_main_thread_has_ended() -> None:
    code = (
        "import threading, time\n"
        "from ripplevec.util.parallel import for_each_block\n"
        "def work():\n"
        "    time.sleep(0.5)\n"
        "    done = []\n"
        "    for_each_block(lambda first, last: done.append(first), 8, size=1, threads=2)\n"
        "    print(sorted(done))\n"
        "threading.Thread(target=work).start()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.strip() == str(list(range(8))), ended.stderr
