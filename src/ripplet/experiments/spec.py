"""A study as its YAML file describes it: which cells to measure, and what to show of them.

    title: Quality of the default configuration
    about: What the reader should know first.
    datasets: [cora, blog]
    seeds: [0, 1, 2]
    parameters: {kind: stream, dim: 90}       # of every cell; what a kind takes is said in `cells`
    settings:                                 # a row of each table; its parameters come on top
      start 30 %: {start: 0.3}
      start 50 %: {start: 0.5}
    figures:                                  # a table each
      current_micro: Micro-F1 in % at the end of the stream
    beside:                                   # known values to print next to ours
      floor:
        start 50 %:
          current_micro: {cora: 81.3, blog: 74.3}

A cell is a setting on a data set with a seed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ripplet.errors import FormatError, InvalidValueError, MissingExtraError
from ripplet.experiments.cells import Configuration, check

REQUIRED = {"title": str, "datasets": list, "seeds": list, "parameters": dict, "figures": dict}
OPTIONAL = {"about": str, "settings": dict, "beside": dict}


@dataclass(frozen=True, slots=True)
class Study:
    """What to measure and what to show of it."""

    name: str
    title: str
    datasets: list[str]
    seeds: list[int]
    parameters: Configuration
    figures: dict[str, str]
    about: str = ""
    settings: dict[str, Configuration] = field(default_factory=lambda: {"default": {}})
    beside: dict[str, dict[str, dict[str, dict[str, float]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("datasets", "seeds", "settings", "figures"):
            if not getattr(self, name):
                raise InvalidValueError.of(name, "at least one", getattr(self, name))
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int):
                raise InvalidValueError.of("seeds", "whole numbers", seed)
        for settings in self.beside.values():
            _only(self.settings, settings)
            for figures in settings.values():
                _only(self.figures, figures)
                for values in figures.values():
                    _only(self.datasets, values)
        for _, _, configuration in self.cells(self.seeds[:1]):
            check(configuration)

    def cells(self, seeds: list[int] | None = None) -> Iterator[tuple[str, str, Configuration]]:
        """Setting, data set and whole configuration of every cell; a whole seed comes before the next begins."""
        for seed in self.seeds if seeds is None else seeds:
            for setting, own in self.settings.items():
                for dataset in self.datasets:
                    yield setting, dataset, {**self.parameters, **own, "dataset": dataset, "seed": seed}

    def known(self, figure: str, setting: str, dataset: str) -> dict[str, float]:
        """The values to print beside a figure, by their label."""
        found = {
            label: settings.get(setting, {}).get(figure, {}).get(dataset) for label, settings in self.beside.items()
        }
        return {label: value for label, value in found.items() if value is not None}


def load(path: str | Path) -> Study:
    """Read a study and make sure that all its cells can be run, before the first is."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("a study", "eval") from error
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise FormatError(f"{path}: expected YAML, got {error}") from error
    try:
        return Study(name=Path(path).stem, **_checked(content))
    except InvalidValueError as error:
        raise InvalidValueError(f"{path}: {error}") from error


def matches(configuration: Configuration, setting: str, wanted: dict[str, str]) -> bool:
    """Whether a cell has these values, as they would be typed; `setting` is the name of its setting."""
    have = {**configuration, "setting": setting}
    return all(name in have and str(have[name]) == value for name, value in wanted.items())


def _only(known: Collection[str], used: Iterable[str]) -> None:
    for name in used:
        if name not in known:
            raise InvalidValueError.of("beside", "one of " + ", ".join(known), name)


def _checked(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise InvalidValueError.of("study", "a mapping of " + ", ".join(REQUIRED), content)
    known = REQUIRED | OPTIONAL
    for name in content.keys() - known.keys():
        raise InvalidValueError.of("study", "only " + ", ".join(known), name)
    for name in REQUIRED.keys() - content.keys():
        raise InvalidValueError.of(name, "to be given", None)
    for name, value in content.items():
        if not isinstance(value, known[name]):
            raise InvalidValueError.of(name, f"a {known[name].__name__}", value)
    return content
