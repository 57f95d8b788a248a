"""`ripplevec state`: a look at a session's directory, and what can be done to it while no session has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ripplevec.cli.console import print_json
from ripplevec.cli.options import Json

if TYPE_CHECKING:
    from ripplevec.durability.directory_lock import DirectoryLock

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a session.")]

state = typer.Typer(no_args_is_help=True, help="Look into the directory of a session, check it, make it smaller.")


@state.command()
def inspect(directory: Directory, json: Json = False) -> None:
    """Say what a directory holds: batches, snapshots, sources. Nothing is changed; a session may be using it."""
    from ripplevec.durability.inspection import inspect_directory

    found = inspect_directory(directory)
    if json:
        return print_json(found)
    journal = found["journal"]
    typer.echo(f"{directory}: {'in use by ' + found['in_use_by'] if found['in_use_by'] else 'not in use'}")
    typer.echo(f"journal    batches {journal['first']:,} to {journal['last']:,}, {journal['bytes']:,} bytes")
    for snapshot in found["snapshots"]:
        sequence, size = snapshot["sequence"], snapshot["bytes"]
        typer.echo(f"snapshot   batch {sequence:,}, {size:,} bytes, digest {snapshot['digest']}")
    for source, position in found["sources"].items():
        typer.echo(f"source     {source} at {position}")
    for name, value in {**found["parameters"], "anchor_lag": found["anchor_lag"]}.items():
        typer.echo(f"parameter  {name} = {value}")


@state.command()
def verify(directory: Directory, json: Json = False) -> None:
    """Check every byte, and that replaying the batches gives every snapshot. Exit status 3 where something is wrong."""
    from ripplevec.durability.inspection import verify_directory

    with _alone(directory):
        found = verify_directory(directory)
    if json:
        print_json(found)
    else:
        for fault in found["faults"]:
            typer.echo(fault)
        typer.echo(f"{directory}: {len(found['faults']):,} faults, batch {found['sequence']}, digest {found['digest']}")
    if found["faults"]:
        raise typer.Exit(3)


@state.command()
def compact(directory: Directory, json: Json = False) -> None:
    """Write a snapshot, drop the batches that are no longer needed, and give their space back."""
    from ripplevec.durability.inspection import inspect_directory
    from ripplevec.durability.session import Session

    before = inspect_directory(directory)
    with Session(directory) as session:
        session.snapshot()
        session.compact()
    after = inspect_directory(directory)
    if json:
        return print_json({"before": before["journal"], "after": after["journal"]})
    typer.echo(f"{directory}: journal {before['journal']['bytes']:,} → {after['journal']['bytes']:,} bytes")


@state.command()
def cut(directory: Directory, json: Json = False) -> None:
    """Give up what follows a damaged batch. For when there is no copy to restore; the damaged files are kept.

    Where the journal itself is missing or empty, everything is given up: the snapshots are put aside.
    """
    from ripplevec.durability.truncation import truncate_state

    with _alone(directory):
        found = truncate_state(directory)
    if json:
        return print_json({"last": found.last, "lost": found.lost, "notes": found.notes})
    typer.echo(f"{directory}: {found.lost:,} batches given up; the last one is batch {found.last:,}")


def _alone(directory: Path) -> DirectoryLock:
    """Have a directory for oneself; one that is not there is not made."""
    from ripplevec.durability.directory_lock import DirectoryLock

    if not directory.is_dir():
        raise typer.BadParameter(f"{directory} is no directory")
    return DirectoryLock(directory)
