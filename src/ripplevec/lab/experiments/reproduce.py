"""Run studies and write their records, tables, pictures and one HTML page; interrupted runs can be resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Protocol

from ripplevec.lab.datasets import available
from ripplevec.lab.experiments import plots
from ripplevec.lab.experiments.html_report import render_html
from ripplevec.lab.experiments.hyperparameters import TUNED_BY, TunedSettings
from ripplevec.lab.experiments.record import PACKAGE_FOLDER, Record
from ripplevec.lab.experiments.report import picture_path, render_markdown
from ripplevec.lab.experiments.runner import Forecast, Trial, TrialCallback, find_pending, run_trials
from ripplevec.lab.experiments.study import Study, load_configurations, load_study
from ripplevec.util.checked_directory import atomic_write

HEADING = "Ripplevec: the paper's experiments and further studies"
INTRO = """
Every number on this page comes from a record written by the command `ripplevec reproduce`: one JSON file per study with
the configuration, the seed, the library versions, the machine and the commit of each trial. No number is entered by
hand; a value that has not been measured is a dash. Values in small print are reference values with a label: *paper* is
the value printed in the paper, *floor* and *aim* are goals.
"""

TUNING_STUDY = "grid"
"""The study that tunes settings for the others."""

FIRST_STUDIES = ("classification", "order", "checkpoint", "links", "sensitivity", "quality", "nested")
LAST_STUDIES = ("time", "growth")
"""Studies that measure time run last, without parallel trials; studies in neither list run before them."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which trials to run: a filter (`only`), whether to repeat recorded ones (`again`), and parallel `jobs`."""

    only: dict[str, str] | None = None
    again: bool = False
    jobs: int = 1


def studies_folder() -> Path:
    """Return the folder of the studies: inside the installed package, or in the source repository."""
    installed = PACKAGE_FOLDER / "studies"
    return installed if installed.is_dir() else PACKAGE_FOLDER.parents[1] / "studies"


def read_record(study: Study, results: Path) -> Record:
    """Read the record of a study."""
    return Record.read(results / f"{study.name}.json")


