"""A study as described by its YAML file: the trials to run, and the tables and pictures to show.

    title: Quality of the default configuration
    about: An introduction for the reader.
    datasets: [cora, blog]
    seeds: [0, 1, 2]
    parameters: {kind: stream, dim: 90}       # of every trial; `measurements/` documents the parameters of each kind
    settings:                                 # one row of each table; the parameters are added to the common ones
      start 30 %: {start: 0.3}
      start 50 %: {start: 0.5}
    figures:                                  # one table per metric, with its heading
      current_micro: Micro-F1 in % at the end of the stream
    beside:                                   # reference values to print next to the measured ones
      floor:
        start 50 %:
          current_micro: {cora: 81.3, blog: 74.3}
    plots:                                    # one picture each
      depth: {kind: sweep, figure: current_micro, title: "Micro-F1 (%)", x: depth}
    quick: {datasets: [cora], seeds: [0]}     # the part to run in quick mode; by default nothing

A trial is a setting on a data set with a seed. Many settings can be given as `grids`: a parameter with a list of values
expands to one setting per value, and several lists to all combinations.

    grids:
      DeepWalk: {method: deepwalk, length: [10, 40], window: [5, 10]}

A setting may have its own `seeds`, a subset of those of the study. A setting that is `tuned_by` another study takes, on
each data set, the parameters with which its method scored best there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ripplevec.errors import FormatError, InvalidValueError, MissingExtraError, check_choice
from ripplevec.lab.experiments.hyperparameters import TUNED_BY, TunedSettings
from ripplevec.lab.experiments.measurements import Configuration, check_trial

REQUIRED_KEYS = {"title": str, "datasets": list, "seeds": list, "parameters": dict, "figures": dict}
OPTIONAL_KEYS = {"about": str, "settings": dict, "grids": dict, "beside": dict, "plots": dict, "quick": dict}
PLOT_KINDS = ("shares", "bars", "sweep", "growth", "along", "spread")
QUICK_KEYS = ("datasets", "seeds", "settings", "parameters")


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of one metric (`figure`) or of several (`figures`, with labels), for some settings or for all."""

    kind: str
    title: str
    figure: str = ""
    figures: dict[str, str] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)
    x: str = ""
    log: bool = False

    def __post_init__(self) -> None:
        check_choice("plots.kind", self.kind, PLOT_KINDS)


@dataclass(frozen=True, slots=True)
class Study:
    """The trials of a study, and how to show their results; the field names are those of the YAML file."""

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
    tuned: TunedSettings = field(default_factory=TunedSettings)

    def __post_init__(self) -> None:
        for name in ("datasets", "seeds", "settings", "figures"):
            if not getattr(self, name):
                raise InvalidValueError.of(name, "at least one", getattr(self, name))
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int):
                raise InvalidValueError.of("seeds", "integers", seed)
        for settings in self.beside.values():
            _check_names(self.settings, settings)
            for figures in settings.values():
                _check_names(self.figures, figures)
                for values in figures.values():
                    _check_names(self.datasets, values)
        for plot in self.plots.values():
            _check_names(self.settings, plot.settings, "plots")
        representatives = {(setting, dataset): configuration for setting, dataset, configuration in self.trials()}
        for configuration in representatives.values():  # seeds do not matter for the check
            check_trial({name: value for name, value in configuration.items() if name != TUNED_BY})

    def trials(self) -> Iterator[tuple[str, str, Configuration]]:
        """Yield setting, data set and configuration of every trial, seed by seed."""
        for seed in self.seeds:
            for setting, parameters in self.settings.items():
                for dataset in self.datasets if seed in parameters.get("seeds", self.seeds) else []:
                    configuration = {**self.parameters, **parameters, "dataset": dataset, "seed": seed}
                    configuration.pop("seeds", None)
                    yield setting, dataset, self.tuned.apply(configuration)

    def quick_version(self) -> Study | None:
        """Return the part of the study that is run in quick mode; None if there is none."""
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
                name: replace(plot, settings=[name for name in plot.settings if name in settings])
                for name, plot in self.plots.items()
                if not plot.settings or settings.keys() & set(plot.settings)
            },
        )

    def reference_values(self, metric: str, setting: str, dataset: str) -> dict[str, float]:
        """Return the reference values to print next to a metric, by label."""
        values = {
            label: settings.get(setting, {}).get(metric, {}).get(dataset) for label, settings in self.beside.items()
        }
        return {label: value for label, value in values.items() if value is not None}


