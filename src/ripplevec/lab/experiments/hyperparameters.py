"""Settings chosen by measurement: for each method and data set the one that did best where it was tried.

Nothing is chosen before all settings of a method have been tried on a data set: what an interrupted study has come to
so far, or what is recorded of settings that it no longer has, decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ripplevec.errors import InvalidValueError
from ripplevec.lab.experiments.kinds.base import Configuration
from ripplevec.lab.experiments.record import Record

TUNED_BY = "tuned_by"
BEST = "validation_micro"
OF_THE_CELL = ("kind", "dataset", "seed", "start", "method")

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Choices:
    """The best settings by study, method and data set."""

    best: dict[Key, Configuration] = field(default_factory=dict)

    @classmethod
    def read(cls, results: Path, studies: Mapping[str, Sequence[Configuration]]) -> Choices:
        """The choices that the records of these studies lead to; of each the cells are given."""
        best: dict[Key, Configuration] = {}
        for study, cells in studies.items():
            best |= _best(study, cells, Record.read(results / f"{study}.json"))
        return cls(best)

    def applied(self, configuration: Configuration) -> Configuration:
        """A configuration with its choice in place; as it was where none is to be made, or none is known."""
        if TUNED_BY not in configuration:
            return configuration
        key = (configuration[TUNED_BY], configuration.get("method", ""), configuration["dataset"])
        if key not in self.best:
            return configuration
        rest = {name: value for name, value in configuration.items() if name != TUNED_BY}
        return {**rest, **self.best[key]}


def check_chosen(configuration: Configuration) -> None:
    """Refuse a configuration whose choice has not been made."""
    if TUNED_BY in configuration:
        raise InvalidValueError.of(
            TUNED_BY,
            f"a record with all settings of {configuration.get('method')} on {configuration['dataset']}; "
            f"run the study {configuration[TUNED_BY]} first",
            "an incomplete one",
        )


def _best(study: str, cells: Sequence[Configuration], record: Record) -> dict[Key, Configuration]:
    """Of every method on every data set the setting with the best score, once all are known; of equals the first."""
    best: dict[Key, Configuration] = {}
    top: dict[Key, float] = {}
    missing: set[Key] = set()
    for own in cells:
        key, figures = (study, own["method"], own["dataset"]), record.figures(own)
        if figures is None:
            missing.add(key)
        elif BEST not in figures:
            raise InvalidValueError.of(TUNED_BY, f"a study whose cells have the figure {BEST}", study)
        elif figures[BEST] > top.get(key, -1.0):
            top[key] = figures[BEST]
            best[key] = {name: value for name, value in own.items() if name not in OF_THE_CELL}
    return {key: own for key, own in best.items() if key not in missing}
