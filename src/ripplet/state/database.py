"""The SQLite file under a journal: how it is opened, its tables, its version, and what its errors mean to a person."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ripplet.errors import FormatError, StateError, shorten
from ripplet.state.files import flush_directory
from ripplet.state.log import look_at_log

VERSION = 1
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""From each older version: what brings a journal to the next one, within a transaction."""

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (
    sequence INTEGER PRIMARY KEY, checksum BLOB NOT NULL, key TEXT, source TEXT, position TEXT, payload BLOB NOT NULL
);
CREATE TABLE keys (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_age ON keys (sequence);
CREATE TABLE sources (
    source TEXT PRIMARY KEY, sequence INTEGER NOT NULL, position TEXT NOT NULL, checksum BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE published (source TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID;
"""

_PAGES = 4_000  # of 4 KiB in the write-ahead log before they are moved into the file
_NOTHING_KEPT = "nothing of it was kept"
_FULL = f"{_NOTHING_KEPT}: free some space and try again"
_REMEDIES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,
    sqlite3.SQLITE_IOERR_FSYNC: "whether it was kept is not known: open the directory again, which will tell",
    sqlite3.SQLITE_READONLY: f"{_NOTHING_KEPT}: a session needs a directory that it may write to",
    sqlite3.SQLITE_CANTOPEN: "it needs a directory that may be written to; copy it to one to look into it",
}


def connect(path: Path, *, read_only: bool = False, wal: bool = True) -> sqlite3.Connection:
    """A connection that returns from a commit when the bytes are on disk. For any thread, one at a time."""
    address = f"{path.absolute().as_uri()}?{_for_reading(path) if read_only else 'mode=rwc'}"
    db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=10, check_same_thread=False)
    try:
        if not read_only:
            db.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA wal_autocheckpoint = {_PAGES}")
            db.execute(f"PRAGMA journal_size_limit = {_PAGES * 4096}")
    except BaseException:
        db.close()
        raise
    return db


def _for_reading(path: Path) -> str:
    """How a file is opened that is not written to.

    SQLite wants a file beside it, even to read, unless it is told that nobody changes it: true where there is no log.
    """
    alone = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
    return "mode=ro&immutable=1" if alone else "mode=ro"


def make_tables(db: sqlite3.Connection, meta: Mapping[str, Any]) -> None:
    """Empty tables, and values that are kept beside them."""
    with transaction(db):
        for statement in TABLES.split(";\n"):
            db.execute(statement)
        for name, value in meta.items():
            set_meta(db, name, value)


def has_tables(db: sqlite3.Connection) -> bool:
    """Whether the tables are there; an attempt to make them that did not get as far leaves none."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None


def check_log(path: Path) -> str | None:
    """Refuse a file whose log is damaged; what SQLite is going to drop of it otherwise, in words."""
    report = look_at_log(Path(f"{path}-wal"))
    if report.dropped > 1:
        raise FormatError(
            f"{path}-wal: damaged behind {report.good:,} transactions: the {report.dropped:,} that follow would be "
            f"lost; restore the directory from a copy, or give them up: ripplet state cut {path.parent}"
        )
    if report.unfinished:
        return f"{path}: a last write that had not been finished, or was damaged, is left out"
    return None


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of it on disk at the end, or nothing of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def meta(db: sqlite3.Connection) -> dict[str, Any]:
    """The values that are kept beside the batches."""
    found = {}
    for name, value, sum_of_it in db.execute("SELECT name, value, checksum FROM meta"):
        check(sum_of_it, name, value)
        found[name] = json.loads(value)
    return found


def set_meta(db: sqlite3.Connection, name: str, value: Any) -> None:
    """Keep a value beside the batches."""
    text = json.dumps(value)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, text, checksum(name, text)))


def checksum(*values: Any, payload: bytes = b"") -> bytes:
    """Of everything in a row: SQLite itself does not notice when bytes are flipped within a value."""
    digest = hashlib.blake2b(payload, digest_size=16)
    digest.update(json.dumps(values).encode())
    return digest.digest()


def check(expected: Any, *values: Any) -> None:
    """Refuse a row that is not as it was written."""
    if checksum(*values) != expected:
        raise FormatError(f"a value does not fit its checksum: {shorten(values)}")


def bring_up_to_date(path: Path, db: sqlite3.Connection, *, read_only: bool = False) -> None:
    """Take an older file to the version of this program, step by step; refuse a newer one."""
    version = meta(db).get("version", 0)
    if version > VERSION:
        raise FormatError(
            f"{path}: written by a newer Ripplet (journal {version}; this one reads up to {VERSION}): "
            "upgrade, pip install -U ripplet"
        )
    while version < VERSION and not read_only:
        with transaction(db):
            MIGRATIONS[version](db)
            version += 1
            set_meta(db, "version", version)


@contextmanager
def explained(path: Path, what: str) -> Iterator[None]:
    """What SQLite complains of, said to the person who can do something about it."""
    try:
        yield
    except (FormatError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error
    except sqlite3.DatabaseError as error:
        exactly = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # text that is none has no code
        code = exactly & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise _damaged(path, error) from error
        remedy = _REMEDIES.get(exactly) or _REMEDIES.get(code) or f"{_NOTHING_KEPT}; try again"
        raise StateError(f"{path}: could not {what} the journal ({error}); {remedy}") from error


def _damaged(path: Path, error: Exception) -> FormatError:
    return FormatError(f"{path}: the journal is damaged ({error}); restore the directory from a copy")


def beside(path: Path, role: str) -> Path:
    """The name of a file that is to replace another ("new"), or that was replaced ("damaged")."""
    return path.with_name(f"{path.name}.{role}")


def put_in_place(path: Path) -> Path:
    """Let the new file beside a path take its place; where the old one, with its log, is kept."""
    aside = beside(path, "damaged")
    if path.exists():
        os.replace(path, aside)
    settle(path)
    return aside


def settle(path: Path) -> None:
    """Finish a replacement that was interrupted, or drop one that did not get as far.

    A log that stayed behind must be gone before the new file is there: SQLite would take it for the new one's.
    """
    fresh, log = beside(path, "new"), Path(f"{path}-wal")
    if path.exists():
        fresh.unlink(missing_ok=True)
        return
    if fresh.exists():
        if log.exists():
            os.replace(log, f"{beside(path, 'damaged')}-wal")
        Path(f"{path}-shm").unlink(missing_ok=True)
        os.replace(fresh, path)
        flush_directory(path.parent)
