"""The `ripplevec` command: its subcommands, and what it tells the shell when something goes wrong."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, NoReturn

import typer

from ripplevec._version import __version__
from ripplevec.cli.bench import bench
from ripplevec.cli.datasets import datasets
from ripplevec.cli.demo import demo
from ripplevec.cli.embed import embed
from ripplevec.cli.replay import replay
from ripplevec.cli.reproduce import reproduce
from ripplevec.cli.serve import serve
from ripplevec.cli.state import state
from ripplevec.errors import MissingExtraError, RipplevecError


class ExitCode(IntEnum):
    """What the exit status of `ripplevec` means."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    BAD_INPUT = 3
    MISSING_EXTRA = 4
    INTERRUPTED = 130


app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(embed)
app.command()(demo)
app.command()(bench)
app.command()(datasets)
app.command()(reproduce)
app.add_typer(state, name="state")
app.command()(serve)
app.command()(replay)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ripplevec {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Keep the embedding of a growing graph up to date, one arrival at a time.

    Exit status: 0 done, 1 unexpected error, 2 wrong usage,
    3 a file or a value that cannot be used, 4 an optional dependency is missing,
    130 interrupted.
    """


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code; errors made for users are one line, not a traceback."""
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
    try:
        app(arguments, prog_name="ripplevec")
    except MissingExtraError as error:
        _leave(error, ExitCode.MISSING_EXTRA)
    except (RipplevecError, OSError) as error:
        _leave(error, ExitCode.BAD_INPUT)
    sys.exit(ExitCode.OK)


def _leave(error: Exception, code: ExitCode) -> NoReturn:
    if isinstance(error, OSError) and error.strerror:
        error = OSError(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    typer.echo(f"ripplevec: {' '.join(str(error).split())}", err=True)
    sys.exit(code)
