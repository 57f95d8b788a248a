"""Running a study: every cell that is not recorded yet, one after another, each recorded as soon as it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ripplet.errors import InvalidValueError
from ripplet.evaluation.protocols import timed
from ripplet.experiments.cells import Configuration, measure
from ripplet.experiments.record import Record, environment, key_of
from ripplet.experiments.spec import Study, matches

if TYPE_CHECKING:
    from rich.progress import Progress


def run(study: Study, record: Record, only: dict[str, str] | None = None, again: bool = False) -> int:
    """Run the cells that match `only` and are not recorded, or all that match, `again`; how many were run."""
    wanted = {
        key_of(configuration): (f"{dataset}, {setting}, seed {configuration['seed']}", configuration)
        for setting, dataset, configuration in study.cells()
        if matches(configuration, setting, only or {})
    }
    if not wanted:
        raise InvalidValueError.of("only", "values that some cell has", only)
    waiting = [cell for key, cell in wanted.items() if again or key not in record.cells]
    with _progress() as bars:
        task = bars.add_task(study.name, total=len(waiting))
        for name, configuration in waiting:
            bars.update(task, description=name)
            seconds = _run_cell(record, configuration)
            bars.console.print(f"{name}: {seconds:.1f} s", highlight=False)
            bars.advance(task)
    return len(waiting)


def _run_cell(record: Record, configuration: Configuration) -> float:
    where = environment()
    seconds, measured = timed(lambda: measure(configuration))
    record.add(configuration, measured, seconds, where)
    return seconds


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
