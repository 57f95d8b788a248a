"""Write-ahead journal: every batch is on disk, with the position of its source, before it is applied.

A row of the journal is a batch: its sequence number, the client's idempotency key, the source and the position after
it, the encoded batch, and a checksum over all of these. A batch and its position are therefore stored together or not
at all. The metadata, also under checksums, holds the numbers of the first and the last batch, the number of keys, the
source positions, and the published batches, so that missing rows are detected.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ripplevec.batch import Batch
from ripplevec.durability import journal_database, journal_schema
from ripplevec.durability.journal_database import BEGIN, translate_errors
from ripplevec.durability.journal_integrity import LastBatchMarker
from ripplevec.durability.journal_schema import decode_batch
from ripplevec.durability.snapshot import SNAPSHOTS_DIRECTORY, SnapshotStore
from ripplevec.errors import FormatError, InvalidValueError, shorten
from ripplevec.io.messages import check_idempotency_key
from ripplevec.util.checked_directory import fsync_directory

MARKER_FILE = "journal.last"
"""Name of the file next to the journal that holds the number of its last batch."""

KEY_RETENTION = 100_000
"""Number of batches for which an idempotency key is remembered."""

_DROPPED_PER_APPEND = 8  # old rows deleted with every new one while a compaction is under way
_COLUMNS = "sequence, checksum, key, source, position, payload"
_INSERT = f"INSERT INTO batches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A batch with the data stored alongside it.

    Attributes
    ----------
    batch
        The events; `Session.apply_many` also accepts anything that `Embedder.fit` does.
    key
        The client's idempotency key: a batch whose key is already in the journal is not applied again.
    source
        Name of the stream that the batch was read from.
    position
        Position in the source after this batch, any value that JSON can represent.

    Raises
    ------
    InvalidValueError
        If the key, the source or the position cannot be stored.
    """

    batch: Batch
    key: str | None = None
    source: str | None = None
    position: Any = None

    def __post_init__(self) -> None:
        if self.key is not None:
            check_idempotency_key(self.key)
        if self.source is not None or self.position is not None:
            _check_position(self.source, self.position)


class JournalRow(NamedTuple):
    """A batch as read from the journal; if it is unusable, `entry` is None and `fault` is the reason."""

    sequence: int
    entry: JournalEntry | None
    fault: str = ""
    damaged: bool = False  # the row exists but does not match its checksum


class SourcePosition(NamedTuple):
    """Last batch of a source, and the position after it."""

    sequence: int
    position: Any


