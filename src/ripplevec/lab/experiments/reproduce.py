"""From studies to records, tables, pictures and one page: what can be resumed, with the time that is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Protocol

from ripplevec.io.atomic_file import atomic_write
from ripplevec.lab.datasets import available
from ripplevec.lab.experiments import plots
from ripplevec.lab.experiments.forecast import Forecast
from ripplevec.lab.experiments.hyperparameters import TUNED_BY, Choices
from ripplevec.lab.experiments.page import page
from ripplevec.lab.experiments.record import SOURCE, Record
from ripplevec.lab.experiments.report import picture, report
from ripplevec.lab.experiments.run import Cell, Told, run, waiting
from ripplevec.lab.experiments.spec import Study, load, tried

HEADING = "Ripplevec: the paper's experiments, and ours beside them"
INTRO = """
Every figure on this page comes from a record written by the command `ripplevec reproduce`: one JSON file per study with
the configuration of each cell, its seed, the versions, the machine and the commit. Nothing is filled in by hand; what
has not been measured is a dash. Values in small print are known ones, each with its label: *paper* is what the paper
prints, *floor* and *aim* are what was to be reached.
"""

GRIDS = {"tuned": "grid", "full": "grid_full"}
"""The study that chooses settings for the others: a few at the paper's dimension, or all that the paper tried."""

FIRST = ("classification", "order", "checkpoint", "links", "sensitivity", "quality", "nested")
LAST = ("time", "growth")
"""What measures time comes last, with nothing beside it; studies that stand nowhere here come before."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cells to run: some (`only`), also those that are recorded (`again`), so many side by side (`jobs`)."""

    only: dict[str, str] | None = None
    again: bool = False
    jobs: int = 1


def studies_folder() -> Path:
    """Where the studies lie: in the package once it is installed, else beside its source."""
    inside = SOURCE / "studies"
    return inside if inside.is_dir() else SOURCE.parents[1] / "studies"


def record_of(study: Study, results: Path) -> Record:
    """What has been run of a study."""
    return Record.read(results / f"{study.name}.json")


def table_of(study: Study, results: Path) -> Path:
    """Where the tables of a study lie."""
    return results / f"{study.name}.md"


@dataclass(frozen=True, slots=True)
class Plan:
    """How the studies are read: all of them or what is `quick`, with the settings that a `grid` chose in `results`."""

    results: Path
    quick: bool = False
    grid: str = "tuned"
    folder: Path = field(default_factory=studies_folder)

    def studies(self) -> dict[str, Study]:
        """All studies, in an order that works."""
        others = {path.stem for path in self.folder.glob("*.yaml")}.difference(GRIDS.values(), FIRST, LAST)
        names = [GRIDS[self.grid], *FIRST, *sorted(others), *LAST]
        here = [self.study(name) for name in names if self._file(name).exists()]
        return {study.name: study for study in here if study is not None}

    def study(self, name: str) -> Study | None:
        """A study as it stands now, if there is anything to run of it."""
        study = self._tuned(load(self._file(name), self.results))
        return study.shortened() if self.quick else study

    def chosen(self, study: Study) -> Study:
        """A study with the settings that have been chosen by now."""
        used = {own[TUNED_BY] for own in (study.parameters, *study.settings.values()) if TUNED_BY in own}
        return replace(study, choices=Choices.read(self.results, tried(self.folder, used)))

    def record(self, study: Study) -> Record:
        """What has been run of a study."""
        return record_of(study, self.results)

    def waiting(self, studies: Iterable[Study], again: bool = False) -> list[Cell]:
        """The cells of some studies that are to be run."""
        return [cell for study in studies for cell in waiting(study, self.record(study), again=again)]

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"

    def _tuned(self, study: Study) -> Study:
        """The study with its tuned settings taken from the grid that was asked for."""
        usual, wanted = GRIDS["tuned"], GRIDS[self.grid]
        users = [name for name, own in study.settings.items() if own.get(TUNED_BY) == usual]
        if wanted == usual or not users:
            return study
        settings = study.settings | {name: study.settings[name] | {TUNED_BY: wanted} for name in users}
        return self.chosen(replace(study, settings=settings))


