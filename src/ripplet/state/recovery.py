"""Recovery: the newest good snapshot, then every batch behind it, in order."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from ripplet.changes import Changes
from ripplet.errors import FormatError, SelfLoopWarning
from ripplet.state.journal import Journal, Row
from ripplet.state.model import KeptModel
from ripplet.state.snapshot import Snapshots

_log = logging.getLogger("ripplet.state")


@dataclass(slots=True)
class Recovery:
    """What was done to get a state back."""

    snapshot: int = 0  # the sequence number it began with; 0: with nothing
    replayed: int = 0
    events: int = 0  # in all batches up to the snapshot
    lost: int = 0  # batches of a damaged tail, given up
    unpublished: dict[str, list[Changes]] = field(default_factory=dict)  # per source, what no sink may have got
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep something that the person who runs this should know, and tell it now."""
        self.notes.append(text)
        _log.warning(text)


def recover(
    journal: Journal, snapshots: Snapshots, new: Callable[[], KeptModel], *, forgiving: bool = False
) -> tuple[KeptModel, Recovery]:
    """The model after the last batch of the journal, begun anew by `new`, and how it was come by.

    Damage in the middle of the journal is refused, unless it is to be forgiven: what follows it is then given up.
    """
    recovery = Recovery()
    if journal.note is not None:
        recovery.note(journal.note)
    snapshots.tidy()
    for sequence in snapshots.sequences:
        if sequence > journal.last:
            _put_aside(snapshots, sequence, f"the journal ends with batch {journal.last:,}", recovery)
    unpublished = journal.unpublished()
    early = min((number - 1 for number in unpublished.values()), default=journal.last)
    model, bad = _replayed(journal, snapshots, new, recovery, early)
    if bad is not None and early < journal.last:  # a newer snapshot may know what the damaged batch did
        model, bad = _replayed(journal, snapshots, new, recovery, journal.last)
    if bad is not None:
        _cut(journal, bad, recovery, forgiving)
    return model, recovery


def _replayed(
    journal: Journal, snapshots: Snapshots, new: Callable[[], KeptModel], recovery: Recovery, limit: int
) -> tuple[KeptModel, Row | None]:
    """The newest good snapshot up to a limit and the batches behind it, up to the first one that is damaged."""
    unpublished = journal.unpublished()
    model = _restored(journal, snapshots, new, recovery, limit)
    recovery.events, recovery.replayed = model.engine.events, 0
    recovery.unpublished.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)  # said when the batch came
        for row in journal.rows(model.sequence):
            if row.entry is None:
                return model, row
            changes = model.take_in(row.entry.batch)
            recovery.replayed += 1
            source = row.entry.source
            if source is not None and row.sequence >= unpublished.get(source, journal.last + 1):
                recovery.unpublished.setdefault(source, []).append(changes)
    return model, None


def _restored(
    journal: Journal, snapshots: Snapshots, new: Callable[[], KeptModel], recovery: Recovery, limit: int
) -> KeptModel:
    """The newest good snapshot, of those up to a limit if there is one; those that are damaged are put aside."""
    first, sequences = journal.first, snapshots.sequences
    if first > 1 and not any(sequence <= limit for sequence in sequences):
        limit = journal.last
    for sequence in sequences:
        if first - 1 <= sequence <= limit:
            try:
                model = loaded(snapshots, sequence, new)
            except FormatError as error:
                _put_aside(snapshots, sequence, str(error), recovery)
            else:
                recovery.snapshot = sequence
                return model
    if first > 1:
        raise FormatError(
            f"{snapshots.directory}: expected a good snapshot, found none, and the journal begins at batch {first:,}; "
            "restore the directory from a copy"
        )
    return new()


def _put_aside(snapshots: Snapshots, sequence: int, reason: str, recovery: Recovery) -> None:
    recovery.note(f"{snapshots.path(sequence)}: not used: {reason}; kept as {snapshots.set_aside(sequence).name}")


def loaded(snapshots: Snapshots, sequence: int, new: Callable[[], KeptModel]) -> KeptModel:
    """The model of one snapshot, known by its digest to be what was written."""
    snapshot = snapshots.read(sequence)
    model = new()
    try:
        model.engine.restore(snapshot.arrays)
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"not a snapshot of this version ({error!r})") from error
    if (digest := model.digest()) != snapshot.digest:
        raise FormatError(f"expected digest {snapshot.digest}, got {digest}")
    return model


def _cut(journal: Journal, bad: Row, recovery: Recovery, forgiving: bool) -> None:
    """Give up a damaged tail; refuse to lose good batches behind the damage."""
    good = sum(row.entry is not None for row in journal.rows(bad.sequence))
    if good and not forgiving:
        raise FormatError(
            f"{journal.path}: batch {bad.sequence:,} {bad.fault}, and {good:,} good batches follow it; restore the "
            f"directory from a copy, or give up what came from batch {bad.sequence:,} on: "
            f"ripplet state cut {journal.path.parent}"
        )
    lost = journal.last - bad.sequence + 1
    aside = journal.cut(bad.sequence - 1)
    recovery.lost = lost
    recovery.note(
        f"{journal.path}: batch {bad.sequence:,} {bad.fault}: the last {lost:,} batches are lost, and their sources "
        f"are read again from where the batch before them ended; the damaged journal is kept as {aside.name}"
    )