class Journal:
    """The batches of one state directory, in order. Any thread may use it, one at a time.

    Attributes
    ----------
    path
        The SQLite file.
    last
        Sequence number of the last batch; 0 if there is none.
    metadata
        Values stored besides the batches: the parameters of the model and the counters of the journal.
    marker
        File with the number of the last acknowledged batch.
    notes
        Repairs and losses at opening that the user should know about.
    commit_uncertain
        Whether a write failed in a way that leaves open whether it reached the disk.
    """

    def __init__(
        self,
        path: Path,
        *,
        make_metadata: Callable[[], Mapping[str, Any]] | None = None,
        read_only: bool = False,
        tolerate_damage: bool = False,
    ) -> None:
        """Open a journal, or create one with the metadata that `make_metadata` returns.

        Damage raises `FormatError` unless `tolerate_damage` is set; unreadable batches are then lost when the journal
        is truncated.
        """
        self.path = path
        self.commit_uncertain = False
        self.notes: list[str] = []
        self.marker = LastBatchMarker(path.with_name(MARKER_FILE))
        self._compact_up_to = self._key_count = 0
        if path.is_symlink():
            raise FormatError(f"{path}: expected a file, got a symbolic link. Replace it by the file itself.")
        with translate_errors(path, "open"):
            if not read_only:
                journal_database.finish_replacement(path)
                if not tolerate_damage and (note := journal_database.check_wal(path)):
                    self.notes.append(note)
        self._check_not_lost(must_exist=make_metadata is None)
        with translate_errors(path, "open"):
            self._db = journal_database.connect(path, read_only=read_only, tolerate_damage=tolerate_damage)
            try:
                self._open(make_metadata, read_only, tolerate_damage)
            except BaseException:
                self._db.close()
                raise

    def _check_not_lost(self, *, must_exist: bool) -> None:
        """Raise instead of creating a journal where there was one: its batches would be silently forgotten."""
        if self.path.exists() and self.path.stat().st_size:
            return
        if remnants := self._find_remnants():
            raise FormatError(
                f"{self.path}: expected a journal next to {' and '.join(remnants)}, got "
                f"{'an empty file' if self.path.exists() else 'nothing'}. Restore the directory from a backup, or "
                f"discard everything in it: ripplevec state cut {self.path.parent}"
            )
        if must_exist:
            raise FormatError(f"{self.path}: expected the journal of a session, got nothing. Check the path.")

    def _find_remnants(self) -> list[str]:
        """Describe the files next to the journal which show that it contained batches."""
        snapshots, wal = SnapshotStore(self.path.with_name(SNAPSHOTS_DIRECTORY)), journal_database.wal_path(self.path)
        remnants = [f"{len(snapshots.sequences):,} snapshots"] if snapshots.sequences else []
        if last := self.marker.read():
            remnants.append(f"a marker of batch {last:,}")
        if not self.path.exists() and wal.exists() and wal.stat().st_size:
            remnants.append("its write-ahead log")
        return remnants

    def _open(
        self, make_metadata: Callable[[], Mapping[str, Any]] | None, read_only: bool, tolerate_damage: bool
    ) -> None:
        """Create, repair or migrate the tables, read the metadata, and check the content."""
        if tolerate_damage:
            journal_schema.repair_schema(self._db)
        if journal_schema.is_empty(self._db):
            if make_metadata is None or self._find_remnants():
                raise FormatError("expected tables, got none")
            initial = {**make_metadata(), **journal_schema.EMPTY_METADATA, "version": journal_schema.VERSION}
            journal_schema.create_tables(self._db, initial)
            fsync_directory(self.path.parent)
        if read_only and journal_schema.read_metadata(self._db).get("version") != journal_schema.VERSION:
            self._db = journal_schema.copy_to_memory(self._db)
        journal_schema.migrate(self.path, self._db)
        self._reload_metadata()
        if not tolerate_damage:
            journal_schema.check_schema(self._db)
            if not read_only:
                journal_database.check_structure(self.path, self._db)
                self._check_last_batch()
        if not read_only:
            self._ensure_keys_intact(tolerate_damage)

    def _check_last_batch(self) -> None:
        """Raise if the journal ends before a batch that was acknowledged."""
        if missing := self.count_missing_batches():
            raise FormatError(
                f"{self.path}: expected batches up to {self.last + missing:,}, got {self.last:,}: the last "
                f"{missing:,} are missing, as if {self.path.name}-wal had been left behind or truncated. Put it back "
                f"or restore the directory from a backup, or continue without them: "
                f"ripplevec state cut {self.path.parent}"
            )

    def count_missing_batches(self) -> int:
        """Return how many batches after the last one were acknowledged, according to the marker."""
        return max(self.marker.read() - self.last, 0)

    def _ensure_keys_intact(self, tolerate_damage: bool) -> None:
        """Rebuild a damaged table of keys from the batches; raise if that does not recover all keys."""
        keys, intact = journal_schema.read_valid_keys(self._db)
        if intact and len(keys) == self._key_count:
            if not journal_schema.age_index_matches(self._db, keys):
                self._db.execute("REINDEX keys_by_age")
                self.notes.append(f"{self.path}: rebuilt the damaged index of keys")
            return
        for row in self.read_rows(self._first - 1):
            if row.entry is not None and row.entry.key is not None:
                keys[row.entry.key] = row.sequence
        if len(keys) != self._key_count and not tolerate_damage:
            raise FormatError(
                f"keys: expected {self._key_count:,}, got {len(keys):,} readable ones; batches could be applied twice"
            )
        with self._db:
            self._db.execute(BEGIN)
            journal_schema.run_statements(self._db, f"DROP TABLE keys;\n{journal_schema.KEYS_TABLE}")
            journal_schema.add_keys(self._db, sorted(keys.items()))
            journal_schema.write_metadata(self._db, "keys", len(keys))
        self._key_count = len(keys)
        self.notes.append(f"{self.path}: rebuilt the damaged table of keys from the batches")

    # ------------------------------------------------------------------ reading

    @property
    def first(self) -> int:
        """Sequence number of the oldest batch in the journal; `last + 1` if there is none."""
        return self._first

    @property
    def sources(self) -> dict[str, Any]:
        """Position of each source after its last batch."""
        return {source: last.position for source, last in sorted(self._positions.items())}

    def position(self, source: str) -> Any:
        """Return the position of a source after its last batch; None if it had none."""
        last = self._positions.get(source)
        return None if last is None else last.position

    def find_key(self, key: str) -> int | None:
        """Return the sequence number of the batch with an idempotency key; None if there is none."""
        with translate_errors(self.path, "read"):
            return journal_schema.look_up_key(self._db, key)

    def first_unpublished(self) -> dict[str, int]:
        """Return, for each source with sinks, its first batch whose changes may not have reached the sinks."""
        with translate_errors(self.path, "read"):
            batches = {source: self._next_batch(source, after) for source, after in self._published.items()}
        return {source: sequence for source, sequence in batches.items() if sequence is not None}

    def _next_batch(self, source: str, after: int) -> int | None:
        """Return the first batch of a source after a sequence number."""
        statement = "SELECT min(sequence) FROM batches WHERE sequence > ? AND source = ?"
        (sequence,) = self._db.execute(statement, (after, source)).fetchone()
        return None if sequence is None else int(sequence)

    def read_rows(self, after: int = 0) -> Iterator[JournalRow]:
        """Read and check the batches after a sequence number; missing and damaged ones are returned with the fault."""
        return (self.read_row(sequence) for sequence in range(after + 1, self.last + 1))

    def read_row(self, sequence: int) -> JournalRow:
        """Read and check one batch; a missing or damaged one is returned with the fault."""
        try:
            row = self._db.execute(f"SELECT {_COLUMNS} FROM batches WHERE sequence = ?", (sequence,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return JournalRow(sequence, None, f"cannot be read ({error})")
        return _decode_row(sequence, row)

    def is_intact(self) -> bool:
        """Return whether the file could be opened without `tolerate_damage`."""
        try:
            with translate_errors(self.path, "read"):
                journal_schema.check_schema(self._db)
                journal_database.check_structure(self.path, self._db)
        except FormatError:
            return False
        return True

    def verify(self) -> list[str]:
        """Check the whole file and every batch; return a description of each fault."""
        with translate_errors(self.path, "read"):
            faults = [str(fault) for (fault,) in self._db.execute("PRAGMA integrity_check") if fault != "ok"]
            keys, intact = journal_schema.read_valid_keys(self._db)
        if not intact or len(keys) != self._key_count or not journal_schema.age_index_matches(self._db, keys):
            faults.append(f"the table of keys is damaged: {len(keys):,} of {self._key_count:,} are readable")
        if missing := self.count_missing_batches():
            faults.append(f"the last {missing:,} batches are missing: batch {self.last + missing:,} was acknowledged")
        return faults + [f"batch {row.sequence:,} {row.fault}" for row in self.read_rows(self._first - 1) if row.fault]

    # ------------------------------------------------------------------ writing

    def append(self, entries: Sequence[JournalEntry], published: Mapping[str, int] | None = None) -> None:
        """Write batches to disk in one transaction: all of them, or none.

        `published` maps each source to the last batch whose changes its sinks have received.
        """
        rows = [_encode_row(sequence, entry) for sequence, entry in enumerate(entries, self.last + 1)]
        keys = [(row[2], row[0]) for row in rows if row[2] is not None]
        last = self.last + len(rows)
        positions = {
            entry.source: SourcePosition(sequence, entry.position)
            for sequence, entry in enumerate(entries, self.last + 1)
        }
        positions.pop(None, None)
        try:
            with translate_errors(self.path, "write"), self._db:
                self._db.execute(BEGIN)
                self._db.executemany(_INSERT, rows)
                changed: dict[str, Any] = {"last": last}
                if keys:
                    journal_schema.add_keys(self._db, keys)
                    changed["keys"] = self._key_count + len(keys)
                if published and not published.items() <= self._published.items():
                    changed["published"] = self._published | dict(published)
                if positions:
                    changed["sources"] = {**self._positions, **positions}
                if self._compact_up_to >= self._first:
                    up_to = min(self._compact_up_to, self._first + _DROPPED_PER_APPEND * len(rows) - 1)
                    self._drop_batches(up_to, changed)
                for name, value in changed.items():
                    journal_schema.write_metadata(self._db, name, value)
        except BaseException as error:
            self._recheck_after_failure(error)
            raise
        self._set_metadata(self.metadata | changed)
        self.marker.write(last)

    def compact(self, up_to: int, *, now: bool = False) -> None:
        """Delete the batches up to a sequence number: gradually with later batches, or all of them now."""
        self._compact_up_to = max(self._compact_up_to, min(up_to, self.last))
        if now:
            changed: dict[str, Any] = {}
            with translate_errors(self.path, "compact"):
                with self._db:
                    self._db.execute(BEGIN)
                    self._drop_batches(self._compact_up_to, changed)
                    for name, value in changed.items():
                        journal_schema.write_metadata(self._db, name, value)
                self._set_metadata(self.metadata | changed)
                self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def truncate(self, last: int) -> Path:
        """Discard every batch after a sequence number; return the path under which the old journal is kept.

        The remaining batches are written to a new file: in a damaged one, SQLite may no longer know which pages are
        free.
        """
        remaining = [row for row in self.read_rows(self._first - 1) if row.sequence <= last]
        new = journal_database.sibling_path(self.path, "new")
        with translate_errors(self.path, "rewrite"):
            new.unlink(missing_ok=True)
            with closing(journal_database.connect(new, wal=False)) as db:
                valid, _ = journal_schema.read_valid_keys(self._db)
                keys = {key: sequence for key, sequence in valid.items() if sequence <= last}
                journal_schema.create_tables(db, self.metadata | self._truncated_metadata(remaining, last, len(keys)))
                with db:
                    db.execute(BEGIN)
                    rows = [_encode_row(row.sequence, row.entry) for row in remaining if row.entry is not None]
                    db.executemany(_INSERT, rows)
                    journal_schema.add_keys(db, sorted(keys.items()))
            self._db.close()
            self.marker.write(last, durably=True)  # before the replacement, or the journal would look truncated
            damaged = journal_database.install_replacement(self.path)
            self._db = journal_database.connect(self.path)
            self._reload_metadata()
        return damaged

    def _truncated_metadata(self, remaining: list[JournalRow], last: int, keys: int) -> dict[str, Any]:
        """Return the metadata after truncation: each source is at the position after its last remaining batch."""
        positions = {source: position for source, position in self._positions.items() if position.sequence <= last}
        for source, position in self._compacted_positions.items():
            positions.setdefault(source, position)
        for row in remaining:
            if row.entry is not None and row.entry.source is not None and row.sequence >= self._first:
                previous = positions.get(row.entry.source)
                if previous is None or previous.sequence < row.sequence:
                    positions[row.entry.source] = SourcePosition(row.sequence, row.entry.position)
        published = {source: min(sequence, last) for source, sequence in self._published.items()}
        first = min(self._first, last + 1)
        return {"last": last, "first": first, "keys": keys, "sources": positions, "published": published}

    def close(self) -> None:
        """Close the files; everything written is already on disk."""
        self.marker.close()
        self._db.close()

    # ------------------------------------------------------------------ metadata

    def _reload_metadata(self) -> None:
        self._set_metadata(journal_schema.read_metadata(self._db))

    def _set_metadata(self, metadata: dict[str, Any]) -> None:
        """Validate metadata and adopt its values."""
        try:
            last, first, key_count = (_require_count(metadata[name]) for name in ("last", "first", "keys"))
            positions, compacted = (
                {source: SourcePosition(*position) for source, position in metadata[name].items()}
                for name in ("sources", "sources_before")
            )
            published = {source: _require_count(sequence) for source, sequence in metadata["published"].items()}
            consistent = 1 <= first <= last + 1 and all(0 < source.sequence <= last for source in positions.values())
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise FormatError(f"a metadata value is missing or has the wrong type ({error!r})") from error
        if not consistent:
            raise FormatError(f"the metadata values are inconsistent: batches {first:,} to {last:,}")
        self.metadata, self.last, self._first, self._key_count = metadata, last, first, key_count
        # `compacted` holds the position of each source after its last deleted batch.
        self._positions, self._compacted_positions, self._published = positions, compacted, published

    def _drop_batches(self, up_to: int, changed: dict[str, Any]) -> None:
        """Delete batches and expired keys; add the resulting metadata, with the source positions, to `changed`."""
        compacted = dict(self._compacted_positions)
        for source, sequence in self._last_batches(up_to).items():
            position = self._positions.get(source)
            if position is None or position.sequence != sequence:
                entry = self.read_row(sequence).entry
                if entry is None or entry.source != source:
                    return  # keep a damaged row, so that `verify` reports it
                position = SourcePosition(sequence, entry.position)
            compacted[source] = position
        self._db.execute("DELETE FROM batches WHERE sequence <= ?", (up_to,))
        deleted_keys = journal_schema.delete_keys(self._db, self.last - KEY_RETENTION)
        changed |= {"first": max(up_to + 1, self._first), "sources_before": compacted}
        if deleted_keys:
            changed["keys"] = changed.get("keys", self._key_count) - deleted_keys

    def _last_batches(self, up_to: int) -> dict[str, int]:
        """Return the last batch of each source up to a sequence number."""
        statement = (
            "SELECT source, max(sequence) FROM batches WHERE sequence <= ? AND source IS NOT NULL GROUP BY source"
        )
        return dict(self._db.execute(statement, (up_to,)).fetchall())

    def _recheck_after_failure(self, error: BaseException) -> None:
        """Read the metadata again after a failed write: an interrupt may arrive just after a successful commit."""
        try:
            self._reload_metadata()
            self.commit_uncertain |= getattr(error.__cause__, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_FSYNC
        except (sqlite3.Error, FormatError, UnicodeDecodeError):
            self.commit_uncertain = True


def _check_position(source: str | None, position: Any) -> None:
    """Raise `InvalidValueError` for a source or a position that cannot be stored."""
    if source is None:
        raise InvalidValueError.of("position", "a `source` given with it", position)
    if not (isinstance(source, str) and source):
        raise InvalidValueError.of("source", "a non-empty string", source)
    try:
        json.dumps(position, allow_nan=False).encode()
        source.encode()  # SQLite cannot store unpaired surrogates
    except (TypeError, ValueError) as error:
        raise InvalidValueError.of("position", f"a value that JSON can represent ({error})", position) from error


def _encode_row(sequence: int, entry: JournalEntry) -> journal_schema.Row:
    position = None if entry.source is None else json.dumps(entry.position)
    return journal_schema.encode_row(sequence, entry.key, entry.source, position, entry.batch)


def _decode_row(sequence: int, row: tuple[Any, ...] | None) -> JournalRow:
    """Check the checksum of a database row and decode its batch; None stands for a missing row."""
    if row is None:
        return JournalRow(sequence, None, "is missing")
    _, checksum, key, source, position, payload = row
    if not journal_schema.checksum_matches(checksum, sequence, key, source, position, payload=payload):
        return JournalRow(sequence, None, "does not match its checksum", damaged=True)
    try:
        batch = decode_batch(payload)
        return JournalRow(
            sequence, JournalEntry(batch, key, source, None if position is None else json.loads(position))
        )
    except (TypeError, ValueError, RecursionError) as error:
        return JournalRow(sequence, None, f"cannot be decoded ({shorten(error)})")


def _require_count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"expected an integer ≥ 0, got {shorten(value)}")
    return value
