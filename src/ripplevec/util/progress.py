"""Progress bars on standard error: removed when done, and disabled if standard error is not a terminal.

Importing this module loads Rich; import it only where a bar is shown.
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
    """Return progress bars, each followed by its `note` field."""
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
    """Remaining time of a task: until the time in its `ends` field if it has one, else estimated from its speed.

    `ends` is a time of the clock `Task.get_time`.
    """

    def render(self, task: Task) -> Text:
        """Render the remaining time as hours, minutes and seconds."""
        ends = task.fields.get("ends")
        if ends is None or task.finished:
            return super().render(task)
        left = timedelta(seconds=max(0, round(ends - task.get_time())))
        return Text(str(left), style="progress.remaining")
