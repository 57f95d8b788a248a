"""SQLite file of the journal: connections, transactions, integrity checks, error messages and file replacement."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ripplevec.durability.journal_integrity import scan_wal
from ripplevec.errors import FormatError, StateError
from ripplevec.util.checked_directory import fsync_directory

STRUCTURE_CHECK_LIMIT = 256 << 20
"""Size in bytes up to which opening checks a file's page structure; `ripplevec state verify` checks larger ones."""

CHECKPOINT_PAGES = 4_000
"""Pages of 4 KiB in the write-ahead log before SQLite moves them into the main file."""

BEGIN = "BEGIN IMMEDIATE"
"""Statement that starts a transaction: it acquires the write lock at once."""

_NOTHING_SAVED = "Nothing was saved"
_DISK_FULL = f"{_NOTHING_SAVED}; free some space and try again."
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA)
_REMEDIES = {
    sqlite3.SQLITE_FULL: _DISK_FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _DISK_FULL,
    sqlite3.SQLITE_IOERR_FSYNC: "It is unknown whether the data was saved; reopen the directory to find out.",
    sqlite3.SQLITE_READONLY: f"{_NOTHING_SAVED}; a session needs a writable directory.",
    sqlite3.SQLITE_CANTOPEN: "SQLite needs a writable directory; copy the state to one to inspect it.",
}


def connect(
    path: Path, *, read_only: bool = False, wal: bool = True, tolerate_damage: bool = False
) -> sqlite3.Connection:
    """Open a connection whose commits return once the bytes are on disk; threads may share it, one at a time.

    A transaction starts with `BEGIN` within a `with` statement over the connection, which commits it at the end of the
    block, or rolls it back if the block raises.

    With `tolerate_damage`, a file opens even if its table descriptions cannot be parsed.
    """
    address = f"{path.absolute().as_uri()}?{_read_only_mode(path) if read_only else 'mode=rwc'}"
    db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=10, check_same_thread=False)
    try:
        if tolerate_damage:
            db.execute("PRAGMA writable_schema = ON")
        if not read_only:
            db.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            db.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * 4096}")
    except BaseException:
        db.close()
        raise
    return db


def _read_only_mode(path: Path) -> str:
    """Return the URI options that open a file without writing to it.

    SQLite creates a shared-memory file even for reading, unless the database is declared immutable. That is safe where
    the directory is not writable and there is no log.
    """
    immutable = not os.access(path.parent, os.W_OK) and not wal_path(path).exists()
    return "mode=ro&immutable=1" if immutable else "mode=ro"


def wal_path(path: Path) -> Path:
    """Return the path of the write-ahead log that belongs to a database file."""
    return Path(f"{path}-wal")


# ---------------------------------------------------------------------- integrity


def check_structure(path: Path, db: sqlite3.Connection) -> None:
    """Raise if the pages of a file are inconsistent; files above `STRUCTURE_CHECK_LIMIT` are not checked."""
    if path.stat().st_size <= STRUCTURE_CHECK_LIMIT:
        (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise FormatError(" ".join(str(result).split()))


def check_wal(path: Path) -> str | None:
    """Raise if the log of a file is damaged before its end; return a note if SQLite will drop its last transaction."""
    report = scan_wal(wal_path(path))
    if report.dropped > 1:
        raise FormatError(
            f"{wal_path(path)}: damaged after {report.valid:,} transactions: the {report.dropped:,} that follow would "
            f"be lost. Restore the directory from a backup, or discard them: ripplevec state cut {path.parent}"
        )
    if report.incomplete:
        return f"{path}: dropped the last write, which was incomplete or damaged"
    return None


@contextmanager
def translate_errors(path: Path, action: str) -> Iterator[None]:
    """Translate errors of SQLite and the file system into errors that say what the user can do.

    `action` is a verb for the message, such as "read": the journal could not be read.
    """
    try:
        yield
    except (FormatError, UnicodeDecodeError) as error:
        raise _damage_error(path, error) from error
    except sqlite3.Error as error:
        extended_code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # invalid UTF-8 text has no code
        code = extended_code & 0xFF
        if code in _DAMAGE_CODES:
            raise _damage_error(path, error) from error
        remedy = _REMEDIES.get(extended_code) or _REMEDIES.get(code) or f"{_NOTHING_SAVED}; try again."
        raise StateError(f"{path}: could not {action} the journal ({error}). {remedy}") from error
    except OSError as error:
        raise StateError(f"{path}: could not {action} the journal ({error}). Try again.") from error


def _damage_error(path: Path, error: Exception) -> FormatError:
    if "ripplevec state cut" in str(error) or "newer Ripplevec" in str(error):  # the message already names the remedy
        return FormatError(str(error))
    return FormatError(
        f"{path}: the journal is damaged ({error}). Restore the directory from a backup, or discard the unreadable "
        f"part: ripplevec state cut {path.parent}"
    )


# ---------------------------------------------------------------------- file replacement


def sibling_path(path: Path, role: str) -> Path:
    """Return the name of a file's replacement (role "new") or of the file that was replaced (role "damaged")."""
    return path.with_name(f"{path.name}.{role}")


def install_replacement(path: Path) -> Path:
    """Put the "new" sibling of a file in its place; return where the old file was moved, together with its log."""
    damaged = sibling_path(path, "damaged")
    if path.exists():
        os.replace(path, damaged)
        fsync_directory(path.parent)
    finish_replacement(path)
    return damaged


def finish_replacement(path: Path) -> None:
    """Finish a replacement that was interrupted, or remove the new file if the old one is still in place.

    A leftover log is moved away before the new file gets its name: otherwise SQLite would apply it to the new file.
    """
    new, wal = sibling_path(path, "new"), wal_path(path)
    if path.exists():
        new.unlink(missing_ok=True)
        return
    if new.exists():
        if wal.exists():
            os.replace(wal, wal_path(sibling_path(path, "damaged")))
        Path(f"{path}-shm").unlink(missing_ok=True)
        fsync_directory(path.parent)
        os.replace(new, path)
        fsync_directory(path.parent)
