"""Estimate of the time that the remaining trials of the studies will take.

A trial is expected to cost as much per edge of its data as the most similar recorded trials.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from statistics import fmean
from time import monotonic
from typing import NamedTuple

from ripplevec.lab.datasets import available
from ripplevec.lab.experiments.measurements import MEASUREMENTS, Configuration
from ripplevec.lab.experiments.record import Record, configuration_key
from ripplevec.lab.experiments.runner import Trial


class Forecast:
    """The remaining trials and their expected time, estimated from records and from every finished trial."""

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
