"""Labels of vertices, for whoever looks at them: kept beside the state, no part of it."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

from ripplevec.batch import Id
from ripplevec.durability.journal_database import connect, sibling_path, transaction
from ripplevec.errors import FormatError, StateError
from ripplevec.service.responses import RejectedRequest
from ripplevec.util.checked_directory import fsync_directory

MAX_LABELS = 2_000_000
_TABLE = "CREATE TABLE IF NOT EXISTS labels (id TEXT PRIMARY KEY, label TEXT NOT NULL) WITHOUT ROWID"
_log = logging.getLogger("ripplevec.service")


class VertexLabels:
    """A label per vertex, on disk and in memory."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db, self._labels = _open(path)
        self.version = 0  # raised with every change, for those who keep a copy

    def __len__(self) -> int:
        return len(self._labels)

    def get(self, vertex: Id) -> str | None:
        """The label of a vertex, if it has one."""
        return self._labels.get(vertex)

    def put(self, pairs: Iterable[tuple[Id, str | None]]) -> int:
        """Set labels, or take them away where they are None; how many there are. On disk when it returns."""
        wanted = dict(pairs)
        gone = [(json.dumps(name),) for name, label in wanted.items() if label is None]
        kept = [(json.dumps(name), label) for name, label in wanted.items() if label is not None]
        with self._lock:
            if len(self._labels) + len(kept) > MAX_LABELS:
                raise RejectedRequest(413, f"expected at most {MAX_LABELS:,} labels in all")
            try:
                with transaction(self._db):
                    self._db.executemany("INSERT OR REPLACE INTO labels VALUES (?, ?)", kept)
                    self._db.executemany("DELETE FROM labels WHERE id = ?", gone)
            except sqlite3.DatabaseError as error:
                raise StateError(f"labels could not be written ({error}); nothing of them was kept") from error
            fresh = self._labels | {name: label for name, label in wanted.items() if label is not None}
            for name, label in wanted.items():
                if label is None:
                    fresh.pop(name, None)
            self._labels = fresh  # replaced, not altered: readers need no lock
            self.version += 1
            return len(fresh)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def _open(path: Path) -> tuple[sqlite3.Connection, dict[Id, str]]:
    """The file of labels and what is in it; a damaged one is put aside, because a service runs without labels too."""
    try:
        return _read(path)
    except (FormatError, sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            raise StateError(f"{path}: labels could not be read ({error}); see that it can be written to") from error
        _put_aside(path, error)
        return _read(path)


def _read(path: Path) -> tuple[sqlite3.Connection, dict[Id, str]]:
    if path.is_symlink():
        raise FormatError("a link")
    new = not path.exists()
    db = connect(path)
    try:
        db.execute(_TABLE)
        if new:
            fsync_directory(path.parent)
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise FormatError(str(found))
        return db, {json.loads(name): _text(label) for name, label in db.execute("SELECT id, label FROM labels")}
    except BaseException:
        db.close()
        raise


def _text(label: object) -> str:
    if not isinstance(label, str):
        raise FormatError(f"expected text, got {type(label).__name__}")
    return label


def _put_aside(path: Path, error: Exception) -> None:
    aside = sibling_path(path, "damaged")
    for end in ("", "-wal"):
        if os.path.lexists(f"{path}{end}"):
            os.replace(f"{path}{end}", f"{aside}{end}")
    Path(f"{path}-shm").unlink(missing_ok=True)
    _log.error("labels damaged file=%s kept=%s error=%s", path, aside.name, error)
