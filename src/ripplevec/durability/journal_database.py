"""The SQLite file under a journal: how it is opened, its tables, its version, and what its errors mean to a person."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ripplevec.durability.wal_check import look_at_log
from ripplevec.errors import FormatError, StateError, shorten
from ripplevec.util.checked_directory import flush_directory

VERSION = 2
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""From each older version: what brings a journal to the next one, within a transaction."""

KEYS = """CREATE TABLE keys (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_age ON keys (sequence);
"""
TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (
    sequence INTEGER PRIMARY KEY, checksum BLOB NOT NULL, key TEXT, source TEXT, position TEXT, payload BLOB NOT NULL
);
{KEYS}"""

CHECKED_WHOLE = 256 << 20
"""Bytes up to which the structure of a file is checked at opening; larger ones are left to `ripplevec state verify`."""

_PAGES = 4_000  # of 4 KiB in the write-ahead log before they are moved into the file
_NOTHING_KEPT = "nothing of it was kept"
_FULL = f"{_NOTHING_KEPT}: free some space and try again"
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA)
_REMEDIES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,
    sqlite3.SQLITE_IOERR_FSYNC: "whether it was kept is not known: open the directory again, which will tell",
    sqlite3.SQLITE_READONLY: f"{_NOTHING_KEPT}: a session needs a directory that it may write to",
    sqlite3.SQLITE_CANTOPEN: "it needs a directory that may be written to; copy it to one to look into it",
}


def connect(path: Path, *, read_only: bool = False, wal: bool = True, forgiving: bool = False) -> sqlite3.Connection:
    """A connection that returns from a commit when the bytes are on disk. For any thread, one at a time.

    One that is forgiving also opens a file whose description of its tables cannot be understood.
    """
    address = f"{path.absolute().as_uri()}?{_for_reading(path) if read_only else 'mode=rwc'}"
    db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=10, check_same_thread=False)
    try:
        if forgiving:
            db.execute("PRAGMA writable_schema = ON")
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
        run_statements(db, TABLES)
        for name, value in meta.items():
            set_meta(db, name, value)


def run_statements(db: sqlite3.Connection, statements: str) -> None:
    """Execute statements one by one, within the transaction that is open."""
    for statement in statements.split(";\n"):
        db.execute(statement)


def is_blank(db: sqlite3.Connection) -> bool:
    """Whether nothing was ever made here: an attempt that did not get as far leaves at most an empty page."""
    if db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
        return False
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    if pages > 1:
        raise FormatError(f"expected tables, got none in {pages:,} pages")
    return True


def check_schema(db: sqlite3.Connection) -> None:
    """Refuse tables that are not the ones that are made: a flipped bit there makes good rows unreadable."""
    found, expected = schema(db), expected_schema()
    if found != expected:
        names = sorted({str(row[1]) for row in set(found) ^ set(expected)})
        raise FormatError(f"the description of {', '.join(names)} is not as it was written; the batches may be intact")


def schema(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """What SQLite says of its tables: kind, name, table, statement."""
    return sorted(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall(), key=str)


def expected_schema() -> list[tuple[Any, ...]]:
    """The same of tables that have just been made."""
    with closing(sqlite3.connect(":memory:")) as db:
        run_statements(db, TABLES)
        return schema(db)


def mend_schema(db: sqlite3.Connection) -> None:
    """Write the statements of the tables as they should be; where their pages lie is left as it is.

    Files of older versions, and those that have lost the description of a table altogether, are left as they are.
    """
    found = {name: row for row, name in db.execute("SELECT rowid, name FROM sqlite_master").fetchall()}
    wanted = expected_schema()
    if len(found) == len(wanted) and schema(db) != wanted:
        strangers = iter([row for name, row in found.items() if name not in {name for _, name, _, _ in wanted}])
        with transaction(db):
            for kind, name, table, sql in wanted:
                change = "UPDATE sqlite_master SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?"
                place = found[name] if name in found else next(strangers, None)
                db.execute(change, (kind, name, table, sql, place))
    db.execute("PRAGMA writable_schema = RESET")


def check_structure(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a file whose pages contradict each other, unless it is too large to be read at every opening."""
    if path.stat().st_size <= CHECKED_WHOLE:
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise FormatError(" ".join(str(found).split()))


def check_log(path: Path) -> str | None:
    """Refuse a file whose log is damaged; what SQLite is going to drop of it otherwise, in words."""
    report = look_at_log(Path(f"{path}-wal"))
    if report.dropped > 1:
        raise FormatError(
            f"{path}-wal: damaged behind {report.good:,} transactions: the {report.dropped:,} that follow would be "
            f"lost; restore the directory from a copy, or give them up: ripplevec state cut {path.parent}"
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
        try:
            found[name] = json.loads(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(f"{name}: expected JSON, got {shorten(value)}") from error
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
    if not fits(expected, *values):
        raise FormatError(f"a value does not fit its checksum: {shorten(values)}")


def fits(expected: Any, *values: Any, payload: Any = b"") -> bool:
    """Whether a row is as it was written; a flipped bit may also have changed the type of a value."""
    try:
        return checksum(*values, payload=payload) == expected
    except (TypeError, ValueError):
        return False


def bring_up_to_date(path: Path, db: sqlite3.Connection) -> None:
    """Take an older file to the version of this program, step by step; refuse a newer one."""
    version = meta(db).get("version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FormatError(f"version: expected a whole number, got {shorten(version)}")
    if version > VERSION:
        raise FormatError(
            f"{path}: written by a newer Ripplevec (journal {version}; this one reads up to {VERSION}): "
            "upgrade, pip install -U ripplevec"
        )
    while version < VERSION:
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
    except sqlite3.Error as error:
        exactly = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # text that is none has no code
        code = exactly & 0xFF
        if code in _DAMAGE:
            raise _damaged(path, error) from error
        remedy = _REMEDIES.get(exactly) or _REMEDIES.get(code) or f"{_NOTHING_KEPT}; try again"
        raise StateError(f"{path}: could not {what} the journal ({error}); {remedy}") from error
    except OSError as error:
        raise StateError(f"{path}: could not {what} the journal ({error}); try again") from error


def _damaged(path: Path, error: Exception) -> FormatError:
    if "ripplevec state cut" in str(error) or "newer Ripplevec" in str(error):  # said already
        return FormatError(str(error))
    return FormatError(
        f"{path}: the journal is damaged ({error}); restore the directory from a copy, or give up what cannot be read: "
        f"ripplevec state cut {path.parent}"
    )


def sibling_path(path: Path, role: str) -> Path:
    """The name of a file that is to replace another ("new"), or that was replaced ("damaged")."""
    return path.with_name(f"{path.name}.{role}")


def put_in_place(path: Path) -> Path:
    """Let the new file beside a path take its place; where the old one, with its log, is kept."""
    aside = sibling_path(path, "damaged")
    if path.exists():
        os.replace(path, aside)
        flush_directory(path.parent)
    settle(path)
    return aside


def settle(path: Path) -> None:
    """Finish a replacement that was interrupted, or drop one that did not get as far.

    A log that stayed behind must be gone before the new file is there: SQLite would take it for the new one's.
    """
    fresh, log = sibling_path(path, "new"), Path(f"{path}-wal")
    if path.exists():
        fresh.unlink(missing_ok=True)
        return
    if fresh.exists():
        if log.exists():
            os.replace(log, f"{sibling_path(path, 'damaged')}-wal")
        Path(f"{path}-shm").unlink(missing_ok=True)
        flush_directory(path.parent)
        os.replace(fresh, path)
        flush_directory(path.parent)