def load_study(path: str | Path, results: Path | None = None) -> Study:
    """Read a study and check that all its trials can be run.

    `results` is the folder with the records of the studies that settings are tuned by; their YAML files are next to
    `path`.
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
        return _build_study(Path(path), _check_content(content), results)
    except InvalidValueError as error:
        raise InvalidValueError(f"{path}: {error}") from error


def load_configurations(folder: Path, names: Iterable[str]) -> dict[str, list[Configuration]]:
    """Return the configurations of all trials of some studies; an empty list for a study that does not exist."""
    paths = {name: folder / f"{name}.yaml" for name in names}
    return {
        name: [configuration for _, _, configuration in load_study(path).trials()] if path.exists() else []
        for name, path in paths.items()
    }


def matches(configuration: Configuration, setting: str, wanted: dict[str, str]) -> bool:
    """Tell whether a trial has the wanted values, given as text; the key `setting` is the name of its setting."""
    values = {**configuration, "setting": setting}
    return all(name in values and str(values[name]) == value for name, value in wanted.items())


def _build_study(path: Path, content: dict[str, Any], results: Path | None) -> Study:
    grids = content.pop("grids", {})
    if grids:
        content["settings"] = content.get("settings", {}) | _expand_grids(grids)
    if "plots" in content:
        content["plots"] = {key: _build_plot(value) for key, value in content["plots"].items()}
    quick = content.get("quick", {})
    _check_names(QUICK_KEYS, quick, "quick")
    _check_names(content.get("settings", {}), quick.get("settings", []), "quick")
    settings: dict[str, Configuration] = content.get("settings", {})
    for setting, parameters in settings.items():
        _check_setting(f"settings.{setting}", parameters, content["seeds"])
    configurations = [content["parameters"], *settings.values()]
    tuning_studies = {parameters[TUNED_BY] for parameters in configurations if TUNED_BY in parameters}
    tuned = TunedSettings()
    if results:
        tuned = TunedSettings.read(results, load_configurations(path.parent, tuning_studies))
    study = Study(name=path.stem, **content, tuned=tuned)
    study.quick_version()  # raises now if the quick version is invalid
    return study


def _check_setting(where: str, parameters: Any, seeds: list[int]) -> None:
    if not isinstance(parameters, dict):
        raise InvalidValueError.of(where, "a mapping of parameters", parameters)
    _check_names(seeds, parameters.get("seeds", []), f"{where}.seeds")


def _expand_grids(grids: dict[str, Configuration]) -> dict[str, Configuration]:
    """Expand every combination of the listed values to a setting, named by the varying parameters."""
    settings = {}
    for title, grid in grids.items():
        lists = {name: value for name, value in grid.items() if isinstance(value, list) and name != "seeds"}
        for values in product(*lists.values()):
            combination = dict(zip(lists, values, strict=True))
            label = ", ".join(f"{name} {value}" for name, value in combination.items())
            settings[f"{title}: {label}" if label else title] = {**grid, **combination}
    return settings


def _build_plot(content: Any) -> Plot:
    try:
        return Plot(**content)
    except TypeError as error:
        raise InvalidValueError.of("plots", "kind, title and the metrics to draw", str(error)) from error


def _check_names(known: Collection[Any], used: Iterable[Any], where: str = "beside") -> None:
    for name in used:
        if name not in known:
            raise InvalidValueError.of(where, "one of " + ", ".join(map(str, known)), name)


def _check_content(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise InvalidValueError.of("study", "a mapping of " + ", ".join(REQUIRED_KEYS), content)
    known = REQUIRED_KEYS | OPTIONAL_KEYS
    for name in content.keys() - known.keys():
        raise InvalidValueError.of("study", "only " + ", ".join(known), name)
    for name in REQUIRED_KEYS.keys() - content.keys():
        raise InvalidValueError(f"{name} is required")
    for name, value in content.items():
        if not isinstance(value, known[name]):
            raise InvalidValueError.of(name, f"a {known[name].__name__}", value)
    return content
