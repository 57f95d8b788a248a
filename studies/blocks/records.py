"""Access to the committed records, number formats and Markdown tables; missing values are NaN, and dashes in tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from textwrap import fill
from typing import Any

from ripplevec.lab.experiments import summary
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import MISSING as MISSING
from ripplevec.lab.experiments.report import Results, collect_results, format_values, select_values
from ripplevec.lab.experiments.study import Study, load_study
from ripplevec.lab.experiments.summary import ValuesBySeed as ValuesBySeed

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "wiki": "Wiki", "blog": "Blog", "flickr": "Flickr"}
OURS, PAPER = "ripplevec", "rule paper"
PAPER_BASELINES = ("DeepWalk", "node2vec", "struc2vec", "NetMF")
RETRAINED = (*PAPER_BASELINES, "LINE", "GraphWave")
TUNED = tuple(f"{name}, tuned" for name in RETRAINED)
SPECTRAL = ("spectral", "spectral, separate components")
FAST = ("ProNE", "FastRP")
FAST_TUNED = tuple(f"{name}, tuned" for name in FAST)
STREAMING = ("neighbor mean", "Nyström", "incremental SVD", "warm node2vec")
SHARES = range(10, 100, 10)
SHARES_FROM_30 = SHARES[2:]

CellFormatter = Callable[[str], str]
"""Returns the text of a table cell in the column of a data set."""


@dataclass(frozen=True)
class StudyResults:
    """A study with its measured values; a metric counts only if all seeds have it."""

    study: Study
    results: Results
    seeds: dict[tuple[str, str], list[int]]

    def by_seed(self, metric: str, setting: str, dataset: str) -> ValuesBySeed:
        """Return the value of a metric for every seed; empty if a seed is missing."""
        values = select_values(self.results, metric, setting, dataset)
        seeds = self.seeds.get((setting, dataset), [])
        return dict(zip(seeds, values, strict=True)) if len(values) == len(seeds) else {}

    def values(self, metric: str, setting: str, dataset: str) -> list[float]:
        """Return the values of a metric without the seeds."""
        return list(self.by_seed(metric, setting, dataset).values())

    def mean(self, metric: str, setting: str, dataset: str) -> float:
        """Return the mean over the seeds."""
        return mean(self.values(metric, setting, dataset))

    def median(self, metric: str, setting: str, dataset: str) -> float:
        """Return the median over the seeds, which one slow run does not change; NaN if there are no values."""
        values = self.values(metric, setting, dataset)
        return median(values) if values else math.nan

    def mean_from_30(self, metric: str, setting: str, dataset: str) -> ValuesBySeed:
        """Return, for every seed, the mean over the train shares of 30 % and more."""
        shares = [self.by_seed(f"{metric}@{share}", setting, dataset) for share in SHARES_FROM_30]
        return {seed: fmean(share[seed] for share in shares) for seed in shares[0]} if all(shares) else {}

    def mean_and_deviation(self, metric: str, setting: str) -> CellFormatter:
        """Return a row of mean ± standard deviation."""
        return lambda dataset: format_values(self.values(metric, setting, dataset))

    def means(self, metrics: Sequence[str], setting: str, show: Callable[[float], str]) -> CellFormatter:
        """Return a row of means; those of several metrics are separated by slashes."""
        return lambda dataset: " / ".join(show(self.mean(metric, setting, dataset)) for metric in metrics)


@cache
def load_results(name: str) -> StudyResults:
    """Load a study and its record."""
    study = load_study(ROOT / f"studies/{name}.yaml", RESULTS)
    seeds: dict[tuple[str, str], list[int]] = {}
    for setting, dataset, configuration in study.trials():
        seeds.setdefault((setting, dataset), []).append(configuration["seed"])
    return StudyResults(study, collect_results(study, Record.read(RESULTS / f"{name}.json")), seeds)


def read_record(name: str) -> Any:
    """Read the JSON record of a benchmark; None if it does not exist."""
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def mean(values: Sequence[float]) -> float:
    """Return the mean; NaN if there are no values."""
    return fmean(values) if values else math.nan


def mean_paired_difference(ours: ValuesBySeed, theirs: ValuesBySeed) -> float:
    """Return the mean difference over common seeds; NaN if there are none."""
    difference = summary.mean_paired_difference(ours, theirs)
    return math.nan if difference is None else difference


def all_measured(*values: float) -> bool:
    """Tell whether none of the values is missing."""
    return not any(map(math.isnan, values))


def format_points(value: float) -> str:
    """Format a score with one decimal."""
    return f"{value:.1f}" if all_measured(value) else MISSING


def format_signed(value: float) -> str:
    """Format a difference of scores with its sign and one decimal."""
    return f"{value:+.1f}".replace("-", "−") if all_measured(value) else MISSING


def format_number(value: float) -> str:
    """Format a number with at least three digits and thousands separators."""
    if not all_measured(value):
        return MISSING
    return f"{value:,.0f}" if value >= 100 else format_values([float(value)])


def space_percent_signs(text: str) -> str:
    """Put a space between each number and its percent sign."""
    return re.sub(r"(?<=[0-9])%", " %", text)


def list_item(text: str) -> str:
    """Return a list item, wrapped like the other lines of a page."""
    return fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown_table(head: Iterable[str], rows: Mapping[str, Iterable[str]]) -> str:
    """Return a table in Markdown; `rows` has the cells of each row by its label."""
    columns = list(head)
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    return "\n".join([*lines, *(f"| {label} | {' | '.join(row)} |" for label, row in rows.items())])


def table_by_dataset(rows: dict[str, CellFormatter], datasets: Sequence[str] = tuple(NAMES)) -> str:
    """Return a table with a column for every data set."""
    head = [NAMES[name] for name in datasets]
    return markdown_table(
        head, {label: [format_cell(name) for name in datasets] for label, format_cell in rows.items()}
    )
