"""Recovery: the newest good snapshot, then every batch behind it, in order."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from ripplevec.changes import Changes
from ripplevec.durability.journal import Journal, Row
from ripplevec.durability.session_model import SessionModel
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.engine.saved_state import MALFORMED_STATE_ERRORS
from ripplevec.errors import FormatError, RipplevecError, SelfLoopWarning, StateError

_log = logging.getLogger("ripplevec.durability")


@dataclass(slots=True)
class RecoveryReport:
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
    journal: Journal, snapshots: SnapshotStore, new: Callable[[], SessionModel], *, forgiving: bool = False
) -> tuple[SessionModel, RecoveryReport]:
    """The model after the last batch of the journal, begun anew by `new`, and how it was come by.

    Damage in the middle of the journal is refused, unless it is to be forgiven: what follows it is then given up.
    """
    recovery = RecoveryReport()
    for note in journal.notes:
        recovery.note(note)
    snapshots.tidy()
    _look_beyond(journal, snapshots, recovery, forgiving)
    unpublished = journal.unpublished()
    early = min((number - 1 for number in unpublished.values()), default=journal.last)
    model, bad = _replayed(journal, snapshots, new, recovery, early)
    if bad is not None and early < journal.last:  # a newer snapshot may know what the damaged batch did
        model, bad = _replayed(journal, snapshots, new, recovery, journal.last)
    if bad is not None:
        _cut(journal, bad, recovery, forgiving)
    return model, recovery


def _replayed(
    journal: Journal, snapshots: SnapshotStore, new: Callable[[], SessionModel], recovery: RecoveryReport, limit: int
) -> tuple[SessionModel, Row | None]:
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
            changes = _applied(journal, model, row)
            model.warn_self_loops()
            recovery.replayed += 1
            source = row.entry.source
            if source is not None and row.sequence >= unpublished.get(source, journal.last + 1):
                recovery.unpublished.setdefault(source, []).append(changes)
    return model, None


def _applied(journal: Journal, model: SessionModel, row: Row) -> Changes:
    """What a batch changes; one that cannot be applied was not put there by a session."""
    try:
        return model.apply_batch(row.entry.batch)  # type: ignore[union-attr]  # the caller has looked
    except RipplevecError as error:
        raise FormatError(
            f"{journal.path}: batch {row.sequence:,} cannot be applied ({error}); restore the directory from a copy"
        ) from error


def _look_beyond(journal: Journal, snapshots: SnapshotStore, recovery: RecoveryReport, forgiving: bool) -> None:
    """Refuse a journal that ends before a snapshot: it has lost batches. Forgiven, the snapshot is put aside."""
    beyond = [sequence for sequence in snapshots.sequences if sequence > journal.last]
    if beyond and not forgiving:
        raise FormatError(
            f"{journal.path}: expected batches up to {beyond[0]:,} (there is a snapshot), got {journal.last:,}; "
            f"{beyond[0] - journal.last:,} batches or more are missing. Restore the directory from a copy, or go on "
            f"without them: ripplevec state cut {journal.path.parent}"
        )
    for sequence in beyond:
        _put_aside(snapshots, sequence, f"the journal ends with batch {journal.last:,}", recovery)
    if forgiving:
        recovery.lost += max(journal.missing_batches(), beyond[0] - journal.last if beyond else 0)
        journal.marker.write(journal.last, durably=True)


def _restored(
    journal: Journal, snapshots: SnapshotStore, new: Callable[[], SessionModel], recovery: RecoveryReport, limit: int
) -> SessionModel:
    """The newest good snapshot, of those up to a limit if there is one; those that are damaged are put aside."""
    first, sequences = journal.first, snapshots.sequences
    if first > 1 and not any(sequence <= limit for sequence in sequences):
        limit = journal.last
    for sequence in sequences:
        if first - 1 <= sequence <= limit:
            try:
                model = load_snapshot(snapshots, sequence, new)
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


def _put_aside(snapshots: SnapshotStore, sequence: int, reason: str, recovery: RecoveryReport) -> None:
    recovery.note(f"{snapshots.path(sequence)}: not used: {reason}; kept as {snapshots.set_aside(sequence).name}")


def load_snapshot(snapshots: SnapshotStore, sequence: int, new: Callable[[], SessionModel]) -> SessionModel:
    """The model of one snapshot, known by its digest to be what was written."""
    try:
        snapshot = snapshots.read(sequence)
    except OSError as error:  # it may be good all the same
        raise StateError(f"{snapshots.path(sequence)}: could not be read ({error}); try again") from error
    model = new()
    try:
        model.engine.restore(snapshot.arrays)
    except MALFORMED_STATE_ERRORS as error:
        raise FormatError(f"not a snapshot of this version ({error})") from error
    if model.sequence != sequence:
        raise FormatError(f"expected the state after batch {sequence:,}, got that after batch {model.sequence:,}")
    if (digest := model.digest()) != snapshot.digest:
        raise FormatError(f"expected digest {snapshot.digest}, got {digest}")
    return model


def _cut(journal: Journal, bad: Row, recovery: RecoveryReport, forgiving: bool) -> None:
    """Give up a damaged tail; refuse to lose anything else.

    A tail is damaged where all rows from one on are there but not as they were written, and the row before them is.
    Anything else that is wrong (rows that are missing or cannot be read, or good ones behind) may not have been lost.
    """
    tail = list(journal.rows(bad.sequence - 1))
    good = sum(row.entry is not None for row in tail)
    is_tail = all(row.damaged for row in tail) and journal.row(bad.sequence - 1).entry is not None
    if not is_tail and not forgiving:
        follow = f", and {good:,} good batches follow it" if good else f", {len(tail):,} batches from the end"
        raise FormatError(
            f"{journal.path}: batch {bad.sequence:,} {bad.fault}{follow}; restore the "
            f"directory from a copy, or give up what came from batch {bad.sequence:,} on: "
            f"ripplevec state cut {journal.path.parent}"
        )
    aside = journal.cut(bad.sequence - 1)
    recovery.lost += len(tail)
    recovery.note(
        f"{journal.path}: batch {bad.sequence:,} {bad.fault}: the last {len(tail):,} batches are lost, and their "
        f"sources are read again from where the batch before them ended; the damaged journal is kept as {aside.name}"
    )
