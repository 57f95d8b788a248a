"""What the commands show while they work: progress on a terminal, nothing in between elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress() -> Iterator[Progress]:
    """Bars on standard error while a command works, gone when it is done; silent where nobody looks."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield bars


def say(line: str) -> None:
    """One line for the person, on standard error."""
    print(line, file=sys.stderr)


def print_json(value: dict[str, Any]) -> None:
    """One object for a program, on standard output."""
    print(json.dumps(value))
