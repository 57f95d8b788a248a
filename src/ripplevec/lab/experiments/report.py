"""A record as tables: one per figure, a row per setting, a column per data set, mean ± deviation over seeds.

`report` writes them as Markdown; `page` writes the same tables as HTML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.spec import Study
from ripplevec.lab.experiments.trial import Figures

NOTHING = "–"

Cells = dict[tuple[str, str], list[Figures]]


class Entry(NamedTuple):
    """What a table says of a setting on a data set: our value for every seed, and the known ones, in words."""

    values: list[float]
    beside: str

    def __str__(self) -> str:
        return f"{shown(self.values)} ({self.beside})" if self.beside else shown(self.values)


def report(study: Study, record: Record) -> str:
    """The whole report, as Markdown; its pictures are files beside it."""
    cells = measured(study, record)
    about = [study.about.strip()] if study.about else []
    pictures = [f"![{plot.title}]({picture(study, name)})" for name, plot in study.plots.items()]
    tables = [f"## {heading}\n\n{_markdown(study, cells, figure)}" for figure, heading in study.figures.items()]
    where = "\n".join(["## Where this comes from", "", *(f"- {line}" for line in origin(record))])
    return "\n\n".join([f"# {study.title}", *about, extent(study, record), *pictures, *tables, where]) + "\n"


def extent(study: Study, record: Record) -> str:
    """What the figures are means of, and how much of the study has been run."""
    cells = list(study.cells())
    done = sum(configuration in record for _, _, configuration in cells)
    state = f"{done} of {len(cells)} cells" if done < len(cells) else f"{done} cells"
    return f"Mean ± standard deviation over the seeds {', '.join(map(str, study.seeds))} ({state})."


def picture(study: Study, plot: str) -> str:
    """Where the picture of a plot lies, seen from the folder of the results."""
    return f"figures/{study.name}-{plot}.svg"


def measured(study: Study, record: Record) -> Cells:
    """The figures of every cell that has been run, by setting and data set, in the order of the seeds."""
    cells: Cells = {}
    for setting, dataset, configuration in study.cells():
        if (figures := record.figures(configuration)) is not None:
            cells.setdefault((setting, dataset), []).append(figures)
    return cells


def values_of(cells: Cells, figure: str, setting: str, dataset: str) -> list[float]:
    """A figure for every seed that has it."""
    return [figures[figure] for figures in cells.get((setting, dataset), ()) if figure in figures]


def table(study: Study, cells: Cells, figure: str) -> dict[str, list[Entry]]:
    """The rows of a table by their setting, with an entry for every data set."""
    return {
        setting: [_entry(study, cells, figure, setting, dataset) for dataset in study.datasets]
        for setting in study.settings
    }


def shown(values: Sequence[float]) -> str:
    """Mean ± standard deviation, to three digits of the largest value; a whole number where all are that one."""
    if not values:
        return NOTHING
    if len(set(values)) == 1 and isinstance(values[0], int):
        return f"{values[0]:,}"
    largest = max(map(abs, values))
    digits = min(3, decimals(largest))
    text = f"{fmean(values):.{digits}f}"
    return f"{text} ± {stdev(values):.{digits}f}" if len(values) > 1 else text


def decimals(value: float) -> int:
    """How many decimals show three digits of a value."""
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0


def origin(record: Record) -> list[str]:
    """Where the figures come from: one line per commit and machine."""
    used = {cell["environment"] for cell in record.cells.values()}
    lines = []
    for name, where in record.environments.items():
        if name in used:
            machine, versions = where["machine"], where["versions"]
            commit = f"{(where['commit'] or 'unknown')[:12]}{' (modified)' if where['modified'] else ''}"
            libraries = ", ".join(f"{library} {number}" for library, number in versions.items())
            lines.append(f"commit {commit} on {machine['cores']} × {machine['cpu']}; {libraries}")
    return lines


def _entry(study: Study, cells: Cells, figure: str, setting: str, dataset: str) -> Entry:
    known = study.known(figure, setting, dataset)
    beside = ", ".join(f"{label} {value:g}" for label, value in known.items())
    return Entry(values_of(cells, figure, setting, dataset), beside)


def _markdown(study: Study, cells: Cells, figure: str) -> str:
    rows = [["", *study.datasets], ["---", *("---:" for _ in study.datasets)]]
    rows += [[setting, *map(str, entries)] for setting, entries in table(study, cells, figure).items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
