"""Settings chosen by measurement: for each method and data set the one that did best where it was tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ripplet.errors import InvalidValueError
from ripplet.experiments.kinds.base import Configuration
from ripplet.experiments.record import Record

TUNED_BY = "tuned_by"
BEST = "validation_micro"
OF_THE_CELL = ("kind", "dataset", "seed", "start", "method")


@dataclass(frozen=True, slots=True)
class Choices:
    """The best settings by study, method and data set."""

    best: dict[tuple[str, str, str], Configuration] = field(default_factory=dict)

    @classmethod
    def read(cls, results: Path | None, studies: Iterable[str]) -> Choices:
        """The choices that the records of these studies lead to; none where there is no record."""
        best: dict[tuple[str, str, str], Configuration] = {}
        if results is not None:
            for study in studies:
                best |= _best(study, Record.read(results / f"{study}.json"))
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
            f"a record with settings of {configuration.get('method')} on {configuration['dataset']}; "
            f"run the study {configuration[TUNED_BY]} first",
            "none",
        )


def _best(study: str, record: Record) -> dict[tuple[str, str, str], Configuration]:
    """Of every method on every data set the setting with the best score; of equals the first."""
    best: dict[tuple[str, str, str], Configuration] = {}
    top: dict[tuple[str, str, str], float] = {}
    for cell in record.cells.values():
        own = cell["configuration"]
        if BEST not in cell["figures"]:
            raise InvalidValueError.of(TUNED_BY, f"a study whose cells have the figure {BEST}", study)
        key = (study, own["method"], own["dataset"])
        if cell["figures"][BEST] > top.get(key, -1.0):
            top[key] = cell["figures"][BEST]
            best[key] = {name: value for name, value in own.items() if name not in OF_THE_CELL}
    return best
