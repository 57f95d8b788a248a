"""Blocks of docs/comparison.md: Ripplevec compared with all other measured methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from blocks.records import (
    FAST,
    FAST_TUNED,
    MISSING,
    NAMES,
    OURS,
    PAPER,
    RETRAINED,
    SPECTRAL,
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
    read_record,
    table_by_dataset,
)

Score = Callable[[str, str], ValuesBySeed]
"""Returns the score of a setting on a data set for every seed."""


class Rival(NamedTuple):
    """The strongest method of a group on a data set, its mean, and Ripplevec's mean lead over it, seed by seed."""

    setting: str
    mean: float
    lead: float


def classification_score(metric: str) -> Score:
    """Return a metric of the classification study as a score."""
    return lambda setting, name: load_results("classification").by_seed(metric, setting, name)


def score_from_30(metric: str) -> Score:
    """Return the mean of a classification metric over the train shares of 30 % and more as a score."""
    return lambda setting, name: load_results("classification").mean_from_30(metric, setting, name)


SCORES = {
    "micro": score_from_30("current_micro"),
    "macro": score_from_30("current_macro"),
    "nmi": classification_score("nmi"),
}
GROUPS = {
    "best retrained, paper's setting": RETRAINED,
    "best retrained, tuned": TUNED,
    "best of ProNE and FastRP, default": FAST,
    "best of ProNE and FastRP, tuned": FAST_TUNED,
    "best streaming": STREAMING,
    "plain spectral, retrained": ("spectral",),
    "plain spectral, separate components": ("spectral, separate components",),
    "rule `paper`": (PAPER,),
    "rule `paper`, separate components": (f"{PAPER}, separate components",),
}


def find_strongest(group: Iterable[str], name: str, score: Score, ours: ValuesBySeed) -> Rival:
    """Return the method of a group over which Ripplevec leads least; missing unless all are measured."""
    theirs = {setting: score(setting, name) for setting in group}
    leads = {setting: mean_paired_difference(ours, scores) for setting, scores in theirs.items()}
    if not all_measured(*leads.values()):
        return Rival(MISSING, math.nan, math.nan)
    strongest = min(leads, key=leads.__getitem__)
    return Rival(strongest, mean(list(theirs[strongest].values())), leads[strongest])


def leads_over(group: Iterable[str], score: Score) -> dict[str, float]:
    """Return Ripplevec's lead over the strongest method of a group, on every data set."""
    return {name: find_strongest(group, name, score, score(OURS, name)).lead for name in NAMES}


def compared(score: str) -> str:
    """Return the table of Ripplevec's scores, and of the strongest method of every group with Ripplevec's lead."""
    score_of = SCORES[score]

    def row(group: tuple[str, ...]) -> CellFormatter:
        def format_cell(name: str) -> str:
            rival = find_strongest(group, name, score_of, score_of(OURS, name))
            named = f" {rival.setting.removesuffix(', tuned')}" if len(group) > 1 and all_measured(rival.mean) else ""
            return f"{format_points(rival.mean)}{named} ({format_signed(rival.lead)})"

        return format_cell

    ours = {"**rule `ripple`**": lambda name: f"**{format_points(mean(list(score_of(OURS, name).values())))}**"}
    return table_by_dataset(ours | {label: row(group) for label, group in GROUPS.items()})


def in_short() -> str:
    """Return a summary of the comparison as a list."""
    lines = [
        _summarize_leads(
            f"the best of six retrained methods ({', '.join(RETRAINED)}) at the paper's setting", RETRAINED
        ),
        _summarize_leads("the best of the six, tuned", TUNED),
        _summarize_leads("the better of ProNE and FastRP, tuned, retrained", FAST_TUNED),
        _summarize_leads("plain spectral, retrained, in the better of its two forms", SPECTRAL),
        _summarize_leads("the best of four streaming methods", STREAMING),
        _summarize_speedups("Start and whole stream", "ripplevec_times_faster"),
        _summarize_speedups("One arrival with its share of the anchors", "ripplevec_arrival_times_faster"),
    ]
    return "\n".join(line for line in lines if line) or MISSING


def _summarize_leads(words: str, group: tuple[str, ...]) -> str:
    margins = [margin for score in ("micro", "macro") for margin in leads_over(group, SCORES[score]).values()]
    if not all_measured(*margins):
        return ""
    return list_item(
        f"Against {words}: equal or better in {sum(margin >= 0 for margin in margins)} of {len(margins)} scores "
        f"(micro- and macro-F1, five data sets), {format_signed(min(margins))} to {format_signed(max(margins))} points."
    )


def _summarize_speedups(words: str, metric: str) -> str:
    times = [load_results("time").mean(metric, "one thread", name) for name in NAMES]
    if not all_measured(*times):
        return ""
    low, high = format_number(min(times)), format_number(max(times))
    return list_item(f"{words}: {low} to {high} times faster than one retraining with random walks.")


def checkpoint(score: str) -> str:
    """Return scores of Ripplevec on arrival, and of the others at the next retraining."""
    results = load_results("checkpoint")
    rows = {
        setting: results.mean_and_deviation(
            f"{'checkpoint' if parameters['kind'] == 'checkpoint' else 'arrival'}_{score}", setting
        )
        for setting, parameters in results.study.settings.items()
    }
    return table_by_dataset(rows)


def ratios() -> str:
    """Return the speedups over the fastest baseline by random walks."""
    results = load_results("time")
    rows = {
        "start and stream": "ripplevec_times_faster",
        "start and stream, no anchors": "ripplevec_no_anchor_times_faster",
        "an arrival with its share of the anchors": "ripplevec_arrival_times_faster",
        "an arrival, no anchors": "ripplevec_no_anchor_arrival_times_faster",
    }
    return table_by_dataset(
        {label: results.means([metric], "one thread", format_number) for label, metric in rows.items()}
    )


