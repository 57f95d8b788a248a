"""Output of the commands: progress bars and messages on standard error, tables and JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

STANDARD_OUTPUT = "-"
"""The output file that means standard output."""


def show_progress() -> Progress:
    """Return progress bars for the duration of a command; they are drawn on terminals only."""
    from ripplevec.util.progress import create_progress

    return create_progress()


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 edge", "2,000 edges"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def print_message(line: str) -> None:
    """Print one line of text on standard error."""
    print(line, file=sys.stderr)


def print_table(
    title: str, text_columns: Sequence[str], number_columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table on standard output: text columns first, then right-aligned number columns."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*text_columns, title=title)
    for heading in number_columns:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value))
