"""Bars on standard error while something works, gone when it is done; silent where nobody looks.

Loads what draws them: import it where it is needed.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress(remembered: float = 30.0) -> Progress:
    """Bars with a `note` behind each; the time left is told from the speed in so many seconds that are remembered."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        speed_estimate_period=remembered,
    )
