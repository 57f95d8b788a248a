"""A record as Markdown: a table per figure, a row per setting, a column per data set, mean ± deviation over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from ripplet.experiments.record import Record
from ripplet.experiments.spec import Study

NOTHING = "–"


def report(study: Study, record: Record) -> str:
    """The whole report."""
    cells = list(study.cells())
    done = sum(configuration in record for _, _, configuration in cells)
    state = f"{done} of {len(cells)} cells" if done < len(cells) else f"{done} cells"
    head = [
        f"# {study.title}",
        *([study.about.strip()] if study.about else []),
        f"Mean ± standard deviation over the seeds {', '.join(map(str, study.seeds))} ({state}).",
    ]
    tables = [f"## {heading}\n\n{_table(study, record, figure)}" for figure, heading in study.figures.items()]
    return "\n\n".join(head + tables + [_origin(record)]) + "\n"


def shown(values: Sequence[float]) -> str:
    """Mean ± standard deviation, to three digits of the largest value; a whole number where all are that one."""
    if not values:
        return NOTHING
    if len(set(values)) == 1 and isinstance(values[0], int):
        return f"{values[0]:,}"
    largest = max(map(abs, values))
    digits = min(3, max(0, 2 - math.floor(math.log10(largest)))) if largest else 0
    text = f"{fmean(values):.{digits}f}"
    return f"{text} ± {stdev(values):.{digits}f}" if len(values) > 1 else text


def _table(study: Study, record: Record, figure: str) -> str:
    rows = [["", *study.datasets], ["---", *("---:" for _ in study.datasets)]]
    for setting in study.settings:
        rows.append([setting, *(_entry(study, record, figure, setting, dataset) for dataset in study.datasets)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _entry(study: Study, record: Record, figure: str, setting: str, dataset: str) -> str:
    values = [
        figures[figure]
        for own, of, configuration in study.cells()
        if (own, of) == (setting, dataset) and (figures := record.figures(configuration)) and figure in figures
    ]
    beside = ", ".join(f"{label} {value:g}" for label, value in study.known(figure, setting, dataset).items())
    return f"{shown(values)} ({beside})" if beside else shown(values)


def _origin(record: Record) -> str:
    """Where the figures come from: one line per commit and machine."""
    used = {cell["environment"] for cell in record.cells.values()}
    lines = []
    for name, where in record.environments.items():
        if name in used:
            machine, versions = where["machine"], where["versions"]
            commit = f"{(where['commit'] or 'unknown')[:12]}{' (modified)' if where['modified'] else ''}"
            libraries = ", ".join(f"{library} {number}" for library, number in versions.items())
            lines.append(f"- commit {commit} on {machine['cores']} × {machine['cpu']}; {libraries}")
    return "\n".join(["## Where this comes from", "", *lines])