def table_path(study: Study, results: Path) -> Path:
    """Return the path of a study's tables."""
    return results / f"{study.name}.md"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which studies to read: whole or `quick` versions, with settings tuned according to `results`."""

    results: Path
    quick: bool = False
    folder: Path = field(default_factory=studies_folder)

    def studies(self) -> dict[str, Study]:
        """Return all studies in an order in which each follows the studies it depends on."""
        others = {path.stem for path in self.folder.glob("*.yaml")}.difference(
            {TUNING_STUDY}, FIRST_STUDIES, LAST_STUDIES
        )
        names = [TUNING_STUDY, *FIRST_STUDIES, *sorted(others), *LAST_STUDIES]
        existing = [self.study(name) for name in names if self._file(name).exists()]
        return {study.name: study for study in existing if study is not None}

    def study(self, name: str) -> Study | None:
        """Load a study; None if it has no quick version and one is requested."""
        study = load_study(self._file(name), self.results)
        return study.quick_version() if self.quick else study

    def update_tuning(self, study: Study) -> Study:
        """Return a study with the settings tuned by the records so far."""
        configurations = (study.parameters, *study.settings.values())
        tuning_studies = {parameters[TUNED_BY] for parameters in configurations if TUNED_BY in parameters}
        tuned = TunedSettings.read(self.results, load_configurations(self.folder, tuning_studies))
        return replace(study, tuned=tuned)

    def record(self, study: Study) -> Record:
        """Read the record of a study."""
        return read_record(study, self.results)

    def pending_trials(self, studies: Iterable[Study], again: bool = False) -> list[Trial]:
        """Return the trials of some studies that are to be run."""
        return [trial for study in studies for trial in find_pending(study, self.record(study), again=again)]

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"


class RunObserver(Protocol):
    """Receives the progress of a run over several studies."""

    def study_started(self, study: str, forecast: Forecast) -> None:
        """Called when a study starts; the forecast covers it and the studies after it."""
        ...

    def trial_done(self, trial: str, seconds: float, forecast: Forecast) -> None:
        """Called when a trial is done, with the seconds it took."""
        ...

    def study_done(self, outcome: StudyOutcome) -> None:
        """Called when a study is done."""
        ...


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """A finished study: its number of trials, how many of them were run, in how many seconds, and the files."""

    name: str
    trials: int
    ran: int
    seconds: float
    table: Path
    pictures: list[Path]


def run_studies(plan: Plan, studies: Sequence[Study], options: RunOptions, observer: RunObserver) -> list[StudyOutcome]:
    """Run studies one after another, each with the settings that earlier ones have tuned."""
    outcomes = []
    forecast = Forecast([plan.record(study) for study in plan.studies().values()], options.jobs)

    def on_trial_done(trial: Trial, seconds: float) -> None:
        forecast.add_finished(trial.configuration, seconds)
        observer.trial_done(trial.name, seconds, forecast)

    for position, planned in enumerate(studies):
        began = perf_counter()
        study = plan.update_tuning(planned)
        pending = plan.pending_trials([study], options.again)
        later = plan.pending_trials(studies[position + 1 :], options.again)
        forecast.set_remaining([*pending, *later])
        observer.study_started(study.name, forecast)
        run_study(study, plan.results, options, on_trial_done)
        outcomes.append(StudyOutcome(
            study.name,
            trials=len(plan.pending_trials([study], again=True)),
            ran=len(pending),
            seconds=perf_counter() - began,
            table=table_path(study, plan.results),
            pictures=[plan.results / picture_path(study, plot) for plot in study.plots],
        ))  # fmt: skip
        observer.study_done(outcomes[-1])
    return outcomes


def run_study(study: Study, results: Path, options: RunOptions, on_trial_done: TrialCallback | None = None) -> Record:
    """Run the pending trials of a study; write its record, its tables and its pictures.

    Without a callback, a progress bar and a line per trial are printed.
    """
    record = read_record(study, results)
    trials = find_pending(study, record, options.only, options.again)
    if on_trial_done:
        run_trials(trials, record, options.jobs, on_trial_done)
    else:
        forecast = Forecast([record], options.jobs)
        forecast.set_remaining(trials)
        with _print_progress(study.name, forecast) as print_trial:
            run_trials(trials, record, options.jobs, print_trial)
    write_report(study, record, results)
    return record


def write_report(study: Study, record: Record, results: Path) -> None:
    """Write the tables and the pictures of a study from its record."""
    results.mkdir(parents=True, exist_ok=True)
    for name in study.plots:
        plots.save_plot(study, name, record, results)
    with atomic_write(table_path(study, results)) as part:
        part.write_text(render_markdown(study, record), encoding="utf-8")


def write_html_report(studies: Sequence[Study], results: Path) -> Path:
    """Write one HTML page of all studies from their records; return its path."""
    path = results / "report.html"
    parts = [(study, read_record(study, results)) for study in studies]
    with atomic_write(path) as part:
        part.write_text(render_html(parts, HEADING, INTRO), encoding="utf-8")
    return path


def required_datasets(trials: Sequence[Trial]) -> list[str]:
    """Return the published data sets that trials read."""
    used = {configuration["dataset"] for _, configuration in trials}
    return [name for name in available() if name in used]


@contextmanager
def _print_progress(study: str, forecast: Forecast) -> Iterator[TrialCallback]:
    """Show a progress bar, and print a line per finished trial above it."""
    from ripplevec.util.progress import create_progress

    with create_progress() as bars:
        task = bars.add_task(study, total=forecast.remaining_trials(), note="", ends=forecast.expected_end())

        def print_trial(trial: Trial, seconds: float) -> None:
            forecast.add_finished(trial.configuration, seconds)
            bars.console.print(f"{study}: {trial.name}: {seconds:.1f} s", highlight=False)
            bars.update(task, advance=1, ends=forecast.expected_end())

        yield print_trial
