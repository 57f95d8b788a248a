"""The command `ripplevec`: its subcommands, error messages and exit codes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, NoReturn

import typer

from ripplevec._version import __version__
from ripplevec.cli.bench import bench
from ripplevec.cli.check import check
from ripplevec.cli.configuration import PREFIX
from ripplevec.cli.datasets import datasets
from ripplevec.cli.demo import demo
from ripplevec.cli.embed import embed
from ripplevec.cli.nearest import nearest
from ripplevec.cli.predict import recommend, score
from ripplevec.cli.replay import replay
from ripplevec.cli.reproduce import reproduce
from ripplevec.cli.serve import serve
from ripplevec.cli.state import state
from ripplevec.cli.warmup import warmup
from ripplevec.errors import MissingExtraError, RipplevecError


class ExitCode(IntEnum):
    """Exit statuses of `ripplevec`."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    BAD_INPUT = 3
    MISSING_EXTRA = 4
    INTERRUPTED = 130


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(embed)
app.command()(check)
app.command()(nearest)
app.command()(demo)
app.command()(warmup)
app.command()(bench)
app.command()(datasets)
app.command()(reproduce)
app.add_typer(state, name="state")
app.command(context_settings={"auto_envvar_prefix": PREFIX})(serve)
app.command()(replay)
app.command()(score)
app.command()(recommend)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ripplevec {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep the embedding of a growing graph up to date, one arrival at a time.

    Exit status: 0 success, 1 unexpected error, 2 wrong usage,
    3 invalid file or value, 4 missing optional dependency,
    130 interrupted.
    """


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status; expected errors are printed as one line, not as a traceback."""
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
    try:
        app(arguments, prog_name="ripplevec")
    except MissingExtraError as error:
        _exit_with_error(error, ExitCode.MISSING_EXTRA)
    except (RipplevecError, OSError) as error:
        _exit_with_error(error, ExitCode.BAD_INPUT)
    sys.exit(ExitCode.OK)


def _exit_with_error(error: Exception, code: ExitCode) -> NoReturn:
    if isinstance(error, OSError) and error.strerror:
        error = OSError(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    typer.echo(f"ripplevec: {' '.join(str(error).split())}", err=True)
    sys.exit(code)
