"""The one way to forget: give up what cannot be recovered, and keep the damaged files beside."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ripplevec.durability import journal_database
from ripplevec.durability.journal import JOURNAL, MARKER, Journal
from ripplevec.durability.last_batch_marker import Marker
from ripplevec.durability.recovery import recover
from ripplevec.durability.session_model import create_model
from ripplevec.durability.snapshot import SNAPSHOTS, SnapshotStore
from ripplevec.util.checked_directory import flush_directory, remove


class Cut(NamedTuple):
    """What is left after a cut, and what was given up."""

    last: int
    lost: int
    notes: list[str]


def truncate_state(directory: Path) -> Cut:
    """Give up the batches that cannot be recovered; where the journal is missing or empty, all of them."""
    path = directory / JOURNAL
    journal_database.settle(path)
    if not path.exists() or not path.stat().st_size:
        return _give_up_everything(directory)
    with closing(Journal(path, forgiving=True)) as journal:
        snapshots, meta = SnapshotStore(directory / SNAPSHOTS), journal.meta
        _, recovery = recover(journal, snapshots, lambda: create_model(meta), forgiving=True)
        if not journal.is_sound():
            aside = journal.cut(journal.last)
            recovery.note(f"{path}: its pages contradict each other: written anew; kept as {aside.name}")
        return Cut(journal.last, recovery.lost, recovery.notes)


def _give_up_everything(directory: Path) -> Cut:
    """Put aside what is left without a journal; the next session begins anew."""
    snapshots, marker = SnapshotStore(directory / SNAPSHOTS), Marker(directory / MARKER)
    lost = max([marker.read(), *snapshots.sequences])
    notes = []
    for name in (SNAPSHOTS, JOURNAL, f"{JOURNAL}-wal", MARKER):
        path, aside = directory / name, directory / f"{name}.damaged"
        if os.path.lexists(path):
            remove(aside)
            os.replace(path, aside)
            notes.append(f"{path}: not used: there is no journal; kept as {aside.name}")
    remove(directory / f"{JOURNAL}-shm")
    flush_directory(directory)
    return Cut(0, lost, notes)
