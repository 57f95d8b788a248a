"""Discarding of unrecoverable batches (`ripplevec state cut`); the damaged files are kept under another name."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ripplevec.durability import journal_database
from ripplevec.durability.journal import JOURNAL_FILE, MARKER_FILE, Journal
from ripplevec.durability.last_batch_marker import LastBatchMarker
from ripplevec.durability.recovery import recover
from ripplevec.durability.session_model import create_model
from ripplevec.durability.snapshot import SNAPSHOTS_DIRECTORY, SnapshotStore
from ripplevec.util.checked_directory import fsync_directory, remove_path


class TruncationResult(NamedTuple):
    """Last remaining batch, number of batches lost, and notes about the files that were replaced or not used."""

    last: int
    lost: int
    notes: list[str]


def truncate_state(directory: Path) -> TruncationResult:
    """Discard the batches that cannot be recovered; all of them if the journal is missing or empty."""
    path = directory / JOURNAL_FILE
    journal_database.finish_replacement(path)
    if not path.exists() or not path.stat().st_size:
        return _discard_everything(directory)
    with closing(Journal(path, tolerate_damage=True)) as journal:
        snapshots, metadata = SnapshotStore(directory / SNAPSHOTS_DIRECTORY), journal.metadata
        _, report = recover(journal, snapshots, lambda: create_model(metadata), tolerate_damage=True)
        if not journal.is_intact():
            damaged = journal.truncate(journal.last)
            report.note(f"{path}: rewrote the journal, whose pages were inconsistent; kept as {damaged.name}")
        return TruncationResult(journal.last, report.lost, report.notes)


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
