"""Ours beside everything else that was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from blocks.records import (
    MISSING,
    NAMES,
    OURS,
    PAPER,
    RETRAINED,
    STREAMING,
    TUNED,
    CellFormatter,
    ValuesBySeed,
    all_measured,
    format_number,
    format_points,
    format_signed,
    list_item,
    load_results,
    markdown_table,
    mean,
    mean_paired_difference,
    table_by_dataset,
)

Score = Callable[[str, str], ValuesBySeed]
"""What a setting scores on a data set with every seed."""


class Rival(NamedTuple):
    """Who of a group is hardest to beat on a data set, its own mean, and how far ours is above it, seed by seed."""

    setting: str
    mean: float
    ahead: float


def of_classification(figure: str) -> Score:
    """A figure of the study of classification."""
    return lambda setting, name: load_results("classification").by_seed(figure, setting, name)


def from_30(figure: str) -> Score:
    """A figure of it, mean over the train shares of 30 % and more."""
    return lambda setting, name: load_results("classification").mean_from_30(figure, setting, name)


SCORES = {"micro": from_30("current_micro"), "macro": from_30("current_macro"), "nmi": of_classification("nmi")}
GROUPS = {
    "best retrained, paper's setting": RETRAINED,
    "best retrained, tuned": TUNED,
    "best streaming": STREAMING,
    "plain spectral, retrained": ("spectral",),
    "rule `paper`": (PAPER,),
}


def best(group: Iterable[str], name: str, score: Score, ours: ValuesBySeed) -> Rival:
    """The best of a group on a data set, once all of it are measured: the one that ours is least above."""
    theirs = {setting: score(setting, name) for setting in group}
    leads = {setting: mean_paired_difference(ours, found) for setting, found in theirs.items()}
    if not all_measured(*leads.values()):
        return Rival(MISSING, math.nan, math.nan)
    winner = min(leads, key=leads.__getitem__)
    return Rival(winner, mean(list(theirs[winner].values())), leads[winner])


def ahead(group: Iterable[str], score: Score) -> dict[str, float]:
    """How far ours is above the best of a group, on every data set."""
    return {name: best(group, name, score, score(OURS, name)).ahead for name in NAMES}


def compared(score: str) -> str:
    """Ours, and the best of every group with its name and how far ours is above it."""
    of = SCORES[score]

    def fill(group: tuple[str, ...]) -> CellFormatter:
        def one(name: str) -> str:
            rival = best(group, name, of, of(OURS, name))
            named = f" {rival.setting.removesuffix(', tuned')}" if len(group) > 1 and all_measured(rival.mean) else ""
            return f"{format_points(rival.mean)}{named} ({format_signed(rival.ahead)})"

        return one

    ours = {"**rule `ripple`**": lambda name: f"**{format_points(mean(list(of(OURS, name).values())))}**"}
    return table_by_dataset(ours | {label: fill(group) for label, group in GROUPS.items()})


def in_short() -> str:
    """What it comes to, in a few lines."""
    lines = [
        _scores(f"the best of six retrained methods ({', '.join(RETRAINED)}) at the paper's setting", RETRAINED),
        _scores("the best of the six, tuned", TUNED),
        _scores("plain spectral, retrained", ("spectral",)),
        _scores("the best of four streaming methods", STREAMING),
        _times("Start and whole stream", "ripplevec_times_faster"),
        _times("One arrival with its share of the anchors", "ripplevec_arrival_times_faster"),
    ]
    return "\n".join(line for line in lines if line) or MISSING


def _scores(words: str, group: tuple[str, ...]) -> str:
    margins = [margin for score in ("micro", "macro") for margin in ahead(group, SCORES[score]).values()]
    if not all_measured(*margins):
        return ""
    return list_item(
        f"Against {words}: level or above in {sum(margin >= 0 for margin in margins)} of {len(margins)} scores "
        f"(micro- and macro-F1, five data sets), {format_signed(min(margins))} to {format_signed(max(margins))} points."
    )


def _times(words: str, figure: str) -> str:
    times = [load_results("time").mean(figure, "one thread", name) for name in NAMES]
    if not all_measured(*times):
        return ""
    return list_item(
        f"{words}: {format_number(min(times))} to {format_number(max(times))} times faster than one retraining by walks."
    )


def checkpoint(score: str) -> str:
    """Ours on arrival, the others at the next retraining."""
    found = load_results("checkpoint")
    rows = {
        setting: found.mean_and_deviation(
            f"{'checkpoint' if own['kind'] == 'checkpoint' else 'arrival'}_{score}", setting
        )
        for setting, own in found.study.settings.items()
    }
    return table_by_dataset(rows)


def ratios() -> str:
    """Times faster than the fastest retraining by walks."""
    found = load_results("time")
    rows = {
        "start and stream": "ripplevec_times_faster",
        "start and stream, no anchors": "ripplevec_no_anchor_times_faster",
        "an arrival, its share of the anchors included": "ripplevec_arrival_times_faster",
        "an arrival, no anchors": "ripplevec_no_anchor_arrival_times_faster",
    }
    return table_by_dataset(
        {label: found.means([figure], "one thread", format_number) for label, figure in rows.items()}
    )


def growth() -> str:
    """Cost on the smallest and the largest graph, and the slope of the straight line through all, log-log."""
    found = load_results("growth")
    rows: dict[str, Iterable[str]] = {}
    for figure, label in found.study.figures.items():
        costs = {}
        for setting, own in found.study.settings.items():
            if all_measured(cost := found.mean(figure, setting, found.study.datasets[0])):
                costs[own["vertices"]] = cost
        rows[label] = _growth_row(costs)
    return markdown_table(["smallest graph", "largest graph", "grows as"], rows)


def _growth_row(costs: dict[int, float]) -> list[str]:
    if len(costs) < 2:
        return [MISSING] * 3
    slope = np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0]
    return [*(f"{format_number(costs[size])} at {size:,}" for size in (min(costs), max(costs))), f"n^{slope:.2f}"]


def links() -> str:
    """AUC / mean reciprocal rank of the next edges."""
    found = load_results("links")
    return table_by_dataset(
        {setting: found.means(["auc", "mrr"], setting, format_points) for setting in found.study.settings}
    )


def latency() -> str:
    """Microseconds of an arrival: median / 99th percentile / slowest."""
    found = load_results("time")

    def fill(who: str) -> CellFormatter:
        return found.means([f"{who}_{part}_us" for part in ("p50", "p99", "maximum")], "one thread", format_number)

    who = {"ripplevec": "ripplevec", "ripplevec, no anchor": "ripplevec_no_anchor", "rule paper": "paper"}
    return table_by_dataset({label: fill(figure) for label, figure in who.items()})
