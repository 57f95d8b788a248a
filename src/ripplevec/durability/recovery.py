"""Opening and recovery of a state: load the newest good snapshot, then replay every later batch in order."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ripplevec.changes import Changes
from ripplevec.durability.journal import Journal, JournalRow
from ripplevec.durability.session_model import SessionModel, build_metadata, check_parameters
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.engine.state_validation import MALFORMED_STATE_ERRORS
from ripplevec.errors import FormatError, LostStateError, RipplevecError, SelfLoopWarning, StateError
from ripplevec.util.checked_directory import JOURNAL_FILE

_log = logging.getLogger("ripplevec.durability")


@dataclass(slots=True)
class RecoveryReport:
    """Result of opening a state directory.

    Attributes
    ----------
    snapshot
        Sequence number of the snapshot that recovery started from; 0 if it started from an empty model.
    replayed
        Number of batches replayed from the journal.
    events
        Number of events in all batches up to the snapshot.
    lost
        Number of batches in a damaged tail of the journal, which were discarded.
    unpublished
        For each source, the changes that its sinks may not have received.
    notes
        Repairs and losses that the user should know about.
    """

    snapshot: int = 0
    replayed: int = 0
    events: int = 0
    lost: int = 0
    unpublished: dict[str, list[Changes]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note, and log it as a warning."""
        self.notes.append(text)
        _log.warning(text)


def open_journal(directory: Path, parameters: Mapping[str, Any], settings: Mapping[str, Any]) -> Journal:
    """Open or create the journal of a state directory, and check the parameters against the saved ones."""
    path = directory / JOURNAL_FILE
    journal = Journal(path, make_metadata=lambda: build_metadata(parameters, settings))
    try:
        check_parameters(journal.metadata, parameters, settings)
    except BaseException:
        journal.close()
        raise
    return journal


def recover(
    journal: Journal, snapshots: SnapshotStore, make_model: Callable[[], SessionModel], *, tolerate_damage: bool = False
) -> tuple[SessionModel, RecoveryReport]:
    """Restore the model after the last batch of the journal; `make_model` creates an empty one.

    Damage in the middle of the journal raises `FormatError` unless `tolerate_damage` is set; the batches from the
    damaged one on are then discarded.
    """
    report = RecoveryReport()
    for note in journal.notes:
        report.note(note)
    snapshots.remove_temporary_files()
    _check_snapshots_beyond_journal(journal, snapshots, report, tolerate_damage)
    unpublished = journal.first_unpublished()
    before_unpublished = min((sequence - 1 for sequence in unpublished.values()), default=journal.last)
    model, bad_row = _restore_and_replay(journal, snapshots, make_model, report, before_unpublished)
    if bad_row is not None and before_unpublished < journal.last:  # a newer snapshot may include the damaged batch
        model, bad_row = _restore_and_replay(journal, snapshots, make_model, report, journal.last)
    if bad_row is not None:
        _truncate_damaged_tail(journal, bad_row, report, tolerate_damage)
    return model, report


def rebuild(
    journal: Journal, snapshots: SnapshotStore, make_model: Callable[[], SessionModel], last: int
) -> tuple[SessionModel, RecoveryReport]:
    """Restore the model after batch `last` while a session is open, because a part of its model is lost."""
    report = RecoveryReport()
    unpublished = min((sequence - 1 for sequence in journal.first_unpublished().values()), default=last)
    model, bad_row = _restore_and_replay(journal, snapshots, make_model, report, min(unpublished, last), last)
    if bad_row is not None:
        raise FormatError(f"{journal.path}: batch {bad_row.sequence:,} {bad_row.fault}. Open the directory again.")
    return model, report


def load_snapshot(snapshots: SnapshotStore, sequence: int, make_model: Callable[[], SessionModel]) -> SessionModel:
    """Load the model of one snapshot and check its digest; raise `FormatError` if the snapshot is damaged."""
    try:
        snapshot = snapshots.read(sequence)
    except OSError as error:  # the snapshot itself may be good
        raise StateError(f"{snapshots.path(sequence)}: could not be read ({error}). Try again.") from error
    model = make_model()
    try:
        model.engine.restore(snapshot.arrays)
    except LostStateError:  # the snapshot itself may be good
        raise
    except MALFORMED_STATE_ERRORS as error:
        raise FormatError(f"not a snapshot of this version ({error})") from error
    if model.sequence != sequence:
        raise FormatError(f"expected the state after batch {sequence:,}, got that after batch {model.sequence:,}")
    if (digest := model.digest()) != snapshot.digest:
        raise FormatError(f"expected digest {snapshot.digest}, got {digest}")
    return model


