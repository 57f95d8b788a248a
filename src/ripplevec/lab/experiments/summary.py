"""The short of all studies: what ours scores beside the best of each group of others, and how much faster it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any

from ripplevec.lab.baselines import BASELINES
from ripplevec.lab.baselines.streaming import STREAMING_BASELINES
from ripplevec.lab.experiments.hyperparameters import TUNED_BY
from ripplevec.lab.experiments.reproduce import Plan
from ripplevec.lab.experiments.spec import Study

SHARE, FASTER = "current_micro@50", "ripplevec_times_faster"
SPECTRAL = "spectral"
RETRAINED = BASELINES.keys() - {SPECTRAL}

GROUPS: dict[str, Callable[[str, bool], bool]] = {
    "ripplevec": lambda method, tuned: method == "ripplevec",
    "paper_setting": lambda method, tuned: method in RETRAINED and not tuned,
    "tuned": lambda method, tuned: method in RETRAINED and tuned,
    "streaming": lambda method, tuned: method in STREAMING_BASELINES,
    "spectral": lambda method, tuned: method == SPECTRAL,
}
"""Who is compared in the summary, by method and by whether its settings were chosen."""

BySeed = dict[int, float]


def summary(plan: Plan) -> dict[str, dict[str, Any]]:
    """By data set: micro-F1 with 50 % for training, ours and the best of each group, and how much faster ours is."""
    studies = plan.studies()
    lines: dict[str, dict[str, Any]] = {}
    if "classification" in studies:
        study = studies["classification"]
        found = _measured(plan, study, SHARE)
        for dataset in study.datasets:
            lines[dataset] = _line(study, found, dataset) | {"times_faster": None}
    if "time" in studies:
        study = studies["time"]
        for (setting, dataset), faster in _measured(plan, study, FASTER).items():
            if setting == next(iter(study.settings)) and dataset in lines:
                lines[dataset]["times_faster"] = fmean(faster.values())
    return {dataset: line for dataset, line in lines.items() if any(line.values())}


def _measured(plan: Plan, study: Study, figure: str) -> dict[tuple[str, str], BySeed]:
    """A figure by setting and data set, for every seed that has it."""
    record = plan.record(study)
    found: dict[tuple[str, str], BySeed] = {}
    for setting, dataset, configuration in study.cells():
        figures = record.figures(configuration) or {}
        if figure in figures:
            found.setdefault((setting, dataset), {})[configuration["seed"]] = figures[figure]
    return found


def _line(study: Study, found: dict[tuple[str, str], BySeed], dataset: str) -> dict[str, Any]:
    """The best of every group on a data set."""
    groups: dict[str, dict[str, BySeed]] = {
        group: {
            setting: found[setting, dataset]
            for setting, own in study.settings.items()
            if (setting, dataset) in found and belongs(own.get("method", ""), TUNED_BY in own)
        }
        for group, belongs in GROUPS.items()
    }
    ours = next(iter(groups["ripplevec"].values()), {})
    return {group: _best(settings, ours) for group, settings in groups.items()}


def _best(settings: dict[str, BySeed], ours: BySeed) -> dict[str, Any] | None:
    """The setting that ours is least above, seed by seed, and by how much; without ours, the highest mean."""
    if not settings:
        return None
    ahead = {setting: paired(ours, theirs) for setting, theirs in settings.items()}
    means = {setting: fmean(theirs.values()) for setting, theirs in settings.items()}

    def rank(setting: str) -> tuple[float, float]:
        lead = ahead[setting]
        return (math.inf if lead is None else lead, -means[setting])

    best = min(settings, key=rank)
    return {"setting": best, "micro_f1": means[best], "ours_above": ahead[best]}


def paired(ours: BySeed, theirs: BySeed) -> float | None:
    """The mean difference over the seeds that both have: with each seed comes another split, some of them easier."""
    shared = ours.keys() & theirs.keys()
    return fmean(ours[seed] - theirs[seed] for seed in shared) if shared else None
