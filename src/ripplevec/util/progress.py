"""Bars on standard error while something works, gone when it is done; silent where nobody looks.

Loads what draws them: import it where it is needed.
"""

from __future__ import annotations

from datetime import timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


def create_progress() -> Progress:
    """Bars with a `note` behind each."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeLeftColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class TimeLeftColumn(TimeRemainingColumn):
    """The time until a task `ends`, on the clock of the bars, where that is foretold; else by its speed so far."""

    def render(self, task: Task) -> Text:
        """The time as hours, minutes and seconds."""
        ends = task.fields.get("ends")
        if ends is None or task.finished:
            return super().render(task)
        left = timedelta(seconds=max(0, round(ends - task.get_time())))
        return Text(str(left), style="progress.remaining")
