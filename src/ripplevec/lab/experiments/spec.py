"""A study as its YAML file describes it: which cells to measure, and what to show of them.

    title: Quality of the default configuration
    about: What the reader should know first.
    datasets: [cora, blog]
    seeds: [0, 1, 2]
    parameters: {kind: stream, dim: 90}       # of every cell; what a kind takes is said in `kinds/`
    settings:                                 # a row of each table; its parameters come on top
      start 30 %: {start: 0.3}
      start 50 %: {start: 0.5}
    figures:                                  # a table each
      current_micro: Micro-F1 in % at the end of the stream
    beside:                                   # known values to print next to ours
      floor:
        start 50 %:
          current_micro: {cora: 81.3, blog: 74.3}
    plots:                                    # a picture each
      depth: {kind: sweep, figure: current_micro, title: "Micro-F1 (%)", x: depth}
    quick: {datasets: [cora], seeds: [0]}     # what to run of it where time is short; without, nothing

A cell is a setting on a data set with a seed. Many settings can be given as `grids`: a parameter with a list of values
stands for as many settings, and so do their combinations.

    grids:
      DeepWalk: {method: deepwalk, length: [10, 40], window: [5, 10]}

A setting may have `seeds` of its own, of those of the study. One that is `tuned_by` another study takes, on each data
set, the parameters with which its method did best there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ripplevec.errors import FormatError, InvalidValueError, MissingExtraError, check_choice
from ripplevec.lab.experiments.hyperparameters import TUNED_BY, Choices
from ripplevec.lab.experiments.trial import Configuration, check

REQUIRED = {"title": str, "datasets": list, "seeds": list, "parameters": dict, "figures": dict}
OPTIONAL = {"about": str, "settings": dict, "grids": dict, "beside": dict, "plots": dict, "quick": dict}
PLOTS = ("shares", "bars", "sweep", "growth", "along", "spread")
QUICK = ("datasets", "seeds", "settings", "parameters")


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture: of one `figure` or of several `figures` with their labels, for some settings or for all."""

    kind: str
    title: str
    figure: str = ""
    figures: dict[str, str] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)
    x: str = ""
    log: bool = False

    def __post_init__(self) -> None:
        check_choice("plots.kind", self.kind, PLOTS)


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
    plots: dict[str, Plot] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)

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
        for plot in self.plots.values():
            _only(self.settings, plot.settings, "plots")
        for configuration in {(setting, dataset): own for setting, dataset, own in self.cells()}.values():
            check({name: value for name, value in configuration.items() if name != TUNED_BY})

    def cells(self) -> Iterator[tuple[str, str, Configuration]]:
        """Setting, data set and whole configuration of every cell; a whole seed comes before the next begins."""
        for seed in self.seeds:
            for setting, own in self.settings.items():
                for dataset in self.datasets if seed in own.get("seeds", self.seeds) else []:
                    whole = {**self.parameters, **own, "dataset": dataset, "seed": seed}
                    whole.pop("seeds", None)
                    yield setting, dataset, self.choices.applied(whole)

    def shortened(self) -> Study | None:
        """What is run of it where time is short, if anything."""
        if not self.quick:
            return None
        settings = {name: self.settings[name] for name in self.quick.get("settings", self.settings)}
        return replace(
            self,
            datasets=self.quick.get("datasets", self.datasets),
            seeds=self.quick.get("seeds", self.seeds),
            settings=settings,
            parameters=self.parameters | self.quick.get("parameters", {}),
            beside={},
            plots={
                name: replace(plot, settings=[one for one in plot.settings if one in settings])
                for name, plot in self.plots.items()
                if not plot.settings or settings.keys() & set(plot.settings)
            },
        )

    def known(self, figure: str, setting: str, dataset: str) -> dict[str, float]:
        """The values to print beside a figure, by their label."""
        found = {
            label: settings.get(setting, {}).get(figure, {}).get(dataset) for label, settings in self.beside.items()
        }
        return {label: value for label, value in found.items() if value is not None}


def load(path: str | Path, results: Path | None = None) -> Study:
    """Read a study and make sure that all its cells can be run, before the first is.

    In `results` lie the records of the studies that its settings are tuned by; these lie beside it.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("a study", "eval") from error
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected YAML, got {error}") from error
    try:
        return _study(Path(path), _checked(content), results)
    except InvalidValueError as error:
        raise InvalidValueError(f"{path}: {error}") from error


def tried(folder: Path, names: Iterable[str]) -> dict[str, list[Configuration]]:
    """The cells of some studies that others are tuned by; none where there is no such study."""
    paths = {name: folder / f"{name}.yaml" for name in names}
    return {name: [own for _, _, own in load(path).cells()] if path.exists() else [] for name, path in paths.items()}


def matches(configuration: Configuration, setting: str, wanted: dict[str, str]) -> bool:
    """Whether a cell has these values, as they would be typed; `setting` is the name of its setting."""
    have = {**configuration, "setting": setting}
    return all(name in have and str(have[name]) == value for name, value in wanted.items())


def _study(path: Path, content: dict[str, Any], results: Path | None) -> Study:
    grids = content.pop("grids", {})
    if grids:
        content["settings"] = content.get("settings", {}) | _expanded(grids)
    if "plots" in content:
        content["plots"] = {key: _plot(value) for key, value in content["plots"].items()}
    quick = content.get("quick", {})
    _only(QUICK, quick, "quick")
    _only(content.get("settings", {}), quick.get("settings", []), "quick")
    settings: dict[str, Configuration] = content.get("settings", {})
    for setting, own in settings.items():
        _check_setting(f"settings.{setting}", own, content["seeds"])
    configurations = [content["parameters"], *settings.values()]
    used = {own[TUNED_BY] for own in configurations if TUNED_BY in own}
    choices = Choices.read(results, tried(path.parent, used)) if results else Choices()
    study = Study(name=path.stem, **content, choices=choices)
    study.shortened()  # so that a mistake in it is found now
    return study


def _check_setting(where: str, own: Any, seeds: list[int]) -> None:
    if not isinstance(own, dict):
        raise InvalidValueError.of(where, "a mapping of parameters", own)
    _only(seeds, own.get("seeds", []), f"{where}.seeds")


def _expanded(grids: dict[str, Configuration]) -> dict[str, Configuration]:
    """Every combination of the listed values as a setting, named by what varies."""
    settings = {}
    for title, grid in grids.items():
        lists = {name: value for name, value in grid.items() if isinstance(value, list) and name != "seeds"}
        for values in product(*lists.values()):
            own = dict(zip(lists, values, strict=True))
            label = ", ".join(f"{name} {value}" for name, value in own.items())
            settings[f"{title}: {label}" if label else title] = {**grid, **own}
    return settings


def _plot(content: Any) -> Plot:
    try:
        return Plot(**content)
    except TypeError as error:
        raise InvalidValueError.of("plots", "kind, title and what is to be drawn", str(error)) from error


def _only(known: Collection[Any], used: Iterable[Any], where: str = "beside") -> None:
    for name in used:
        if name not in known:
            raise InvalidValueError.of(where, "one of " + ", ".join(map(str, known)), name)


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