def _restore_and_replay(
    journal: Journal,
    snapshots: SnapshotStore,
    make_model: Callable[[], SessionModel],
    report: RecoveryReport,
    snapshot_limit: int,
    last: int | None = None,
) -> tuple[SessionModel, JournalRow | None]:
    """Load the newest good snapshot up to a limit and replay the later batches, up to `last` if given.

    Stop at a damaged batch and return it.
    """
    unpublished = journal.first_unpublished()
    model = _load_newest_snapshot(journal, snapshots, make_model, report, snapshot_limit)
    report.events, report.replayed = model.engine.events, 0
    report.unpublished.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)  # given when the batch was first applied
        for row in journal.read_rows(model.sequence):
            if last is not None and row.sequence > last:
                break
            if row.entry is None:
                return model, row
            changes = _apply_row(journal, model, row)
            model.warn_self_loops()
            report.replayed += 1
            source = row.entry.source
            if source is not None and row.sequence >= unpublished.get(source, journal.last + 1):
                report.unpublished.setdefault(source, []).append(changes)
    return model, None


def _apply_row(journal: Journal, model: SessionModel, row: JournalRow) -> Changes:
    """Apply a batch of the journal; one that cannot be applied was not written by a session."""
    try:
        return model.replay_batch(row.entry.batch)  # type: ignore[union-attr]  # the caller has checked
    except LostStateError:
        raise
    except RipplevecError as error:
        raise FormatError(
            f"{journal.path}: batch {row.sequence:,} cannot be applied ({error}). Restore the directory from a backup."
        ) from error


def _check_snapshots_beyond_journal(
    journal: Journal, snapshots: SnapshotStore, report: RecoveryReport, tolerate_damage: bool
) -> None:
    """Raise if a snapshot is newer than the journal, which has then lost batches; quarantine it if tolerated."""
    newer = [sequence for sequence in snapshots.sequences if sequence > journal.last]
    if newer and not tolerate_damage:
        raise FormatError(
            f"{journal.path}: expected batches up to {newer[0]:,} (there is a snapshot), got {journal.last:,}: at "
            f"least {newer[0] - journal.last:,} batches are missing. Restore the directory from a backup, or continue "
            f"without them: ripplevec state cut {journal.path.parent}"
        )
    for sequence in newer:
        _quarantine_snapshot(snapshots, sequence, f"the journal ends with batch {journal.last:,}", report)
    if tolerate_damage:
        report.lost += max(journal.count_missing_batches(), newer[0] - journal.last if newer else 0)
        journal.marker.write(journal.last, durably=True)


def _load_newest_snapshot(
    journal: Journal,
    snapshots: SnapshotStore,
    make_model: Callable[[], SessionModel],
    report: RecoveryReport,
    limit: int,
) -> SessionModel:
    """Load the newest good snapshot, up to a limit if one is old enough; quarantine damaged ones."""
    first, sequences = journal.first, snapshots.sequences
    if first > 1 and not any(sequence <= limit for sequence in sequences):
        limit = journal.last
    for sequence in sequences:
        if first - 1 <= sequence <= limit:
            try:
                model = load_snapshot(snapshots, sequence, make_model)
            except FormatError as error:
                _quarantine_snapshot(snapshots, sequence, str(error), report)
            else:
                report.snapshot = sequence
                return model
    if first > 1:
        raise FormatError(
            f"{snapshots.directory}: expected a good snapshot, got none, and the journal begins at batch {first:,}. "
            "Restore the directory from a backup."
        )
    return make_model()


def _quarantine_snapshot(snapshots: SnapshotStore, sequence: int, reason: str, report: RecoveryReport) -> None:
    damaged = snapshots.quarantine(sequence)
    report.note(f"{snapshots.path(sequence)}: snapshot not used: {reason}; kept as {damaged.name}")


def _truncate_damaged_tail(
    journal: Journal, bad_row: JournalRow, report: RecoveryReport, tolerate_damage: bool
) -> None:
    """Discard a damaged tail of the journal; raise if anything else would be lost.

    A tail counts as damaged if every row from one on exists but does not match its checksum, and the row before them
    is good. With any other fault (missing or unreadable rows, or good rows afterward), the batches may be recoverable.
    """
    tail = list(journal.read_rows(bad_row.sequence - 1))
    good = sum(row.entry is not None for row in tail)
    only_damage = all(row.damaged for row in tail) and journal.read_row(bad_row.sequence - 1).entry is not None
    if not only_damage and not tolerate_damage:
        position = f"followed by {good:,} good batches" if good else f"{len(tail):,} batches from the end"
        raise FormatError(
            f"{journal.path}: batch {bad_row.sequence:,} {bad_row.fault}, {position}. Restore the directory from a "
            f"backup, or discard all batches from {bad_row.sequence:,} on: ripplevec state cut {journal.path.parent}"
        )
    damaged = journal.truncate(bad_row.sequence - 1)
    report.lost += len(tail)
    report.note(
        f"{journal.path}: batch {bad_row.sequence:,} {bad_row.fault}: the last {len(tail):,} batches are lost, and "
        f"their sources are read again from the position before them; the damaged journal is kept as {damaged.name}"
    )
