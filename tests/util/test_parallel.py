"""Blocks depend on the size of the work alone, and every one of them is done whatever happens to another."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from ripplevec.util.parallel import (
    block_ranges,
    for_each_block,
    limit_blas_to_one_thread,
    resolve_threads,
    run_in_background,
)


@given(length=st.integers(0, 500), size=st.integers(1, 60))
def test_blocks_cover_the_range_once_in_order(length: int, size: int) -> None:
    covered = [i for first, last in block_ranges(length, size) for i in range(first, last)]
    assert covered == list(range(length))
    assert all(0 < last - first <= size for first, last in block_ranges(length, size))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_block_is_worked_on_once_for_any_number_of_threads(threads: int) -> None:
    times = np.zeros(1000, np.int64)

    def work(first: int, last: int) -> None:
        times[first:last] += 1

    for_each_block(work, 1000, size=7, threads=threads)
    assert (times == 1).all()


def test_two_blocks_run_side_by_side() -> None:
    together = threading.Barrier(2)
    for_each_block(lambda first, last: together.wait(60) and None, 2, size=1, threads=2)
    assert not together.broken  # both got there


@pytest.mark.parametrize("threads", [2, 3])
def test_an_error_is_raised_when_all_the_others_are_done(threads: int) -> None:
    done = []
    begun = threading.Event()

    def work(first: int, last: int) -> None:
        if first == 0:
            assert begun.wait(60), "another thread is at work"
            raise ZeroDivisionError
        begun.set()
        done.append(first)

    with pytest.raises(ZeroDivisionError):
        for_each_block(work, 20, size=1, threads=threads)
    assert sorted(done) == list(range(1, 20))


def test_a_forked_process_has_threads_of_its_own() -> None:
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


def test_algebra_has_one_thread_inside_and_as_many_as_before_after() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        for _ in range(2):
            with limit_blas_to_one_thread():
                assert threads() == {1}
            assert threads() == {2}


def test_threads_default_to_the_cores_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_threads(3) == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5}, raising=False)
    assert resolve_threads(None) == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert resolve_threads(None) == 1


def test_algebra_keeps_one_thread_until_the_last_one_is_done() -> None:
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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
@pytest.mark.parametrize("threads", [1, 2])
def test_work_in_the_background_stands_back_with_all_its_threads(threads: int) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own, seen = priority(), []

    def work() -> str:
        for_each_block(lambda first, last: seen.append(priority()), 8, size=1, threads=threads)
        return "done"

    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(run_in_background(work)))
    thread.start()
    thread.join()
    assert answers == ["done"]
    assert len(seen) == 8
    assert min(seen) > own
    seen.clear()
    for_each_block(lambda first, last: seen.append(priority()), 8, size=1, threads=threads)
    assert set(seen) == {own}
