"""What the records say, number by number, and tables of it. What has not been measured is NaN, in a table a dash."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from ripplet.experiments.record import Record
from ripplet.experiments.report import NOTHING as NOTHING
from ripplet.experiments.report import Cells, measured, shown, values_of
from ripplet.experiments.spec import Study, load

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "wiki": "Wiki", "blog": "Blog", "flickr": "Flickr"}
OURS, PAPER = "ripplet", "rule paper"
OF_THE_PAPER = ("DeepWalk", "node2vec", "struc2vec", "NetMF")
RETRAINED = (*OF_THE_PAPER, "LINE", "GraphWave")
TUNED = tuple(f"{name}, tuned" for name in RETRAINED)
STREAMING = ("neighbour mean", "Nyström", "incremental SVD", "warm node2vec")
SHARES = range(10, 100, 10)
FROM_30 = SHARES[2:]

Fill = Callable[[str], str]
"""What a row of a table says in the column of a data set."""


@dataclass(frozen=True)
class Results:
    """A study with what has been measured of it; a figure counts once all seeds have it."""

    study: Study
    cells: Cells
    seeds: Counter[tuple[str, str]]

    def values(self, figure: str, setting: str, dataset: str) -> list[float]:
        """A figure for every seed, or nothing."""
        found = values_of(self.cells, figure, setting, dataset)
        return found if len(found) == self.seeds[setting, dataset] else []

    def mean(self, figure: str, setting: str, dataset: str) -> float:
        """The mean over the seeds."""
        return mean(self.values(figure, setting, dataset))

    def from_30(self, figure: str, setting: str, dataset: str) -> float:
        """The mean over the seeds and the train shares of 30 % and more."""
        return mean([self.mean(f"{figure}@{share}", setting, dataset) for share in FROM_30])

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
    seeds = Counter((setting, dataset) for setting, dataset, _ in study.cells())
    return Results(study, measured(study, Record.read(RESULTS / f"{name}.json")), seeds)


def content(name: str) -> Any:
    """A record that is not a study's, if it is there."""
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def mean(values: Sequence[float]) -> float:
    """The mean, if there are any values."""
    return fmean(values) if values else math.nan


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


def table(head: Iterable[str], rows: dict[str, Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = list(head)
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    return "\n".join([*lines, *(f"| {label} | {' | '.join(row)} |" for label, row in rows.items())])


def by_dataset(rows: dict[str, Fill], datasets: Sequence[str] = tuple(NAMES)) -> str:
    """A table with a column for every data set."""
    head = [NAMES[name] for name in datasets]
    return table(head, {label: [fill(name) for name in datasets] for label, fill in rows.items()})
