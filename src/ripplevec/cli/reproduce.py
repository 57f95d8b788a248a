"""The command `ripplevec reproduce`: its options, progress and summary; `ripplevec.lab.experiments` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ripplevec.cli.console import print_json, print_message, print_table, show_progress
from ripplevec.cli.options import Json

if TYPE_CHECKING:
    from rich.progress import Progress

    from ripplevec.lab.experiments.reproduce import Plan, RunOptions, StudyOutcome
    from ripplevec.lab.experiments.runner import Forecast
    from ripplevec.lab.experiments.study import Study

RESULTS = Path("results")
BASELINE_HEADINGS = {
    "paper_setting": "paper's setting",
    "tuned": "tuned",
    "streaming": "streaming",
    "spectral": "spectral",
}


def reproduce(
    studies: Annotated[
        list[str] | None, typer.Argument(metavar="[STUDY]...", help="Studies to run. By default all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a part of each study: two data sets, one seed, minutes.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of trials in parallel. By default the number of cores.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for records, tables and pictures. By default ./results."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Run recorded trials again and replace them.")] = False,
    show: Annotated[
        bool, typer.Option("--list", help="List the studies and their numbers of recorded trials; run nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Run the experiments of the paper and of this project; write records, tables, pictures and one HTML page.

    It takes hours, with --quick minutes. It is resumable: trials that are recorded are not run again.
    """
    from ripplevec.errors import check_choice
    from ripplevec.lab.experiments.reproduce import Plan, RunOptions
    from ripplevec.util.parallel import resolve_threads

    plan = Plan(results or (RESULTS / "quick" if quick else RESULTS), quick)
    all_studies = plan.studies()
    for name in studies or ():
        check_choice("study", name, all_studies)
    selected = [study for name, study in all_studies.items() if name in (studies or all_studies)]
    if show:
        _list_studies(plan, selected, json)
        return
    try:
        summary = _run_studies(plan, selected, RunOptions(again=again, jobs=resolve_threads(jobs)))
    except KeyboardInterrupt:
        command = "the same command without --again" if again else "the same command"
        print_message(f"interrupted; finished trials are recorded. To resume, run {command}")
        raise
    print_json(summary) if json else _print_summary(summary)


def _run_studies(plan: Plan, studies: list[Study], options: RunOptions) -> dict[str, Any]:
    """Run studies and summarize the outcome; data sets are fetched first, so that missing data fails early."""
    from ripplevec.cli.datasets import DownloadBars
    from ripplevec.lab.datasets import fetch
    from ripplevec.lab.experiments.reproduce import required_datasets, run_studies, write_html_report
    from ripplevec.lab.experiments.summary import summarize

    with show_progress() as bars:
        for dataset in required_datasets(plan.pending_trials(studies, options.again)):
            fetch(dataset, DownloadBars(bars))
        outcomes = run_studies(plan, studies, options, TrialBar(bars))
    recorded = [study for study in plan.studies().values() if plan.record(study).trials]
    return {
        "results": str(plan.results),
        "report": str(write_html_report(recorded, plan.results)),
        "studies": [_describe_outcome(outcome) for outcome in outcomes],
        "micro_f1_at_50": summarize(plan),
    }


class TrialBar:
    """Shows one progress bar over the trials of all studies, and prints a line for every finished study."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None, note="")
        self._done = 0

    def study_started(self, study: str, forecast: Forecast) -> None:
        """Show the study and the total number of trials known so far."""
        total = self._done + forecast.remaining_trials()
        self._bars.update(self._task, description=study, total=total, note="", ends=forecast.expected_end())

    def trial_done(self, trial: str, seconds: float, forecast: Forecast) -> None:
        """Show the finished trial and the expected end of all trials."""
        self._done += 1
        note = f"{trial}: {seconds:.1f} s"
        self._bars.update(self._task, completed=self._done, note=note, ends=forecast.expected_end())

    def study_done(self, outcome: StudyOutcome) -> None:
        """Print a line about the finished study."""
        line = f"{outcome.name}: {outcome.ran} trials, {outcome.seconds:.0f} s, {outcome.table}"
        self._bars.console.print(line, highlight=False, soft_wrap=True)


def _describe_outcome(outcome: StudyOutcome) -> dict[str, Any]:
    """Describe a finished study as JSON data."""
    return {
        "name": outcome.name,
        "cells": outcome.trials,
        "ran": outcome.ran,
        "seconds": outcome.seconds,
        "table": str(outcome.table),
        "pictures": [str(path) for path in outcome.pictures],
    }


def _list_studies(plan: Plan, studies: list[Study], json: bool) -> None:
    """Print the studies with their numbers of trials and of recorded trials."""
    entries: list[dict[str, Any]] = []
    for study in studies:
        trials, pending = len(plan.pending_trials([study], again=True)), len(plan.pending_trials([study]))
        entries.append({"name": study.name, "title": study.title, "cells": trials, "recorded": trials - pending})
    if json:
        print_json({"results": str(plan.results), "studies": entries})
        return
    rows = [(entry["name"], entry["title"], f"{entry['cells']:,}", f"{entry['recorded']:,}") for entry in entries]
    print_table(f"Studies, and trials recorded in {plan.results}", ["study", "title"], ["trials", "recorded"], rows)


def _print_summary(summary: dict[str, Any]) -> None:
    """Print the comparison with the baselines as a table, and where the output is."""
    if summary["micro_f1_at_50"]:
        title = "Micro-F1 in %, 50 % for training: ripplevec, and the best baselines (difference to ripplevec)"
        rows = [_format_row(dataset, scores) for dataset, scores in summary["micro_f1_at_50"].items()]
        print_table(title, [""], ["ripplevec", *BASELINE_HEADINGS.values(), "speedup"], rows)
    print_message(f"tables and pictures: {summary['results']}; all on one page: {summary['report']}")


def _format_row(dataset: str, scores: dict[str, Any]) -> list[str]:
    """Format the table row of a data set."""
    ripplevec = f"{scores['ripplevec']['micro_f1']:.1f}" if scores["ripplevec"] else "–"
    speedup = f"{scores['times_faster']:.1f}" if scores["times_faster"] else "–"
    return [dataset, ripplevec, *(_format_baseline(scores[group]) for group in BASELINE_HEADINGS), speedup]


def _format_baseline(score: dict[str, Any] | None) -> str:
    if score is None:
        return "–"
    difference = "" if score["ours_above"] is None else f" ({score['ours_above']:+.1f})"
    return f"{score['micro_f1']:.1f} {score['setting'].removesuffix(', tuned')}{difference}"
