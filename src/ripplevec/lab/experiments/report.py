"""Tables of a study's results, and its report in Markdown.

There is one table per metric, with a row per setting, a column per data set, and mean ± standard deviation over seeds.
`html_report` writes the same tables as HTML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from ripplevec.lab.experiments.measurements import Metrics
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.study import Study

MISSING = "–"

Results = dict[tuple[str, str], list[Metrics]]
"""The metrics of every finished trial, in order of the seeds, by setting and data set."""


class TableEntry(NamedTuple):
    """An entry of a table: the measured value for every seed, and the reference values as text."""

    values: list[float]
    references: str

    def __str__(self) -> str:
        return f"{format_values(self.values)} ({self.references})" if self.references else format_values(self.values)


def render_markdown(study: Study, record: Record) -> str:
    """Return the report of a study in Markdown; its pictures are separate files."""
    results = collect_results(study, record)
    about = [study.about.strip()] if study.about else []
    pictures = [f"![{plot.title}]({picture_path(study, name)})" for name, plot in study.plots.items()]
    tables = [f"## {heading}\n\n{_markdown_table(study, results, metric)}" for metric, heading in study.figures.items()]
    origin = "\n".join(["## Where this comes from", "", *(f"- {line}" for line in describe_origin(record))])
    return "\n\n".join([f"# {study.title}", *about, describe_extent(study, record), *pictures, *tables, origin]) + "\n"


def describe_extent(study: Study, record: Record) -> str:
    """State the seeds that means are over, and how many trials of the study have been run."""
    trials = list(study.trials())
    done = sum(configuration in record for _, _, configuration in trials)
    state = f"{done} of {len(trials)} trials" if done < len(trials) else f"{done} trials"
    return f"Mean ± standard deviation over the seeds {', '.join(map(str, study.seeds))} ({state})."


def picture_path(study: Study, plot: str) -> str:
    """Return the path of a picture relative to the results folder."""
    return f"figures/{study.name}-{plot}.svg"


def collect_results(study: Study, record: Record) -> Results:
    """Collect the metrics of all finished trials of a study."""
    results: Results = {}
    for setting, dataset, configuration in study.trials():
        if (metrics := record.metrics(configuration)) is not None:
            results.setdefault((setting, dataset), []).append(metrics)
    return results


def select_values(results: Results, metric: str, setting: str, dataset: str) -> list[float]:
    """Return the values of a metric for every seed that has it."""
    return [metrics[metric] for metrics in results.get((setting, dataset), ()) if metric in metrics]


def build_table(study: Study, results: Results, metric: str) -> dict[str, list[TableEntry]]:
    """Return the rows of a table by setting, with an entry for every data set."""
    return {
        setting: [_build_entry(study, results, metric, setting, dataset) for dataset in study.datasets]
        for setting in study.settings
    }


def format_values(values: Sequence[float]) -> str:
    """Format mean ± standard deviation with three digits of the largest value; equal integers as one integer."""
    if not values:
        return MISSING
    if len(set(values)) == 1 and isinstance(values[0], int):
        return f"{values[0]:,}"
    largest = max(map(abs, values))
    digits = min(3, count_decimals(largest))
    text = f"{fmean(values):.{digits}f}"
    return f"{text} ± {stdev(values):.{digits}f}" if len(values) > 1 else text


def count_decimals(value: float) -> int:
    """Return the number of decimals that shows three digits of a value."""
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0


def describe_origin(record: Record) -> list[str]:
    """Return one line per environment that results come from: commit, machine and library versions."""
    used = {trial["environment"] for trial in record.trials.values()}
    lines = []
    for name, environment in record.environments.items():
        if name in used:
            machine, versions = environment["machine"], environment["versions"]
            modified = " (modified)" if environment["modified"] else ""
            commit = f"{(environment['commit'] or 'unknown')[:12]}{modified}"
            libraries = ", ".join(f"{library} {number}" for library, number in versions.items())
            lines.append(f"commit {commit} on {machine['cores']} × {machine['cpu']}; {libraries}")
    return lines


def _build_entry(study: Study, results: Results, metric: str, setting: str, dataset: str) -> TableEntry:
    references = study.reference_values(metric, setting, dataset)
    text = ", ".join(f"{label} {value:g}" for label, value in references.items())
    return TableEntry(select_values(results, metric, setting, dataset), text)


def _markdown_table(study: Study, results: Results, metric: str) -> str:
    rows = [["", *study.datasets], ["---", *("---:" for _ in study.datasets)]]
    rows += [[setting, *map(str, entries)] for setting, entries in build_table(study, results, metric).items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
