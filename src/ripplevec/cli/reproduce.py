"""`ripplevec reproduce`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ripplevec.cli.console import print_json, print_table, progress, say
from ripplevec.cli.options import Json

if TYPE_CHECKING:
    from rich.progress import Progress

    from ripplevec.lab.experiments.forecast import Forecast
    from ripplevec.lab.experiments.reproduce import RunOptions, StudyOutcome, Plan
    from ripplevec.lab.experiments.study import Study

RESULTS = Path("results")
HEADINGS = {"paper_setting": "paper's setting", "tuned": "tuned", "streaming": "streaming", "spectral": "spectral"}


def reproduce(
    studies: Annotated[list[str] | None, typer.Argument(metavar="[STUDY]...", help="Which ones; all without.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A part of each: two data sets, one seed, minutes.")] = False,
    grid: Annotated[
        str,
        typer.Option(
            metavar="tuned|full", help="Settings tried for each baseline; full: all of the paper's, for days."
        ),
    ] = "tuned",
    jobs: Annotated[int | None, typer.Option(min=1, help="Cells run side by side; all cores without.")] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where records, tables and pictures go; ./results without.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also run what is recorded, and replace it.")] = False,
    show: Annotated[
        bool, typer.Option("--list", help="Show the studies and how much is recorded; run nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Run the paper's experiments and ours beside them: records, tables, pictures and one page.

    It takes hours, with --quick minutes. What is recorded is not run again: stop it at any time, it goes on from there.
    """
    from ripplevec.errors import check_choice
    from ripplevec.lab.experiments.reproduce import GRIDS, RunOptions, Plan
    from ripplevec.util.parallel import resolve_threads

    check_choice("--grid", grid, GRIDS)
    plan = Plan(results or (RESULTS / "quick" if quick else RESULTS), quick, grid)
    known = plan.studies()
    for name in studies or ():
        check_choice("study", name, known)
    chosen = [study for name, study in known.items() if name in (studies or known)]
    if show:
        _list(plan, chosen, json)
        return
    try:
        done = _run(plan, chosen, RunOptions(again=again, jobs=resolve_threads(jobs)))
    except KeyboardInterrupt:
        say(f"interrupted; what is done is recorded, the same command{' without --again' if again else ''} goes on")
        raise
    print_json(done) if json else _tell(done)


def _run(plan: Plan, studies: list[Study], choice: RunOptions) -> dict[str, Any]:
    """Carry out studies, and say what came of it. Data that cannot be had is missed before anything runs."""
    from ripplevec.cli.datasets import Bars
    from ripplevec.lab.datasets import fetch
    from ripplevec.lab.experiments.reproduce import run_studies, required_datasets, write_html_report
    from ripplevec.lab.experiments.summary import summarize

    with progress() as bars:
        for dataset in required_datasets(plan.pending_trials(studies, choice.again)):
            fetch(dataset, Bars(bars))
        outcomes = run_studies(plan, studies, choice, Bar(bars))
    recorded = [study for study in plan.studies().values() if plan.record(study).trials]
    return {
        "results": str(plan.results),
        "report": str(write_html_report(recorded, plan.results)),
        "studies": [_entry(outcome) for outcome in outcomes],
        "micro_f1_at_50": summarize(plan),
    }


class Bar:
    """One bar over the cells of all studies; a line for every study that is done."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None, note="")
        self._done = 0

    def study_started(self, study: str, forecast: Forecast) -> None:
        """Show the study, and how many cells there are in all as far as is known now."""
        total = self._done + forecast.remaining_trials()
        self._bars.update(self._task, description=study, total=total, note="", ends=forecast.expected_end())

    def trial_done(self, trial: str, seconds: float, forecast: Forecast) -> None:
        """Show the cell, and when all will be done."""
        self._done += 1
        self._bars.update(self._task, completed=self._done, note=f"{trial}: {seconds:.1f} s", ends=forecast.expected_end())

    def study_done(self, outcome: StudyOutcome) -> None:
        """Say what came of a study."""
        line = f"{outcome.name}: {outcome.ran} cells, {outcome.seconds:.0f} s, {outcome.table}"
        self._bars.console.print(line, highlight=False, soft_wrap=True)


def _entry(outcome: StudyOutcome) -> dict[str, Any]:
    """What came of a study, for a program."""
    return {
        "name": outcome.name,
        "cells": outcome.trials,
        "ran": outcome.ran,
        "seconds": outcome.seconds,
        "table": str(outcome.table),
        "pictures": [str(path) for path in outcome.pictures],
    }


def _list(plan: Plan, studies: list[Study], json: bool) -> None:
    """The studies, how many cells they have, and how many of those are recorded."""
    rows: list[dict[str, Any]] = []
    for study in studies:
        cells, left = len(plan.pending_trials([study], again=True)), len(plan.pending_trials([study]))
        rows.append({"name": study.name, "title": study.title, "cells": cells, "recorded": cells - left})
    if json:
        print_json({"results": str(plan.results), "studies": rows})
        return
    title = f"Studies, and what is recorded in {plan.results}"
    shown = [(row["name"], row["title"], f"{row['cells']:,}", f"{row['recorded']:,}") for row in rows]
    print_table(title, ["study", "about"], ["cells", "recorded"], shown)


def _tell(done: dict[str, Any]) -> None:
    """The short of it, for a person."""
    if done["micro_f1_at_50"]:
        title = "Micro-F1 in %, 50 % for training: ours, the best of others (how far ours is above)"
        rows = [_row(dataset, line) for dataset, line in done["micro_f1_at_50"].items()]
        print_table(title, [""], ["ripplevec", *HEADINGS.values(), "times faster"], rows)
    say(f"tables and pictures: {done['results']}, all on one page: {done['report']}")


def _row(dataset: str, line: dict[str, Any]) -> list[str]:
    """What the summary says of a data set."""
    ours = f"{line['ripplevec']['micro_f1']:.1f}" if line["ripplevec"] else "–"
    faster = f"{line['times_faster']:.1f}" if line["times_faster"] else "–"
    return [dataset, ours, *(_best(line[group]) for group in HEADINGS), faster]


def _best(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "–"
    above = "" if entry["ours_above"] is None else f" ({entry['ours_above']:+.1f})"
    return f"{entry['micro_f1']:.1f} {entry['setting'].removesuffix(', tuned')}{above}"