def growth() -> str:
    """Return the cost on the smallest and the largest graph, and the fitted exponent of growth."""
    results = load_results("growth")
    rows: dict[str, Iterable[str]] = {}
    for metric, label in results.study.figures.items():
        costs = {}
        for setting, parameters in results.study.settings.items():
            if all_measured(cost := results.mean(metric, setting, results.study.datasets[0])):
                costs[parameters["vertices"]] = cost
        rows[label] = _growth_row(costs)
    return markdown_table(["smallest graph", "largest graph", "grows as"], rows)


def _growth_row(costs: dict[int, float]) -> list[str]:
    if len(costs) < 2:
        return [MISSING] * 3
    slope = np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0]
    return [*(f"{format_number(costs[size])} at {size:,}" for size in (min(costs), max(costs))), f"n^{slope:.2f}"]


def links() -> str:
    """Return AUC / mean reciprocal rank of link prediction."""
    results = load_results("links")
    return table_by_dataset(
        {setting: results.means(["auc", "mrr"], setting, format_points) for setting in results.study.settings}
    )


def systems() -> str:
    """Return micro-F1 of dynamic methods with 50 % for training: on arrival / at the end."""
    results = load_results("systems")
    return table_by_dataset({
        setting: results.means(["arrival_micro@50", "current_micro@50"], setting, format_points)
        for setting in results.study.settings
    })  # fmt: skip


def systems_tuned() -> str:
    """Return micro-F1 of the tuned dynamic methods: on arrival / at the end."""
    tuned, default = load_results("systems_tuned"), load_results("systems")
    metrics = ["arrival_micro@50", "current_micro@50"]
    rows = {OURS: default.means(metrics, OURS, format_points)}
    rows |= {setting: tuned.means(metrics, setting, format_points) for setting in tuned.study.settings}
    return table_by_dataset(rows, tuned.study.datasets)


def arrival_cost() -> str:
    """Return the processor microseconds of an arrival with the streaming methods of study `systems`."""
    record = read_record("arrival_cost.json") or {}
    settings = load_results("systems").study.settings
    streaming = [setting for setting in settings if any(f"{name}, {setting}" in record for name in NAMES)]

    def row(setting: str) -> CellFormatter:
        return lambda name: format_number(record.get(f"{name}, {setting}", math.nan))

    return table_by_dataset({setting: row(setting) for setting in streaming})


def retrained_systems() -> str:
    """Return the seconds of a retraining with the systems that cannot follow a stream; tuned ones last."""
    rows = {
        name: results.means(["retrain_seconds"], name, format_number)
        for results in map(load_results, ("systems", "systems_tuned"))
        for name in results.study.settings
        if name.partition(", ")[2].startswith("retrained")
    }
    return table_by_dataset(rows)


SNAPSHOT_METHODS = {
    "ripplevec": "rule `ripple`",
    "rule paper": "rule `paper`",
    "dynnode2vec": "dynnode2vec",
    "glodyne": "GloDyNE",
    "timers": "TIMERS",
    "dynamic_triad": "DynamicTriad",
    "deepwalk": "DeepWalk, retrained",
    "prone": "ProNE, retrained",
    "tuned dynnode2vec": "dynnode2vec, tuned",
    "tuned glodyne": "GloDyNE, tuned",
    "tuned timers": "TIMERS, tuned",
    "tuned dynamic_triad": "DynamicTriad, tuned",
    "tuned deepwalk": "DeepWalk, retrained, tuned",
    "tuned prone": "ProNE, retrained, tuned",
}


def snapshots() -> str:
    """Return the scores of the next snapshot's links and the seconds of measured methods, mean over the seeds."""
    record = read_record("snapshots.json")
    if record is None:
        return MISSING
    runs: dict[str, list[dict[str, float]]] = {}
    for run, metrics in record["runs"].items():
        runs.setdefault(run.split(", ")[1], []).append(metrics)

    def row(name: str) -> list[str]:
        def value(metric: str) -> float:
            return mean([metrics[metric] for metrics in runs[name]])

        scores = [
            f"{format_points(100 * value(f'auc_{score}'))} / {format_points(100 * value(f'mrr_{score}'))}"
            for score in ("cosine", "inner")
        ]
        seconds = (format_number(value(f"{part}_seconds")) for part in ("start", "step"))
        return [str(len(runs[name])), *scores, *seconds]

    head = ["seeds", "cosine: AUC / MRR (%)", "inner product: AUC / MRR (%)", "first snapshot (s)", "next snapshot (s)"]
    return markdown_table(head, {label: row(name) for name, label in SNAPSHOT_METHODS.items() if name in runs})


def retraining() -> str:
    """Return the processor seconds of fast retrainings, and of a whole stream."""
    record = read_record("retraining.json")
    if record is None:
        return MISSING
    rows = {
        "ProNE, one retraining": "prone",
        "FastRP, one retraining": "fastrp",
        "plain spectral, one retraining": "spectral",
        "rule `ripple`, start and stream": "ripplevec",
    }

    def row(method: str) -> CellFormatter:
        return lambda name: format_number(record[f"{name}_{method}"])

    return table_by_dataset({label: row(method) for label, method in rows.items()})


def latency() -> str:
    """Return the microseconds of an arrival: median / 99th percentile / maximum."""
    results = load_results("time")

    def row(method: str) -> CellFormatter:
        return results.means([f"{method}_{part}_us" for part in ("p50", "p99", "maximum")], "one thread", format_number)

    methods = {"ripplevec": "ripplevec", "ripplevec, no anchor": "ripplevec_no_anchor", "rule paper": "paper"}
    return table_by_dataset({label: row(method) for label, method in methods.items()})
