"""Tuned settings: for each method and data set, the setting with the best validation score in another study.

A setting is selected only after all settings of a method have been tried on a data set. Partial results of an
interrupted study, and records of settings that the study no longer contains, are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ripplevec.errors import InvalidValueError
from ripplevec.lab.experiments.measurements.base import Configuration
from ripplevec.lab.experiments.record import Record

TUNED_BY = "tuned_by"
SELECTION_METRIC = "validation_micro"
TRIAL_PARAMETERS = ("kind", "dataset", "seed", "start", "method")
"""Parameters that belong to the trial, not to the setting that is tuned."""

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TunedSettings:
    """The best settings by study, method and data set."""

    best: dict[Key, Configuration] = field(default_factory=dict)

    @classmethod
    def read(cls, results: Path, studies: Mapping[str, Sequence[Configuration]]) -> TunedSettings:
        """Select the best settings from the records of tuning studies, given the configurations of their trials."""
        best: dict[Key, Configuration] = {}
        for study, configurations in studies.items():
            best |= _select_best(study, configurations, Record.read(results / f"{study}.json"))
        return cls(best)

    def apply(self, configuration: Configuration) -> Configuration:
        """Return a configuration with its tuned setting; unchanged if it needs none or none is known yet."""
        if TUNED_BY not in configuration:
            return configuration
        key = (configuration[TUNED_BY], configuration.get("method", ""), configuration["dataset"])
        if key not in self.best:
            return configuration
        rest = {name: value for name, value in configuration.items() if name != TUNED_BY}
        return {**rest, **self.best[key]}


def check_tuned(configuration: Configuration) -> None:
    """Raise if a configuration needs a tuned setting that is not known yet."""
    if TUNED_BY in configuration:
        raise InvalidValueError.of(
            TUNED_BY,
            f"a record with all settings of {configuration.get('method')} on {configuration['dataset']} "
            f"(run the study {configuration[TUNED_BY]} first)",
            "an incomplete one",
        )


def _select_best(study: str, configurations: Sequence[Configuration], record: Record) -> dict[Key, Configuration]:
    """Return the best setting of every method on every data set that is complete; the first one of equals."""
    best: dict[Key, Configuration] = {}
    best_score: dict[Key, float] = {}
    incomplete: set[Key] = set()
    for configuration in configurations:
        key = (study, configuration["method"], configuration["dataset"])
        metrics = record.metrics(configuration)
        if metrics is None:
            incomplete.add(key)
        elif SELECTION_METRIC not in metrics:
            raise InvalidValueError.of(TUNED_BY, f"a study whose trials have the metric {SELECTION_METRIC}", study)
        elif metrics[SELECTION_METRIC] > best_score.get(key, -1.0):
            best_score[key] = metrics[SELECTION_METRIC]
            best[key] = {name: value for name, value in configuration.items() if name not in TRIAL_PARAMETERS}
    return {key: setting for key, setting in best.items() if key not in incomplete}
