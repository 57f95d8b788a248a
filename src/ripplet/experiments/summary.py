"""The short of all studies: what ours scores beside the best of each group of others, and how much faster it is."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from ripplet.baselines import BASELINES
from ripplet.baselines.streaming import STREAMING_BASELINES
from ripplet.experiments.record import Record
from ripplet.experiments.report import measured, values_of
from ripplet.experiments.reproduce import Plan
from ripplet.experiments.spec import Study
from ripplet.experiments.tuned import TUNED_BY

SHARE, FASTER = "current_micro@50", "ripplet_times_faster"

GROUPS: dict[str, Callable[[str, bool], bool]] = {
    "ripplet": lambda method, tuned: method == "ripplet",
    "paper_setting": lambda method, tuned: method in BASELINES and not tuned,
    "tuned": lambda method, tuned: method in BASELINES and tuned,
    "streaming": lambda method, tuned: method in STREAMING_BASELINES,
}
"""Who is compared in the summary, by method and by whether its settings were chosen."""


def summary(plan: Plan) -> dict[str, dict[str, Any]]:
    """By data set: micro-F1 with 50 % for training, ours and the best of each group, and how much faster ours is."""
    studies = plan.studies()
    lines: dict[str, dict[str, Any]] = {}
    if "classification" in studies:
        study = studies["classification"]
        means = _means(study, plan.record(study), SHARE)
        for dataset in study.datasets:
            lines[dataset] = {group: _best(study, means, group, dataset) for group in GROUPS} | {"times_faster": None}
    if "time" in studies:
        study = studies["time"]
        for (setting, dataset), faster in _means(study, plan.record(study), FASTER).items():
            if setting == next(iter(study.settings)) and dataset in lines:
                lines[dataset]["times_faster"] = faster
    return {dataset: line for dataset, line in lines.items() if any(line.values())}


def _means(study: Study, record: Record, figure: str) -> dict[tuple[str, str], float]:
    """The mean of a figure over the seeds, by setting and data set, where it was measured."""
    cells = measured(study, record)
    return {key: fmean(values) for key in cells if (values := values_of(cells, figure, *key))}


def _best(study: Study, means: dict[tuple[str, str], float], group: str, dataset: str) -> dict[str, Any] | None:
    """The best setting of a group on a data set, and what it came to."""
    found = {
        setting: means[setting, dataset]
        for setting, own in study.settings.items()
        if (setting, dataset) in means and GROUPS[group](own.get("method", ""), TUNED_BY in own)
    }
    if not found:
        return None
    best = max(found, key=lambda setting: found[setting])
    return {"setting": best, "micro_f1": found[best]}
