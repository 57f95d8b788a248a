"""The journal: every batch on disk before it is applied, with the place of its source.

A row is a batch: its sequence number, the client's key, the source and the position after it, the bytes, and a checksum
over all of these. So a batch and its position are kept together or not at all. Beside the rows are kept, under
checksums too, the numbers of the first and the last batch, how many keys there are, where sources stand and what is
published: rows that have gone missing are missed.
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
from ripplevec.durability import journal_database, journal_migrations
from ripplevec.durability.batch_codec import decode_batch, encode_batch
from ripplevec.durability.idempotency_table import add_keys, ages_fit, drop_keys, find_key, sound_keys
from ripplevec.durability.journal_database import explained, transaction
from ripplevec.durability.last_batch_marker import Marker
from ripplevec.durability.snapshot import SNAPSHOTS, SnapshotStore
from ripplevec.errors import FormatError, InvalidValueError, shorten
from ripplevec.io.idempotency_key import check_key
from ripplevec.util.checked_directory import flush_directory

JOURNAL = "journal.sqlite"
"""The name of the journal in a session's directory."""

MARKER = "journal.last"
"""The name of the file beside it that names its last batch."""

KEYS_KEPT = 100_000
"""Over how many batches a key is remembered."""

_ALONG = 8  # old rows dropped with every new one, until all that is to go has gone
_COLUMNS = "sequence, checksum, key, source, position, payload"
_INSERT = f"INSERT INTO batches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A batch with what is kept beside it: the client's key, or its source and the position after it."""

    batch: Batch
    key: str | None = None
    source: str | None = None
    position: Any = None


class Row(NamedTuple):
    """A batch as it stands in the journal; where it cannot be used, `fault` says why."""

    sequence: int
    entry: JournalEntry | None
    fault: str = ""
    damaged: bool = False  # whether it is there, and not as it was written


class Place(NamedTuple):
    """Where a source stands: the position after its last batch, and the number of that batch."""

    sequence: int
    position: Any


