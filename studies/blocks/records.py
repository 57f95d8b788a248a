"""What the records say, number by number, and tables of it. What has not been measured is NaN, in a table a dash."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

from ripplevec.lab.experiments import summary
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import NOTHING as NOTHING
from ripplevec.lab.experiments.report import Cells, measured, shown, values_of
from ripplevec.lab.experiments.spec import Study, load
from ripplevec.lab.experiments.summary import BySeed as BySeed

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "wiki": "Wiki", "blog": "Blog", "flickr": "Flickr"}
OURS, PAPER = "ripplevec", "rule paper"
OF_THE_PAPER = ("DeepWalk", "node2vec", "struc2vec", "NetMF")
RETRAINED = (*OF_THE_PAPER, "LINE", "GraphWave")
TUNED = tuple(f"{name}, tuned" for name in RETRAINED)
STREAMING = ("neighbor mean", "Nyström", "incremental SVD", "warm node2vec")
SHARES = range(10, 100, 10)
FROM_30 = SHARES[2:]

Fill = Callable[[str], str]
"""What a row of a table says in the column of a data set."""


@dataclass(frozen=True)
class Results:
    """A study with what has been measured of it; a figure counts once all seeds have it."""

    study: Study
    cells: Cells
    seeds: dict[tuple[str, str], list[int]]

    def by_seed(self, figure: str, setting: str, dataset: str) -> BySeed:
        """A figure for every seed, or nothing."""
        found, seeds = values_of(self.cells, figure, setting, dataset), self.seeds.get((setting, dataset), [])
        return dict(zip(seeds, found, strict=True)) if len(found) == len(seeds) else {}

    def values(self, figure: str, setting: str, dataset: str) -> list[float]:
        """The same without the seeds."""
        return list(self.by_seed(figure, setting, dataset).values())

    def mean(self, figure: str, setting: str, dataset: str) -> float:
        """The mean over the seeds."""
        return mean(self.values(figure, setting, dataset))

    def from_30(self, figure: str, setting: str, dataset: str) -> BySeed:
        """The mean over the train shares of 30 % and more, for every seed."""
        shares = [self.by_seed(f"{figure}@{share}", setting, dataset) for share in FROM_30]
        return {seed: fmean(share[seed] for share in shares) for seed in shares[0]} if all(shares) else {}

    def spread(self, figure: str, setting: str) -> Fill:
        """A row of mean ± deviation."""
        return lambda dataset: shown(self.values(figure, setting, dataset))

    def means(self, figures: Sequence[str], setting: str, show: Callable[[float], str]) -> Fill:
        """A row of means, those of several figures between slashes."""
        return lambda dataset: " / ".join(show(self.mean(figure, setting, dataset)) for figure in figures)


@cache
def results(name: str) -> Results:
    """A study and its record."""
    study = load(ROOT / f"studies/{name}.yaml", RESULTS)
    seeds: dict[tuple[str, str], list[int]] = {}
    for setting, dataset, configuration in study.cells():
        seeds.setdefault((setting, dataset), []).append(configuration["seed"])
    return Results(study, measured(study, Record.read(RESULTS / f"{name}.json")), seeds)


def content(name: str) -> Any:
    """A record that is not a study's, if it is there."""
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def mean(values: Sequence[float]) -> float:
    """The mean, if there are any values."""
    return fmean(values) if values else math.nan


def paired(ours: BySeed, theirs: BySeed) -> float:
    """The mean difference over the seeds that both have."""
    found = summary.paired(ours, theirs)
    return math.nan if found is None else found


def known(*values: float) -> bool:
    """Whether all of these have been measured."""
    return not any(map(math.isnan, values))


def points(value: float) -> str:
    """One digit after the point."""
    return f"{value:.1f}" if known(value) else NOTHING


def signed(value: float) -> str:
    """The same for a difference."""
    return f"{value:+.1f}".replace("-", "−") if known(value) else NOTHING


def plain(value: float) -> str:
    """Three digits at least, thousands apart."""
    if not known(value):
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else shown([float(value)])


def item(text: str) -> str:
    """A line of a list, as wide as the other lines of a page."""
    return fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def table(head: Iterable[str], rows: dict[str, Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = list(head)
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    return "\n".join([*lines, *(f"| {label} | {' | '.join(row)} |" for label, row in rows.items())])


def by_dataset(rows: dict[str, Fill], datasets: Sequence[str] = tuple(NAMES)) -> str:
    """A table with a column for every data set."""
    head = [NAMES[name] for name in datasets]
    return table(head, {label: [fill(name) for name in datasets] for label, fill in rows.items()})
