"""What the commands show while they work: progress on a terminal, nothing in between elsewhere."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


def progress() -> Progress:
    """Bars, for as long as a command works."""
    from ripplet.progress import progress as bars

    return bars()


def say(line: str) -> None:
    """One line for the person, on standard error."""
    print(line, file=sys.stderr)


def print_json(value: dict[str, Any]) -> None:
    """One object for a program, on standard output."""
    print(json.dumps(value))