class Journal:
    """The batches of one directory, in order. For any thread, one at a time."""

    def __init__(
        self,
        path: Path,
        *,
        new: Callable[[], Mapping[str, Any]] | None = None,
        read_only: bool = False,
        forgiving: bool = False,
    ) -> None:
        """Open a journal; where there is none, make one that keeps what `new` returns.

        Damage is refused, unless it is to be forgiven: whatever cannot be read is then lost when batches are cut.
        """
        self.path = path
        self.doubtful = False  # whether what is on disk can no longer be told
        self.notes: list[str] = []  # what the person who opens it should know
        self.marker = Marker(path.with_name(MARKER))
        self._compact_to = self._keys = 0
        if path.is_symlink():
            raise FormatError(f"{path}: expected a file, got a link; put the file itself there")
        with explained(path, "open"):
            if not read_only:
                journal_database.settle(path)
                if not forgiving and (note := journal_database.check_log(path)):
                    self.notes.append(note)
        self._refuse_to_begin_anew(new is None)
        with explained(path, "open"):
            self._db = journal_database.connect(path, read_only=read_only, forgiving=forgiving)
            try:
                self._open(new, read_only, forgiving)
            except BaseException:
                self._db.close()
                raise

    def _refuse_to_begin_anew(self, existing: bool) -> None:
        """Refuse to make a journal where there has been one: what it held would be forgotten without a word."""
        if self.path.exists() and self.path.stat().st_size:
            return
        if traces := self.traces():
            raise FormatError(
                f"{self.path}: expected a journal beside {' and '.join(traces)}, got "
                f"{'an empty file' if self.path.exists() else 'nothing'}. Restore the directory from a copy, or give "
                f"up everything in it: ripplevec state cut {self.path.parent}"
            )
        if existing:
            raise FormatError(f"{self.path}: expected the journal of a session, found nothing; check the path")

    def traces(self) -> list[str]:
        """What lies beside the journal and shows that it has held batches, in words."""
        snapshots, log = SnapshotStore(self.path.with_name(SNAPSHOTS)), Path(f"{self.path}-wal")
        found = [f"{len(snapshots.sequences):,} snapshots"] if snapshots.sequences else []
        if last := self.marker.read():
            found.append(f"a marker of batch {last:,}")
        if not self.path.exists() and log.exists() and log.stat().st_size:
            found.append("its write-ahead log")
        return found

    def _open(self, new: Callable[[], Mapping[str, Any]] | None, read_only: bool, forgiving: bool) -> None:
        if forgiving:
            journal_database.mend_schema(self._db)
        if journal_database.is_blank(self._db):
            if new is None or self.traces():
                raise FormatError("expected tables, got none")
            journal_database.make_tables(
                self._db, {**new(), **journal_migrations.EMPTY, "version": journal_database.VERSION}
            )
            flush_directory(self.path.parent)
        if read_only and journal_database.meta(self._db).get("version") != journal_database.VERSION:
            self._db = journal_migrations.copy_in_memory(self._db)
        journal_database.bring_up_to_date(self.path, self._db)
        self._read()
        if not forgiving:
            journal_database.check_schema(self._db)
            if not read_only:
                journal_database.check_structure(self.path, self._db)
                self._check_end()
        if not read_only:
            self._check_keys(forgiving)

    def _check_end(self) -> None:
        """Refuse a journal that ends before a batch that was acknowledged."""
        if lost := self.missing_batches():
            raise FormatError(
                f"{self.path}: expected batches up to {self.last + lost:,}, got {self.last:,}: the last {lost:,} are "
                f"missing, as if {self.path.name}-wal had been left behind or cut short. Put it back or restore the "
                f"directory from a copy, or go on without them: ripplevec state cut {self.path.parent}"
            )

    def missing_batches(self) -> int:
        """How many batches behind the last one are known to have been acknowledged."""
        return max(self.marker.read() - self.last, 0)

    def _check_keys(self, forgiving: bool) -> None:
        """Mend the table of keys from the batches where it is damaged; refuse where that does not bring all back."""
        keys, sound = sound_keys(self._db)
        if sound and len(keys) == self._keys:
            if not ages_fit(self._db, keys):
                self._db.execute("REINDEX keys_by_age")
                self.notes.append(f"{self.path}: the index of keys was damaged and has been made again")
            return
        for row in self.rows(self._first - 1):
            if row.entry is not None and row.entry.key is not None:
                keys[row.entry.key] = row.sequence
        if len(keys) != self._keys and not forgiving:
            raise FormatError(f"only {len(keys):,} of {self._keys:,} keys can be told: batches could be applied twice")
        with transaction(self._db):
            journal_database.run_statements(self._db, f"DROP TABLE keys;\n{journal_database.KEYS}")
            add_keys(self._db, sorted(keys.items()))
            journal_database.set_meta(self._db, "keys", len(keys))
        self._keys = len(keys)
        self.notes.append(f"{self.path}: the table of keys was damaged and has been made again from the batches")

    @property
    def first(self) -> int:
        """The number of the oldest batch that is still here; one more than the last where none is."""
        return self._first

    @property
    def sources(self) -> dict[str, Any]:
        """Per source that batches came from, the position after its last one."""
        return {source: place.position for source, place in sorted(self._places.items())}

    def position(self, source: str) -> Any:
        """The position after the last batch of a source; None where there was none."""
        place = self._places.get(source)
        return None if place is None else place.position

    def find(self, key: str) -> int | None:
        """The number that the batch with this key got; None where it is not known."""
        with explained(self.path, "read"):
            return find_key(self._db, key)

    def append(self, entries: Sequence[JournalEntry], published: Mapping[str, int] | None = None) -> None:
        """Put batches on disk, a row each, all in one transaction: all are kept, or none.

        `published` says of sources up to which batch their changes are with the sinks.
        """
        rows = [_as_row(number, entry) for number, entry in enumerate(entries, self.last + 1)]
        keys = [(row[2], row[0]) for row in rows if row[2] is not None]
        last = self.last + len(rows)
        places = {entry.source: Place(number, entry.position) for number, entry in enumerate(entries, self.last + 1)}
        places.pop(None, None)
        try:
            with explained(self.path, "write"), transaction(self._db):
                self._db.executemany(_INSERT, rows)
                add_keys(self._db, keys)
                changed: dict[str, Any] = {"last": last}
                if keys:
                    changed["keys"] = self._keys + len(keys)
                if published and not published.items() <= self._published.items():
                    changed["published"] = self._published | dict(published)
                if places:
                    changed["sources"] = {**self._places, **places}
                if self._compact_to >= self._first:
                    self._drop(min(self._compact_to, self._first + _ALONG * len(rows) - 1), changed)
                for name, value in changed.items():
                    journal_database.set_meta(self._db, name, value)
        except BaseException as error:
            self._look_again(error)
            raise
        self._adopt(self.meta | changed)
        self.marker.write(last)

    def unpublished(self) -> dict[str, int]:
        """Of each source whose changes go to sinks: the first batch that may not have got there, if there is one."""
        with explained(self.path, "read"):
            found = {source: self._next_of(source, after) for source, after in self._published.items()}
        return {source: number for source, number in found.items() if number is not None}

    def _next_of(self, source: str, after: int) -> int | None:
        """The first batch of a source behind a number."""
        statement = "SELECT min(sequence) FROM batches WHERE sequence > ? AND source = ?"
        (number,) = self._db.execute(statement, (after, source)).fetchone()
        return None if number is None else int(number)

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The batches behind a number, each checked; one that is missing or damaged comes with what is wrong."""
        return (self.row(sequence) for sequence in range(after + 1, self.last + 1))

    def row(self, sequence: int) -> Row:
        """One batch, checked; where it is missing or damaged, what is wrong."""
        try:
            found = self._db.execute(f"SELECT {_COLUMNS} FROM batches WHERE sequence = ?", (sequence,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return Row(sequence, None, f"cannot be read ({error})")
        return _checked(sequence, found)

    def compact(self, upto: int, *, now: bool = False) -> None:
        """Drop the batches up to a number: a few with every one that comes, or all of them now."""
        self._compact_to = max(self._compact_to, min(upto, self.last))
        if now:
            changed: dict[str, Any] = {}
            with explained(self.path, "compact"):
                with transaction(self._db):
                    self._drop(self._compact_to, changed)
                    for name, value in changed.items():
                        journal_database.set_meta(self._db, name, value)
                self._adopt(self.meta | changed)
                self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def cut(self, last: int) -> Path:
        """Give up every batch behind a number; where the journal as it was is kept.

        The others are written anew: where bytes have been flipped, SQLite may no longer know which pages are free.
        """
        good = [row for row in self.rows(self._first - 1) if row.sequence <= last]
        fresh = journal_database.sibling_path(self.path, "new")
        with explained(self.path, "rewrite"):
            fresh.unlink(missing_ok=True)
            with closing(journal_database.connect(fresh, wal=False)) as db:
                keys = {key: number for key, number in sound_keys(self._db)[0].items() if number <= last}
                journal_database.make_tables(db, self.meta | self._meta_of_cut(good, last, len(keys)))
                with transaction(db):
                    db.executemany(_INSERT, [_as_row(row.sequence, row.entry) for row in good if row.entry is not None])
                    add_keys(db, sorted(keys.items()))
            self._db.close()
            self.marker.write(last, durably=True)  # before the journal gets shorter, or it would look as if cut short
            aside = journal_database.put_in_place(self.path)
            self._db = journal_database.connect(self.path)
            self._read()
        return aside

    def _meta_of_cut(self, good: list[Row], last: int, keys: int) -> dict[str, Any]:
        """What is kept beside the batches up to a number: sources stand where their last good batches left them."""
        places = {source: place for source, place in self._places.items() if place.sequence <= last}
        for source, place in self._places_before.items():
            places.setdefault(source, place)
        for row in good:
            if row.entry is not None and row.entry.source is not None and row.sequence >= self._first:
                known = places.get(row.entry.source)
                if known is None or known.sequence < row.sequence:
                    places[row.entry.source] = Place(row.sequence, row.entry.position)
        published = {source: min(number, last) for source, number in self._published.items()}
        first = min(self._first, last + 1)
        return {"last": last, "first": first, "keys": keys, "sources": places, "published": published}

    def is_sound(self) -> bool:
        """Whether the file could be opened without being forgiven anything."""
        try:
            with explained(self.path, "read"):
                journal_database.check_schema(self._db)
                journal_database.check_structure(self.path, self._db)
        except FormatError:
            return False
        return True

    def verify(self) -> list[str]:
        """What is wrong with the file and with the batches in it, in words."""
        with explained(self.path, "read"):
            faults = [str(fault) for (fault,) in self._db.execute("PRAGMA integrity_check") if fault != "ok"]
            keys, sound = sound_keys(self._db)
        if not sound or len(keys) != self._keys or not ages_fit(self._db, keys):
            faults.append(f"the table of keys is damaged: {len(keys):,} of {self._keys:,} can be told")
        if lost := self.missing_batches():
            faults.append(f"the last {lost:,} batches are missing: batch {self.last + lost:,} was acknowledged")
        return faults + [f"batch {row.sequence:,} {row.fault}" for row in self.rows(self._first - 1) if row.fault]

    def close(self) -> None:
        """Let go of the file; everything in it is already on disk."""
        self.marker.close()
        self._db.close()

    # ------------------------------------------------------------------ inside

    def _read(self) -> None:
        self._adopt(journal_database.meta(self._db))

    def _adopt(self, meta: dict[str, Any]) -> None:
        """Know what is kept beside the batches; a value of the wrong kind is refused."""
        try:
            last, first, keys = (_whole(meta[name]) for name in ("last", "first", "keys"))
            places, before = ({s: Place(*p) for s, p in meta[name].items()} for name in ("sources", "sources_before"))
            published = {source: _whole(number) for source, number in meta["published"].items()}
            sound = 1 <= first <= last + 1 and all(0 < place.sequence <= last for place in places.values())
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise FormatError(f"a value beside the batches is missing or of the wrong kind ({error!r})") from error
        if not sound:
            raise FormatError(f"the values beside the batches contradict each other: batches {first:,} to {last:,}")
        self.meta, self.last, self._first, self._keys = meta, last, first, keys
        self._places, self._places_before, self._published = places, before, published

    def _drop(self, upto: int, changed: dict[str, Any]) -> None:
        """Forget batches, but for the last position of each source, and keys that are too old; what that changes."""
        before = dict(self._places_before)
        for source, number in self._last_of_sources(upto).items():
            place = self._places.get(source)
            if place is None or place.sequence != number:
                entry = self.row(number).entry
                if entry is None or entry.source != source:
                    return  # a damaged row stays where it is, for whoever verifies
                place = Place(number, entry.position)
            before[source] = place
        self._db.execute("DELETE FROM batches WHERE sequence <= ?", (upto,))
        gone = drop_keys(self._db, self.last - KEYS_KEPT)
        changed |= {"first": max(upto + 1, self._first), "sources_before": before}
        if gone:
            changed["keys"] = changed.get("keys", self._keys) - gone

    def _last_of_sources(self, upto: int) -> dict[str, int]:
        """Of each source its last batch up to a number."""
        statement = (
            "SELECT source, max(sequence) FROM batches WHERE sequence <= ? AND source IS NOT NULL GROUP BY source"
        )
        return dict(self._db.execute(statement, (upto,)).fetchall())

    def _look_again(self, error: BaseException) -> None:
        """After a failure: whether the batches got there all the same (an interrupt may come right behind it)."""
        try:
            self._read()
            self.doubtful |= getattr(error.__cause__, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_FSYNC
        except (sqlite3.Error, FormatError, UnicodeDecodeError):
            self.doubtful = True


def validate_entry(entry: JournalEntry) -> None:
    """Refuse a key, a source or a position that cannot be kept."""
    key, source, position = entry.key, entry.source, entry.position
    check_key(key)
    if source is None and position is not None:
        raise InvalidValueError.of("position", "the name of its source beside it", position)
    if source is not None and not (isinstance(source, str) and source):
        raise InvalidValueError.of("source", "a name", source)
    try:
        json.dumps([key, source, position], allow_nan=False).encode()
        (f"{key}{source}").encode()
    except (TypeError, ValueError) as error:
        raise InvalidValueError.of("position", f"values that JSON can hold ({error})", position) from error


def _as_row(sequence: int, entry: JournalEntry) -> tuple[Any, ...]:
    position = None if entry.source is None else json.dumps(entry.position)
    payload = encode_batch(entry.batch)
    checksum = journal_database.checksum(sequence, entry.key, entry.source, position, payload=payload)
    return sequence, checksum, entry.key, entry.source, position, payload


def _checked(sequence: int, found: tuple[Any, ...] | None) -> Row:
    if found is None:
        return Row(sequence, None, "is missing")
    _, checksum, key, source, position, payload = found
    if not journal_database.fits(checksum, sequence, key, source, position, payload=payload):
        return Row(sequence, None, "does not fit its checksum", damaged=True)
    try:
        return Row(sequence, JournalEntry(decode_batch(payload), key, source, None if position is None else json.loads(position)))
    except (TypeError, ValueError, RecursionError) as error:
        return Row(sequence, None, f"cannot be understood ({shorten(error)})")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"expected a whole number, got {shorten(value)}")
    return value
