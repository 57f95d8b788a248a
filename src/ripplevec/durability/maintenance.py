"""Maintenance of a state directory: inspect it, verify it, and discard batches that cannot be recovered."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ripplevec.durability import journal_database
from ripplevec.durability.directory_lock import lock_holder
from ripplevec.durability.journal import MARKER_FILE, Journal
from ripplevec.durability.journal_integrity import LastBatchMarker
from ripplevec.durability.recovery import load_snapshot, recover
from ripplevec.durability.session_model import ModelFactory, SessionModel, create_model
from ripplevec.durability.snapshot import SNAPSHOTS_DIRECTORY, SnapshotStore
from ripplevec.errors import FormatError, RipplevecError
from ripplevec.util.checked_directory import JOURNAL_FILE, fsync_directory, remove_path

FactoryChoice: TypeAlias = Callable[[Mapping[str, Any]], ModelFactory]
"""Function that chooses the model of a directory by its metadata."""


def choose_session_model(metadata: Mapping[str, Any]) -> ModelFactory:
    """Choose the model of a directory without shards."""
    return SessionModel


class TruncationResult(NamedTuple):
    """Result of discarding the batches that cannot be recovered."""

    last: int  # sequence number of the last remaining batch; 0 if none is left
    lost: int  # number of batches discarded
    notes: list[str]  # about the files that were replaced or not used


def inspect_directory(directory: Path) -> dict[str, Any]:
    """Describe a state directory: batches, snapshots, sources, parameters. A session may be using it."""
    journal = Journal(directory / JOURNAL_FILE, read_only=True)
    snapshots = SnapshotStore(directory / SNAPSHOTS_DIRECTORY)
    try:
        return {
            "directory": str(directory),
            "in_use_by": lock_holder(directory),
            "version": journal.metadata["version"],
            "parameters": journal.metadata["parameters"],
            "shards": journal.metadata.get("shards"),
            "journal": {"first": journal.first, "last": journal.last, "bytes": _journal_bytes(journal.path)},
            "snapshots": [snapshots.describe(sequence) for sequence in snapshots.sequences],
            "sources": journal.sources,
        }
    finally:
        journal.close()


def verify_directory(directory: Path, factory: FactoryChoice = choose_session_model) -> dict[str, Any]:
    """Check every byte, and that replaying the batches reproduces every snapshot; return faults and final digest.

    `factory` chooses the model by the metadata of the directory: in this process, or on shards.
    """
    faults: list[str] = []
    digest, sequence = None, None
    try:
        if note := journal_database.check_wal(directory / JOURNAL_FILE):
            faults.append(note)
        journal = Journal(directory / JOURNAL_FILE, read_only=True)
        try:
            faults += journal.verify()
            make_model = partial(create_model, journal.metadata, factory(journal.metadata))
            model = _replay(journal, SnapshotStore(directory / SNAPSHOTS_DIRECTORY), make_model, faults)
        finally:
            journal.close()
        digest, sequence = model.digest(), model.sequence
    except RipplevecError as error:
        faults.append(str(error))
    return {"directory": str(directory), "faults": faults, "sequence": sequence, "digest": digest}


def truncate_state(directory: Path, factory: FactoryChoice = choose_session_model) -> TruncationResult:
    """Discard the batches that cannot be recovered; all of them if the journal is missing or empty.

    `factory` is as in `verify_directory`.
    """
    path = directory / JOURNAL_FILE
    journal_database.finish_replacement(path)
    if not path.exists() or not path.stat().st_size:
        return _discard_everything(directory)
    with closing(Journal(path, tolerate_damage=True)) as journal:
        snapshots, metadata = SnapshotStore(directory / SNAPSHOTS_DIRECTORY), journal.metadata
        make_model = partial(create_model, metadata, factory(metadata))
        _, report = recover(journal, snapshots, make_model, tolerate_damage=True)
        if not journal.is_intact():
            damaged = journal.truncate(journal.last)
            report.note(f"{path}: rewrote the journal, whose pages were inconsistent; kept as {damaged.name}")
        return TruncationResult(journal.last, report.lost, report.notes)


def _replay(
    journal: Journal, snapshots: SnapshotStore, make_model: Callable[[], SessionModel], faults: list[str]
) -> SessionModel:
    """Replay all batches from the oldest state available and compare the model with every snapshot on the way."""
    model = make_model() if journal.first == 1 else None
    digests: dict[int, str] = {}
    for sequence in reversed(snapshots.sequences):
        try:
            restored = load_snapshot(snapshots, sequence, make_model)
        except FormatError as error:
            faults.append(f"{snapshots.path(sequence)}: {error}")
        else:
            digests[sequence] = snapshots.describe(sequence)["digest"]
            model = restored if model is None else model
    if model is None:
        raise FormatError(
            f"{snapshots.directory}: expected a good snapshot, got none, and the journal begins at batch "
            f"{journal.first:,}"
        )
    for row in journal.read_rows(model.sequence):
        if row.entry is None:
            break
        try:
            model.replay_batch(row.entry.batch)
        except RipplevecError as error:
            faults.append(f"batch {row.sequence:,} cannot be applied ({error})")
            break
        if row.sequence in digests and model.digest() != digests[row.sequence]:
            faults.append(
                f"{snapshots.path(row.sequence)}: differs from the state after replaying the batches up to it"
            )
    return model


def _journal_bytes(path: Path) -> int:
    files = (path, journal_database.wal_path(path))
    return sum(file.stat().st_size for file in files if file.exists())


def _discard_everything(directory: Path) -> TruncationResult:
    """Rename all remaining files of a state without a journal; the next session starts with an empty state."""
    snapshots, marker = SnapshotStore(directory / SNAPSHOTS_DIRECTORY), LastBatchMarker(directory / MARKER_FILE)
    lost = max([marker.read(), *snapshots.sequences])
    notes = []
    for name in (SNAPSHOTS_DIRECTORY, JOURNAL_FILE, f"{JOURNAL_FILE}-wal", MARKER_FILE):
        path, damaged = directory / name, directory / f"{name}.damaged"
        if os.path.lexists(path):
            remove_path(damaged)
            os.replace(path, damaged)
            notes.append(f"{path}: not used because there is no journal; kept as {damaged.name}")
    remove_path(directory / f"{JOURNAL_FILE}-shm")
    fsync_directory(directory)
    return TruncationResult(0, lost, notes)
