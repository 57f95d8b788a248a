"""Labels of vertices for display: stored in SQLite next to the state, but not part of it."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

from ripplevec.batch import Id
from ripplevec.durability.journal_database import BEGIN, connect, sibling_path
from ripplevec.errors import FormatError, StateError
from ripplevec.service.responses import RejectedRequest
from ripplevec.util.checked_directory import fsync_directory

MAX_LABELS = 2_000_000
_TABLE = "CREATE TABLE IF NOT EXISTS labels (id TEXT PRIMARY KEY, label TEXT NOT NULL) WITHOUT ROWID"
_log = logging.getLogger("ripplevec.service")


class VertexLabels:
    """At most one label per vertex, on disk and in memory."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db, self._labels = _open(path)
        self.version = 0  # incremented with every change, so that copies can be refreshed

    def __len__(self) -> int:
        return len(self._labels)

    def get(self, vertex: Id) -> str | None:
        """Return the label of a vertex, or None."""
        return self._labels.get(vertex)

    def put(self, pairs: Iterable[tuple[Id, str | None]]) -> int:
        """Set labels, or remove those that are None; return the number of labels. Durable when it returns."""
        updates = dict(pairs)
        removed = [(json.dumps(vertex),) for vertex, label in updates.items() if label is None]
        added = [(json.dumps(vertex), label) for vertex, label in updates.items() if label is not None]
        with self._lock:
            if len(self._labels) + len(added) > MAX_LABELS:
                raise RejectedRequest(413, f"expected at most {MAX_LABELS:,} labels in total")
            try:
                with self._db:
                    self._db.execute(BEGIN)
                    self._db.executemany("INSERT OR REPLACE INTO labels VALUES (?, ?)", added)
                    self._db.executemany("DELETE FROM labels WHERE id = ?", removed)
            except sqlite3.DatabaseError as error:
                raise StateError(f"labels could not be written ({error}); none of them was stored") from error
            labels = self._labels | {vertex: label for vertex, label in updates.items() if label is not None}
            for vertex, label in updates.items():
                if label is None:
                    labels.pop(vertex, None)
            self._labels = labels  # replaced, not modified: readers need no lock
            self.version += 1
            return len(labels)

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def _open(path: Path) -> tuple[sqlite3.Connection, dict[Id, str]]:
    """Open the database and read all labels; move a damaged file aside, as a service can run without labels."""
    try:
        return _read(path)
    except (FormatError, sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            raise StateError(f"{path}: labels could not be read ({error}). Make the file writable") from error
        _move_aside(path, error)
        return _read(path)


def _read(path: Path) -> tuple[sqlite3.Connection, dict[Id, str]]:
    """Open or create the database and return it with all labels; raise if it is damaged."""
    if path.is_symlink():
        raise FormatError("a symbolic link")
    is_new = not path.exists()
    db = connect(path)
    try:
        db.execute(_TABLE)
        if is_new:
            fsync_directory(path.parent)
        (check_result,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if check_result != "ok":
            raise FormatError(str(check_result))
        rows = db.execute("SELECT id, label FROM labels")
        return db, {json.loads(vertex): _require_text(label) for vertex, label in rows}
    except BaseException:
        db.close()
        raise


def _require_text(label: object) -> str:
    if not isinstance(label, str):
        raise FormatError(f"label: expected text, got {type(label).__name__}")
    return label


def _move_aside(path: Path, error: Exception) -> None:
    damaged = sibling_path(path, "damaged")
    for suffix in ("", "-wal"):
        if os.path.lexists(f"{path}{suffix}"):
            os.replace(f"{path}{suffix}", f"{damaged}{suffix}")
    Path(f"{path}-shm").unlink(missing_ok=True)
    _log.error("labels damaged file=%s moved_to=%s error=%s", path, damaged.name, error)
