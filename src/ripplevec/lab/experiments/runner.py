"""Run the trials of a study that are not recorded yet, several in parallel, with an estimate of the time left."""

from __future__ import annotations

import os
import signal
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from statistics import fmean
from time import monotonic
from typing import Any, NamedTuple

from ripplevec.errors import InvalidValueError, RipplevecError
from ripplevec.lab.datasets import available
from ripplevec.lab.evaluation.protocols import time_call
from ripplevec.lab.experiments.hyperparameters import check_tuned
from ripplevec.lab.experiments.measurements import MEASUREMENTS, Configuration, TrialResult, run_trial
from ripplevec.lab.experiments.record import Record, configuration_key, describe_environment
from ripplevec.lab.experiments.study import Study, matches


class Forecast:
    """The remaining trials and their expected time, estimated from records and from every finished trial.

    A trial is expected to cost as much per edge of its data as the most similar recorded trials.
    """

    def __init__(self, records: Iterable[Record], jobs: int = 1) -> None:
        self._jobs = jobs
        self._seconds: dict[Hashable, float] = defaultdict(float)
        self._edges: dict[Hashable, float] = defaultdict(float)
        self._remaining: Counter[_TrialClass] = Counter()
        for record in records:
            for trial in record.trials.values():
                self._learn(_TrialClass.of(trial["configuration"]), trial["seconds"])

    def set_remaining(self, trials: Iterable[Trial]) -> None:
        """Replace the list of remaining trials."""
        self._remaining = Counter(_TrialClass.of(configuration) for _, configuration in trials)

    def add_finished(self, configuration: Configuration, seconds: float) -> None:
        """Remove a finished trial from the remaining ones, and learn from its time."""
        trial = _TrialClass.of(configuration)
        self._remaining -= Counter([trial])
        self._learn(trial, seconds)

    def remaining_trials(self) -> int:
        """Return the number of remaining trials."""
        return self._remaining.total()

    def remaining_seconds(self) -> float | None:
        """Return the expected time of the remaining trials, parallel unless exclusive; None before the first trial."""
        if not self._seconds:
            return None
        return sum(
            self._expected_seconds(trial) * count / (1 if trial.exclusive else self._jobs)
            for trial, count in self._remaining.items()
        )

    def expected_end(self) -> float | None:
        """Return the expected end on the monotonic clock; None before the first trial."""
        seconds = self.remaining_seconds()
        return None if seconds is None else monotonic() + seconds

    def _learn(self, trial: _TrialClass, seconds: float) -> None:
        for group in trial.groups:
            self._seconds[group] += seconds
            self._edges[group] += trial.edges

    def _expected_seconds(self, trial: _TrialClass) -> float:
        closest = next(group for group in trial.groups if group in self._seconds)
        return trial.edges * self._seconds[closest] / self._edges[closest]


class _TrialClass(NamedTuple):
    """Properties that determine the time of a trial: groups of similar trials, from narrow to all, and its size."""

    groups: tuple[Hashable, ...]
    edges: float
    exclusive: bool

    @classmethod
    def of(cls, configuration: Configuration) -> _TrialClass:
        kind, method, dataset = (configuration.get(name) for name in ("kind", "method", "dataset"))
        without_seed = configuration_key({name: value for name, value in configuration.items() if name != "seed"})
        groups = (without_seed, (kind, method, dataset), (kind, method), (kind,), ())
        return cls(groups, _estimate_edges(configuration), kind in MEASUREMENTS and MEASUREMENTS[kind].exclusive)


def _estimate_edges(configuration: Configuration) -> float:
    """Return the number of edges of the data; for generated data the number of vertices, or the published mean."""
    published = {name: float(info.edges) for name, info in available().items()}
    return published.get(configuration["dataset"]) or configuration.get("vertices") or fmean(published.values())


THREADS_VARIABLE = "OMP_NUM_THREADS"
MAX_LIST_LENGTH = 300  # characters of a list in a message


class Trial(NamedTuple):
    """A configuration to measure, with a name for messages."""

    name: str
    configuration: Configuration


TrialCallback = Callable[[Trial, float], object]
"""Called when a trial is done, with the seconds it took."""


