"""MkDocs hook that generates the command-line reference from the help text of every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from ripplevec.cli.main import app


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the page reference/commands.md."""
    about = "This page has the output of `--help`. [The command line](../cli.md) describes the commands in detail."
    parts = [part for name, command in commands(typer.main.get_command(app)) for part in _describe(name, command)]
    text = "\n\n".join(["# Commands", about, *parts]) + "\n"
    files.append(File.generated(config, "reference/commands.md", content=text))


def commands(group: Any, name: str = "ripplevec") -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, without groups."""
    for subname, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {subname}")
        else:
            yield f"{name} {subname}", command


def _describe(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    yield f"## {name}"
    yield f"```\n{name} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield command.help
    records = [parameter.get_help_record(context) for parameter in command.params]
    yield "| | |\n|---|---|\n" + "\n".join(_row(*record) for record in records if record)


def _row(names: str, meaning: str) -> str:
    return f"| `{names.strip()}` | {meaning.replace('|', '&#124;').replace('<', '&lt;')} |"
