"""How the options of a reader are written where it is used, for messages that say what to change.

Each function returns options, such as `header=True`, as the user of one entry point writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

OptionSyntax: TypeAlias = Callable[..., str]
"""A function from options, given by name, to the text that a user writes."""


def as_arguments(**options: str | bool) -> str:
    """Return options as arguments of a Python function: `header=True`, `src="NAME"`."""
    return ", ".join(
        f"{name}={value}" if isinstance(value, bool) else f'{name}="{value}"' for name, value in options.items()
    )


def as_flags(**options: str | bool) -> str:
    """Return options as those of the command line: `--header`, `--src NAME`."""
    return " ".join(
        f"--{name} {value}" if isinstance(value, str) else f"--{'' if value else 'no-'}{name}"
        for name, value in options.items()
    )


def in_address(**options: str | bool) -> str:
    """Return options as the query in the address of a source: `?header=yes in the address`."""
    words: dict[str | bool, str] = {True: "yes", False: "no"}
    query = "&".join(f"{name}={words.get(value, value)}" for name, value in options.items())
    return f"?{query} in the address"
