"""What the commands show while they work: progress on a terminal, nothing in between elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


def progress() -> Progress:
    """Bars, for as long as a command works."""
    from ripplevec.util.progress import create_progress as bars

    return bars()


def say(line: str) -> None:
    """One line for the person, on standard error."""
    print(line, file=sys.stderr)


def print_table(title: str, words: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows for a person, on standard output; the columns of words come first, numbers stand to the right."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(*words, title=title)
    for heading in numbers:
        shown.add_column(heading, justify="right")
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)


def print_json(value: dict[str, Any]) -> None:
    """One object for a program, on standard output."""
    print(json.dumps(value))
