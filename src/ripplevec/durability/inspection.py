"""A look into a session's directory: what is in it, and whether all of it is good. Nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ripplevec.durability import journal_database
from ripplevec.durability.directory_lock import lock_holder
from ripplevec.durability.journal import JOURNAL, Journal
from ripplevec.durability.recovery import load_snapshot
from ripplevec.durability.session_model import SessionModel, create_model
from ripplevec.durability.snapshot import SNAPSHOTS, SnapshotStore
from ripplevec.errors import FormatError, RipplevecError


def inspect_directory(directory: Path) -> dict[str, Any]:
    """What a directory holds; also while a session has it."""
    journal, snapshots = Journal(directory / JOURNAL, read_only=True), SnapshotStore(directory / SNAPSHOTS)
    try:
        return {
            "directory": str(directory),
            "in_use_by": lock_holder(directory),
            "version": journal.meta["version"],
            "parameters": journal.meta["parameters"],
            "anchor_lag": journal.meta["anchor_lag"],
            "shards": journal.meta.get("shards"),
            "journal": {"first": journal.first, "last": journal.last, "bytes": _size(journal.path)},
            "snapshots": [snapshots.describe(sequence) for sequence in snapshots.sequences],
            "sources": journal.sources,
        }
    finally:
        journal.close()


def verify_directory(directory: Path) -> dict[str, Any]:
    """Whether every byte is good and replay gives every snapshot: what is wrong, and the digest at the end."""
    faults: list[str] = []
    digest, sequence = None, None
    try:
        if note := journal_database.check_log(directory / JOURNAL):
            faults.append(note)
        journal = Journal(directory / JOURNAL, read_only=True)
        try:
            faults += journal.verify()
            model = _replayed(journal, SnapshotStore(directory / SNAPSHOTS), faults)
        finally:
            journal.close()
        digest, sequence = model.digest(), model.sequence
    except RipplevecError as error:
        faults.append(str(error))
    return {"directory": str(directory), "faults": faults, "sequence": sequence, "digest": digest}


def _replayed(journal: Journal, snapshots: SnapshotStore, faults: list[str]) -> SessionModel:
    """The model after all batches, from the oldest state there is; every snapshot on the way is compared with it."""
    model = create_model(journal.meta) if journal.first == 1 else None
    digests: dict[int, str] = {}
    for sequence in reversed(snapshots.sequences):
        try:
            good = load_snapshot(snapshots, sequence, lambda: create_model(journal.meta))
        except FormatError as error:
            faults.append(f"{snapshots.path(sequence)}: {error}")
        else:
            digests[sequence] = snapshots.describe(sequence)["digest"]
            model = good if model is None else model
    if model is None:
        raise FormatError(f"{snapshots.directory}: no good snapshot, and the journal begins at batch {journal.first:,}")
    for row in journal.rows(model.sequence):
        if row.entry is None:
            break
        try:
            model.apply_batch(row.entry.batch)
        except RipplevecError as error:
            faults.append(f"batch {row.sequence:,} cannot be applied ({error})")
            break
        if row.sequence in digests and model.digest() != digests[row.sequence]:
            faults.append(f"{snapshots.path(row.sequence)}: not what the batches up to it give")
    return model


def _size(path: Path) -> int:
    files = (path, Path(f"{path}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
