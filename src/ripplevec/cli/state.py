"""The commands `ripplevec state …`: inspect, verify or compact a session directory, or cut off its damaged end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ripplevec.cli.console import format_count, print_json
from ripplevec.cli.options import Json

if TYPE_CHECKING:
    from ripplevec.durability.directory_lock import DirectoryLock
    from ripplevec.durability.session_model import ModelFactory

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Session directory.")]

RayAddress = Annotated[
    str | None,
    typer.Option(help="Ray cluster for a state on shards: auto, or an address. By default they run in this process."),
]

state = typer.Typer(no_args_is_help=True, help="Inspect, verify or compact a session directory, or cut off damage.")


@state.command()
def inspect(directory: Directory, json: Json = False) -> None:
    """Show the contents: batches, snapshots, sources. Changes nothing; a session may be using the directory."""
    from ripplevec.durability.maintenance import inspect_directory

    contents = inspect_directory(directory)
    if json:
        return print_json(contents)
    journal = contents["journal"]
    typer.echo(f"{directory}: {'in use by ' + contents['in_use_by'] if contents['in_use_by'] else 'not in use'}")
    typer.echo(f"journal    batches {journal['first']:,} to {journal['last']:,}, {journal['bytes']:,} bytes")
    for snapshot in contents["snapshots"]:
        sequence, size = snapshot["sequence"], snapshot["bytes"]
        typer.echo(f"snapshot   batch {sequence:,}, {size:,} bytes, digest {snapshot['digest']}")
    for source, position in contents["sources"].items():
        typer.echo(f"source     {source} at {position}")
    for name, value in contents["parameters"].items():
        typer.echo(f"parameter  {name} = {value}")


@state.command()
def verify(directory: Directory, ray_address: RayAddress = None, json: Json = False) -> None:
    """Check every checksum, and that replaying the batches reproduces every snapshot. Exit status 3 on faults."""
    from ripplevec.durability.maintenance import verify_directory

    with _lock_directory(directory):
        result = verify_directory(directory, lambda metadata: choose_factory(metadata, ray_address))
    if json:
        print_json(result)
    else:
        for fault in result["faults"]:
            typer.echo(fault)
        faults, sequence, digest = format_count(len(result["faults"]), "fault"), result["sequence"], result["digest"]
        state = "its state cannot be restored" if digest is None else f"batch {sequence}, digest {digest}"
        typer.echo(f"{directory}: {faults}, {state}")
    if result["faults"]:
        raise typer.Exit(3)


@state.command()
def compact(directory: Directory, ray_address: RayAddress = None, json: Json = False) -> None:
    """Write a snapshot, drop the batches that are no longer needed, and free their space."""
    from ripplevec.durability.maintenance import inspect_directory
    from ripplevec.durability.session import Session

    before = inspect_directory(directory)
    with Session(directory, model=choose_factory(before, ray_address)) as session:
        session.snapshot()
        session.compact()
    after = inspect_directory(directory)
    if json:
        return print_json({"before": before["journal"], "after": after["journal"]})
    typer.echo(f"{directory}: journal {before['journal']['bytes']:,} → {after['journal']['bytes']:,} bytes")


@state.command()
def cut(directory: Directory, ray_address: RayAddress = None, json: Json = False) -> None:
    """Discard the first damaged batch and all later ones, if there is no backup. Damaged files are kept.

    If the journal itself is missing or empty, everything is discarded: the snapshots are renamed.
    """
    from ripplevec.durability.maintenance import truncate_state

    with _lock_directory(directory):
        result = truncate_state(directory, lambda metadata: choose_factory(metadata, ray_address))
    if json:
        return print_json({"last": result.last, "lost": result.lost, "notes": result.notes})
    typer.echo(f"{directory}: discarded {result.lost:,} batches; the last one is batch {result.last:,}")


def choose_factory(metadata: Mapping[str, Any], ray_address: str | None) -> ModelFactory:
    """Return the factory of a directory's model: in this process, or on shards."""
    from ripplevec.durability.session_model import SessionModel

    if metadata.get("shards") is None:
        return SessionModel
    from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded

    return Sharded(metadata["shards"], ray_address or IN_PROCESS)


def _lock_directory(directory: Path) -> DirectoryLock:
    """Lock an existing directory for exclusive use; do not create a missing one."""
    from ripplevec.durability.directory_lock import DirectoryLock
    from ripplevec.util.checked_directory import check_not_saved_model

    if not directory.is_dir():
        raise typer.BadParameter(f"{directory} is not a directory")
    check_not_saved_model(directory)
    return DirectoryLock(directory)
