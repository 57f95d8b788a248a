"""`ripplevec bench`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ripplevec.cli.console import print_json, progress
from ripplevec.cli.options import Json


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A smaller graph: seconds instead of minutes.")] = False,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare with this record, not with the one that came along.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figures into a record.")] = None,
    json: Json = False,
) -> None:
    """Measure this machine in about two minutes, beside the figures of the machine that the record was made on."""
    from ripplevec.cli.bench_record import RECORD, compared, read, summary, write
    from ripplevec.cli.bench_run import FULL, QUICK, run

    size = QUICK if quick else FULL
    record = read(against or RECORD, size.name)
    if save and save.exists():
        read(save, size.name)  # a file that is no record is said to be none before minutes have gone by
    with progress() as bars:
        figures = run(size, bars)
    if save:
        write(save, size.name, figures)
    if json:
        print_json(summary(size, figures, record))
    else:
        compared(size, figures, record)
