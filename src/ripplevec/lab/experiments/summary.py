"""Summary of all studies: Ripplevec's scores next to the best of each group of methods, and its speedup."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any

from ripplevec.lab.baselines.streaming import STREAMING_BASELINES
from ripplevec.lab.experiments.hyperparameters import TUNED_BY
from ripplevec.lab.experiments.reproduce import Plan
from ripplevec.lab.experiments.study import Study

SCORE_METRIC, SPEEDUP_METRIC = "current_micro@50", "ripplevec_times_faster"
SPECTRAL = "spectral"
STATIC_METHODS = ("deepwalk", "node2vec", "struc2vec", "netmf", "line", "graphwave")

GROUPS: dict[str, Callable[[str, bool], bool]] = {
    "ripplevec": lambda method, tuned: method == "ripplevec",
    "paper_setting": lambda method, tuned: method in STATIC_METHODS and not tuned,
    "tuned": lambda method, tuned: method in STATIC_METHODS and tuned,
    "streaming": lambda method, tuned: method in STREAMING_BASELINES,
    "spectral": lambda method, tuned: method == SPECTRAL,
}
"""Groups of the summary: predicates of the method and of whether its settings are tuned."""

ValuesBySeed = dict[int, float]


def summarize(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return, by data set, micro-F1 with 50 % for training of Ripplevec and the best of each group, and the speedup."""
    studies = plan.studies()
    lines: dict[str, dict[str, Any]] = {}
    if "classification" in studies:
        study = studies["classification"]
        values = _values_by_seed(plan, study, SCORE_METRIC)
        for dataset in study.datasets:
            lines[dataset] = _summarize_dataset(study, values, dataset) | {"times_faster": None}
    if "time" in studies:
        study = studies["time"]
        for (setting, dataset), speedups in _values_by_seed(plan, study, SPEEDUP_METRIC).items():
            if setting == next(iter(study.settings)) and dataset in lines:
                lines[dataset]["times_faster"] = fmean(speedups.values())
    return {dataset: line for dataset, line in lines.items() if any(line.values())}


def _values_by_seed(plan: Plan, study: Study, metric: str) -> dict[tuple[str, str], ValuesBySeed]:
    """Return the values of a metric by setting and data set, for every seed that has it."""
    record = plan.record(study)
    values: dict[tuple[str, str], ValuesBySeed] = {}
    for setting, dataset, configuration in study.trials():
        metrics = record.metrics(configuration) or {}
        if metric in metrics:
            values.setdefault((setting, dataset), {})[configuration["seed"]] = metrics[metric]
    return values


def _summarize_dataset(study: Study, values: dict[tuple[str, str], ValuesBySeed], dataset: str) -> dict[str, Any]:
    """Return the best setting of every group on a data set."""
    groups: dict[str, dict[str, ValuesBySeed]] = {
        group: {
            setting: values[setting, dataset]
            for setting, parameters in study.settings.items()
            if (setting, dataset) in values and belongs(parameters.get("method", ""), TUNED_BY in parameters)
        }
        for group, belongs in GROUPS.items()
    }
    ripplevec = next(iter(groups["ripplevec"].values()), {})
    return {group: _find_best(settings, ripplevec) for group, settings in groups.items()}


def _find_best(settings: dict[str, ValuesBySeed], ripplevec: ValuesBySeed) -> dict[str, Any] | None:
    """Return the setting over which Ripplevec leads least; without Ripplevec, the one with the highest mean."""
    if not settings:
        return None
    leads = {setting: mean_paired_difference(ripplevec, values) for setting, values in settings.items()}
    means = {setting: fmean(values.values()) for setting, values in settings.items()}

    def rank(setting: str) -> tuple[float, float]:
        lead = leads[setting]
        return (math.inf if lead is None else lead, -means[setting])

    best = min(settings, key=rank)
    return {"setting": best, "micro_f1": means[best], "ours_above": leads[best]}


def mean_paired_difference(first: ValuesBySeed, second: ValuesBySeed) -> float | None:
    """Return the mean difference over common seeds, because each seed is another split and some are easier."""
    common = first.keys() & second.keys()
    return fmean(first[seed] - second[seed] for seed in common) if common else None
