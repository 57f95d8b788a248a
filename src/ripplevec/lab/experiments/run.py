"""Running studies: every cell that is not recorded yet, several side by side, each recorded as soon as it is done."""

from __future__ import annotations

import os
import signal
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

from ripplevec.errors import InvalidValueError, RipplevecError
from ripplevec.lab.evaluation.protocols import time_call
from ripplevec.lab.experiments.hyperparameters import check_chosen
from ripplevec.lab.experiments.kinds import KINDS
from ripplevec.lab.experiments.record import Record, environment, key_of
from ripplevec.lab.experiments.spec import Study, matches
from ripplevec.lab.experiments.trial import Configuration, Measured, measure

Cell = tuple[str, Configuration]

Told = Callable[[Cell, float], object]
"""Who is told that a cell is done, and how many seconds it took."""

THREADS = "OMP_NUM_THREADS"
LONGEST = 300  # characters of a list in a message


def waiting(study: Study, record: Record, only: dict[str, str] | None = None, again: bool = False) -> list[Cell]:
    """The cells that match `only` and are not recorded, or all that match, `again`: a name and a configuration."""
    wanted = {
        key_of(configuration): (f"{dataset}, {setting}, seed {configuration['seed']}", configuration)
        for setting, dataset, configuration in study.cells()
        if matches(configuration, setting, only or {})
    }
    if not wanted:
        raise _no_cell(study, only or {})
    return [cell for key, cell in wanted.items() if again or key not in record.cells]


def _no_cell(study: Study, only: dict[str, str]) -> InvalidValueError:
    """Which part of a choice no cell has, and what there is to choose from."""
    have: dict[str, dict[str, None]] = {}
    for setting, _, configuration in study.cells():
        for name, value in {**configuration, "setting": setting}.items():
            have.setdefault(name, {})[str(value)] = None
    for name, value in only.items():
        if name not in have:
            return InvalidValueError.of("only", f"names among {', '.join(have)}", name)
        if value not in have[name]:
            some = textwrap.shorten(", ".join(have[name]), LONGEST, placeholder=" …")
            return InvalidValueError.of(f"only {name}", f"one of {some}", value)
    return InvalidValueError.of("only", "values that some cell has all at once", only)


def run(cells: list[Cell], record: Record, jobs: int = 1, told: Told | None = None) -> None:
    """Run cells, `jobs` at a time, those that measure time one by one; what is done is recorded at once."""
    if not cells:
        return
    for _, configuration in cells:
        check_chosen(configuration)
    where = environment()  # now, before hours pass in which the source may change: processes read it when they begin
    alone = [cell for cell in cells if KINDS[cell[1]["kind"]].alone]
    others = [cell for cell in cells if not KINDS[cell[1]["kind"]].alone]
    for batch, workers in ((others, jobs), (alone, 1)):
        for cell, (seconds, measured) in _results(batch, min(workers, len(batch))):
            record.add(cell[1], measured, seconds, where)
            if told:
                told(cell, seconds)


def _results(cells: list[Cell], jobs: int) -> Iterator[tuple[Cell, tuple[float, Measured]]]:
    """What each cell came to, as they are done."""
    if jobs <= 1:
        for cell in cells:
            yield cell, _timed(cell[1])
        return
    try:
        yield from _side_by_side(cells, jobs)
    except BrokenProcessPool as error:
        raise RipplevecError(
            "a process that ran a cell was ended from outside, mostly for want of memory; what is done is recorded: "
            f"run the same again with less than --jobs {jobs}"
        ) from error


def _side_by_side(cells: list[Cell], jobs: int) -> Iterator[tuple[Cell, tuple[float, Measured]]]:
    """What each cell came to in a process of its own; an error comes last, after what had begun beside it."""
    with _pool(jobs) as pool:
        with _deaf_children(), _one_thread_each():
            futures: dict[Future[Any], Cell] = {pool.submit(_timed, cell[1]): cell for cell in cells}
        failed: BaseException | None = None
        for done in as_completed(futures):
            if done.cancelled():
                continue
            if done.exception() is None:
                yield futures[done], done.result()
                continue
            failed = failed or done.exception()
            for other in futures:
                other.cancel()
        if failed:
            raise failed


def _timed(configuration: Configuration) -> tuple[float, Measured]:
    return time_call(lambda: measure(configuration))


@contextmanager
def _pool(jobs: int) -> Iterator[Executor]:
    """Processes side by side; on an error what has not begun is not begun."""
    pool = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        yield pool
    except KeyboardInterrupt:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Ctrl-C is for this process alone: those that begin here inherit that it is blocked, and are ended from here."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that begin here keep to one thread of linear algebra: it looks for this once, when it is loaded."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before
