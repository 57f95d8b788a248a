"""The journal: every batch on disk before it is applied, with the place of its source.

A row is a batch: its sequence number, the client's key, the source and the position after it, the bytes, and a checksum
over all of these. So a batch and its position are kept together or not at all. The number of the last batch is kept
beside the rows, so that rows that have gone missing are missed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ripplet.errors import FormatError, InvalidValueError, shorten
from ripplet.events import Batch
from ripplet.io.keys import check_key
from ripplet.state import database
from ripplet.state.database import explained, transaction
from ripplet.state.files import flush_directory
from ripplet.state.payload import decode, encode

JOURNAL = "journal.sqlite"
"""The name of the journal in a session's directory."""

KEYS_KEPT = 100_000
"""Over how many batches a key is remembered."""

_ALONG = 8  # old rows dropped with every new one, until all that is to go has gone
_COLUMNS = "sequence, checksum, key, source, position, payload"
_INSERT = f"INSERT INTO batches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch with what is kept beside it: the client's key, or its source and the position after it."""

    batch: Batch
    key: str | None = None
    source: str | None = None
    position: Any = None


class Row(NamedTuple):
    """A batch as it stands in the journal; where it cannot be used, `fault` says why."""

    sequence: int
    entry: Entry | None
    fault: str = ""


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

        A damaged log is refused, unless it is to be forgiven: what follows the damage is then lost.
        """
        self.path = path
        self.doubtful = False  # whether what is on disk can no longer be told
        self.note: str | None = None  # what the person who opens it should know
        self._compact_to = 0
        if not read_only:
            database.settle(path)
            self.note = None if forgiving else database.check_log(path)
        if new is None and not path.exists():
            raise FormatError(f"{path}: expected the journal of a session, found nothing; check the path")
        with explained(path, "open"):
            self._db = database.connect(path, read_only=read_only)
            try:
                if new is not None and not database.has_tables(self._db):
                    database.make_tables(self._db, {**new(), "version": database.VERSION, "last": 0})
                    flush_directory(path.parent)
                database.bring_up_to_date(path, self._db, read_only=read_only)
                self._read()
            except BaseException:
                self._db.close()
                raise

    @property
    def first(self) -> int:
        """The number of the oldest batch that is still here; one more than the last where none is."""
        (first,) = self._db.execute("SELECT min(sequence) FROM batches").fetchone()
        return self.last + 1 if first is None else int(first)

    @property
    def sources(self) -> dict[str, Any]:
        """Per source that batches came from, the position after its last one."""
        return {source: self.position(source) for source in sorted({*self._positions, *self._unread})}

    def position(self, source: str) -> Any:
        """The position after the last batch of a source; None where there was none."""
        if source in self._unread:
            row = self._row(self._unread[source])
            if row.entry is None:
                raise FormatError(
                    f"{self.path}: batch {row.sequence:,} {row.fault}, and it alone knows where {source!r} stands; "
                    "restore the directory from a copy"
                )
            self._positions[source] = row.entry.position
            del self._unread[source]
        return self._positions.get(source)

    def find(self, key: str) -> int | None:
        """The number that the batch with this key got; None where it is not known."""
        found = self._db.execute("SELECT sequence FROM keys WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def append(self, entries: Sequence[Entry], published: Mapping[str, int] | None = None) -> None:
        """Put batches on disk, a row each, all in one transaction: all are kept, or none.

        `published` says of sources up to which batch their changes are with the sinks.
        """
        rows = [_as_row(number, entry) for number, entry in enumerate(entries, self.last + 1)]
        keys = [(row[2], row[0]) for row in rows if row[2] is not None]
        try:
            with explained(self.path, "write"), transaction(self._db):
                self._db.executemany(_INSERT, rows)
                self._db.executemany("INSERT INTO keys VALUES (?, ?)", keys)
                self._db.executemany("INSERT OR REPLACE INTO published VALUES (?, ?)", (published or {}).items())
                database.set_meta(self._db, "last", self.last + len(rows))
                if self._compact_to >= (first := self.first):
                    self._drop(min(self._compact_to, first + _ALONG * len(rows) - 1))
        except BaseException as error:
            self._look_again(error)
            raise
        self.last += len(rows)
        for entry in entries:
            if entry.source is not None:
                self._positions[entry.source] = entry.position
                self._unread.pop(entry.source, None)

    def unpublished(self) -> dict[str, int]:
        """Of each source whose changes go to sinks: the first batch that may not have got there, if there is one."""
        found = self._db.execute(
            "SELECT source, min(b.sequence) FROM batches b JOIN published p USING (source) "
            "WHERE b.sequence > p.sequence GROUP BY source"
        )
        return dict(found.fetchall())

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The batches behind a number, each checked; one that is missing or damaged comes with what is wrong."""
        return (self._row(sequence) for sequence in range(after + 1, self.last + 1))

    def compact(self, upto: int, *, now: bool = False) -> None:
        """Drop the batches up to a number: a few with every one that comes, or all of them now."""
        self._compact_to = max(self._compact_to, min(upto, self.last))
        if now:
            with explained(self.path, "compact"):
                with transaction(self._db):
                    self._drop(self._compact_to)
                self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def cut(self, last: int) -> Path:
        """Give up every batch behind a number; where the journal as it was is kept.

        The others are written anew: where bytes have been flipped, SQLite may no longer know which pages are free.
        """
        good = [row for row in self.rows(self.first - 1) if row.sequence <= last]
        fresh = database.beside(self.path, "new")
        with explained(self.path, "rewrite"):
            fresh.unlink(missing_ok=True)
            with closing(database.connect(fresh, wal=False)) as db:
                database.make_tables(db, {**self.meta, "last": last})
                self._copy_to(db, good, last)
            self._db.close()
            aside = database.put_in_place(self.path)
            self._db = database.connect(self.path)
            self._read()
        return aside

    def _copy_to(self, db: sqlite3.Connection, good: list[Row], last: int) -> None:
        with transaction(db):
            db.executemany(_INSERT, [_as_row(row.sequence, row.entry) for row in good if row.entry is not None])
            for table, marks in {"keys": "?, ?", "sources": "?, ?, ?, ?", "published": "?, ?"}.items():
                rows = self._db.execute(f"SELECT * FROM {table}").fetchall()
                db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            db.execute("DELETE FROM keys WHERE sequence > ?", (last,))
            db.execute("UPDATE published SET sequence = min(sequence, ?)", (last,))

    def verify(self) -> list[str]:
        """What is wrong with the file and with the batches in it, in words."""
        with explained(self.path, "read"):
            faults = [str(fault) for (fault,) in self._db.execute("PRAGMA integrity_check") if fault != "ok"]
        return faults + [f"batch {row.sequence:,} {row.fault}" for row in self.rows(self.first - 1) if row.fault]

    def close(self) -> None:
        """Let go of the file; everything in it is already on disk."""
        self._db.close()

    # ------------------------------------------------------------------ inside

    def _row(self, sequence: int) -> Row:
        try:
            found = self._db.execute(f"SELECT {_COLUMNS} FROM batches WHERE sequence = ?", (sequence,)).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return Row(sequence, None, f"cannot be read ({error})")
        return _checked(sequence, found)

    def _read(self) -> None:
        self.meta = database.meta(self._db)
        self.last = int(self.meta["last"])
        self._positions: dict[str, Any] = {}
        for *row, expected in self._db.execute("SELECT source, sequence, position, checksum FROM sources"):
            database.check(expected, *row)
            self._positions[row[0]] = json.loads(row[2])
        self._unread = self._last_of_sources(self.last)

    def _last_of_sources(self, upto: int) -> dict[str, int]:
        """Of each source its last batch up to a number, which says where it stands."""
        statement = (
            "SELECT source, max(sequence) FROM batches WHERE sequence <= ? AND source IS NOT NULL GROUP BY source"
        )
        return dict(self._db.execute(statement, (upto,)).fetchall())

    def _drop(self, upto: int) -> None:
        """Forget batches, but for the last position of each source, and keys that are too old."""
        for sequence in self._last_of_sources(upto).values():
            entry = self._row(sequence).entry
            if entry is None:
                return  # a damaged row stays where it is, for whoever verifies
            kept = entry.source, sequence, json.dumps(entry.position)
            self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)", (*kept, database.checksum(*kept)))
        self._db.execute("DELETE FROM batches WHERE sequence <= ?", (upto,))
        self._db.execute("DELETE FROM keys WHERE sequence <= ?", (self.last - KEYS_KEPT,))

    def _look_again(self, error: BaseException) -> None:
        """After a failure: whether the batches got there all the same (an interrupt may come right behind it)."""
        try:
            self.last = int(database.meta(self._db)["last"])
            self.doubtful |= getattr(error.__cause__, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_FSYNC
        except sqlite3.Error:
            self.doubtful = True


def check_entry(entry: Entry) -> None:
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


def _as_row(sequence: int, entry: Entry) -> tuple[Any, ...]:
    position = None if entry.source is None else json.dumps(entry.position)
    payload = encode(entry.batch)
    checksum = database.checksum(sequence, entry.key, entry.source, position, payload=payload)
    return sequence, checksum, entry.key, entry.source, position, payload


def _checked(sequence: int, found: tuple[Any, ...] | None) -> Row:
    if found is None:
        return Row(sequence, None, "is missing")
    _, checksum, key, source, position, payload = found
    try:
        if database.checksum(sequence, key, source, position, payload=payload) != checksum:
            return Row(sequence, None, "does not fit its checksum")
        return Row(sequence, Entry(decode(payload), key, source, None if position is None else json.loads(position)))
    except (TypeError, ValueError) as error:
        return Row(sequence, None, f"cannot be understood ({shorten(error)})")
