"""From studies to records, tables, pictures and one page: what can be resumed, with the time that is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ripplet.experiments import plots
from ripplet.experiments.page import page
from ripplet.experiments.record import Record
from ripplet.experiments.report import report
from ripplet.experiments.run import run, waiting
from ripplet.experiments.spec import Study
from ripplet.io.write import replacing

if TYPE_CHECKING:
    from rich.progress import Progress

HEADING = "Ripplet: the paper's experiments, and ours beside them"
INTRO = """
Every figure on this page comes from a record that the command `ripplet reproduce` writes: one JSON file per study with
the configuration of each cell, its seed, the versions, the machine and the commit. Nothing is filled in by hand; what
has not been measured is a dash. Values in small print are those printed in the paper, where it prints any.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cells to run: some (`only`), also those that are recorded (`again`), so many side by side (`jobs`)."""

    only: dict[str, str] | None = None
    again: bool = False
    jobs: int = 1


def carry_out(study: Study, results: Path, choice: Choice) -> Record:
    """Run what is not recorded of a study; write its record, its tables and its pictures."""
    record = Record.read(results / f"{study.name}.json")
    cells = waiting(study, record, choice.only, choice.again)
    with _progress() as bars:
        task = bars.add_task(study.name, total=len(cells))

        def told(name: str, seconds: float) -> None:
            bars.console.print(f"{study.name}: {name}: {seconds:.1f} s", highlight=False)
            bars.advance(task)

        run(cells, record, choice.jobs, told)
    write(study, record, results)
    return record


def write(study: Study, record: Record, results: Path) -> None:
    """The tables and the pictures of a study, from what is recorded."""
    results.mkdir(parents=True, exist_ok=True)
    for name in study.plots:
        plots.save(study, name, record, results)
    with replacing(results / f"{study.name}.md") as part:
        part.write_text(report(study, record), encoding="utf-8")


def write_page(studies: Sequence[Study], results: Path) -> Path:
    """One page of all studies, from what is recorded."""
    path = results / "report.html"
    parts = [(study, Record.read(results / f"{study.name}.json")) for study in studies]
    with replacing(path) as part:
        part.write_text(page(parts, HEADING, INTRO), encoding="utf-8")
    return path


@contextmanager
def _progress() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=3600) as bars:
        yield bars