class Watcher(Protocol):
    """Who is told how far it has come."""

    def begins(self, study: str, left: Forecast) -> None:
        """A study begins; what is left are its own cells and those of the studies after it."""
        ...

    def did(self, cell: str, seconds: float, left: Forecast) -> None:
        """A cell is done; it took so many seconds."""
        ...

    def ends(self, outcome: Outcome) -> None:
        """A study is done."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A study that is done: how many of its cells were run, in how many seconds, and what was written."""

    name: str
    cells: int
    ran: int
    seconds: float
    table: Path
    pictures: list[Path]


def carry_out_all(plan: Plan, studies: Sequence[Study], choice: Choice, watcher: Watcher) -> list[Outcome]:
    """Carry out one study after another, each with the settings that those before it have chosen."""
    outcomes = []
    left = Forecast([plan.record(study) for study in plan.studies().values()], choice.jobs)

    def told(cell: Cell, seconds: float) -> None:
        left.done(cell[1], seconds)
        watcher.did(cell[0], seconds, left)

    for place, planned in enumerate(studies):
        began = perf_counter()
        study = plan.chosen(planned)
        ran, later = plan.waiting([study], choice.again), plan.waiting(studies[place + 1 :], choice.again)
        left.plan([*ran, *later])
        watcher.begins(study.name, left)
        carry_out(study, plan.results, choice, told)
        outcomes.append(Outcome(
            study.name,
            cells=len(plan.waiting([study], again=True)),
            ran=len(ran),
            seconds=perf_counter() - began,
            table=table_of(study, plan.results),
            pictures=[plan.results / picture(study, plot) for plot in study.plots],
        ))  # fmt: skip
        watcher.ends(outcomes[-1])
    return outcomes


def carry_out(study: Study, results: Path, choice: Choice, told: Told | None = None) -> Record:
    """Run what is not recorded of a study; write its record, its tables and its pictures.

    Somebody is `told` of every cell that is done, else there is a line for each.
    """
    record = record_of(study, results)
    cells = waiting(study, record, choice.only, choice.again)
    if told:
        run(cells, record, choice.jobs, told)
    else:
        left = Forecast([record], choice.jobs)
        left.plan(cells)
        with _lines(study.name, left) as line:
            run(cells, record, choice.jobs, line)
    write(study, record, results)
    return record


def write(study: Study, record: Record, results: Path) -> None:
    """The tables and the pictures of a study, from what is recorded."""
    results.mkdir(parents=True, exist_ok=True)
    for name in study.plots:
        plots.save(study, name, record, results)
    with atomic_write(table_of(study, results)) as part:
        part.write_text(report(study, record), encoding="utf-8")


def write_page(studies: Sequence[Study], results: Path) -> Path:
    """One page of all studies, from what is recorded."""
    path = results / "report.html"
    parts = [(study, record_of(study, results)) for study in studies]
    with atomic_write(path) as part:
        part.write_text(page(parts, HEADING, INTRO), encoding="utf-8")
    return path


def data_needed(cells: Sequence[Cell]) -> list[str]:
    """The published data sets that cells read."""
    used = {configuration["dataset"] for _, configuration in cells}
    return [name for name in available() if name in used]


@contextmanager
def _lines(study: str, left: Forecast) -> Iterator[Told]:
    """A line for every cell, above a bar."""
    from ripplevec.util.progress import create_progress

    with create_progress() as bars:
        task = bars.add_task(study, total=left.cells(), note="", ends=left.ends())

        def told(cell: Cell, seconds: float) -> None:
            left.done(cell[1], seconds)
            bars.console.print(f"{study}: {cell[0]}: {seconds:.1f} s", highlight=False)
            bars.update(task, advance=1, ends=left.ends())

        yield told