def find_pending(study: Study, record: Record, only: dict[str, str] | None = None, again: bool = False) -> list[Trial]:
    """Return the trials that match `only` and are not recorded; with `again`, also the recorded ones."""
    matching = {
        configuration_key(configuration): Trial(f"{dataset}, {setting}, seed {configuration['seed']}", configuration)
        for setting, dataset, configuration in study.trials()
        if matches(configuration, setting, only or {})
    }
    if not matching:
        raise _no_match_error(study, only or {})
    return [trial for key, trial in matching.items() if again or key not in record.trials]


def _no_match_error(study: Study, only: dict[str, str]) -> InvalidValueError:
    """Build the error that names the part of a filter that no trial matches, and the available values."""
    available: dict[str, dict[str, None]] = {}
    for setting, _, configuration in study.trials():
        for name, value in {**configuration, "setting": setting}.items():
            available.setdefault(name, {})[str(value)] = None
    for name, value in only.items():
        if name not in available:
            return InvalidValueError.of("only", f"names among {', '.join(available)}", name)
        if value not in available[name]:
            choices = textwrap.shorten(", ".join(available[name]), MAX_LIST_LENGTH, placeholder=" …")
            return InvalidValueError.of(f"only {name}", f"one of {choices}", value)
    return InvalidValueError.of("only", "a combination of values that some trial has", only)


def run_trials(trials: list[Trial], record: Record, jobs: int = 1, on_trial_done: TrialCallback | None = None) -> None:
    """Run trials, `jobs` at a time and exclusive ones alone; record each result immediately."""
    if not trials:
        return
    for _, configuration in trials:
        check_tuned(configuration)
    environment = describe_environment()  # now, because the source may change while trials run for hours
    exclusive = [trial for trial in trials if MEASUREMENTS[trial.configuration["kind"]].exclusive]
    others = [trial for trial in trials if not MEASUREMENTS[trial.configuration["kind"]].exclusive]
    for group, workers in ((others, jobs), (exclusive, 1)):
        for trial, (seconds, result) in _iterate_results(group, min(workers, len(group))):
            record.add(trial.configuration, result, seconds, environment)
            if on_trial_done:
                on_trial_done(trial, seconds)


def _iterate_results(trials: list[Trial], jobs: int) -> Iterator[tuple[Trial, tuple[float, TrialResult]]]:
    """Yield the seconds and the result of each trial when it is done."""
    if jobs <= 1:
        for trial in trials:
            yield trial, _time_trial(trial.configuration)
        return
    try:
        yield from _run_in_parallel(trials, jobs)
    except BrokenProcessPool as error:
        raise RipplevecError(
            "A worker process was killed, probably because memory ran out. Finished trials are recorded: "
            f"run the same command again with fewer than --jobs {jobs}."
        ) from error


def _run_in_parallel(trials: list[Trial], jobs: int) -> Iterator[tuple[Trial, tuple[float, TrialResult]]]:
    """Yield the results of trials run in worker processes; an error is raised after the running trials finished."""
    with _process_pool(jobs) as pool:
        with _block_interrupts(), _one_blas_thread():
            futures: dict[Future[Any], Trial] = {
                pool.submit(_time_trial, trial.configuration): trial for trial in trials
            }
        failure: BaseException | None = None
        for future in as_completed(futures):
            if future.cancelled():
                continue
            if future.exception() is None:
                yield futures[future], future.result()
                continue
            failure = failure or future.exception()
            for other in futures:
                other.cancel()
        if failure:
            raise failure


def _time_trial(configuration: Configuration) -> tuple[float, TrialResult]:
    return time_call(lambda: run_trial(configuration))


@contextmanager
def _process_pool(jobs: int) -> Iterator[Executor]:
    """Create a pool of worker processes; trials that have not begun are canceled on an error."""
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
def _block_interrupts() -> Iterator[None]:
    """Start worker processes with Ctrl-C blocked: only this process handles it, and terminates the workers."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Start worker processes with one linear algebra thread; the variable is read once, when the library loads."""
    before = os.environ.get(THREADS_VARIABLE)
    os.environ[THREADS_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS_VARIABLE]
        else:
            os.environ[THREADS_VARIABLE] = before
