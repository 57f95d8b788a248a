"""Labels of vertices, for whoever looks at them: kept beside the state, no part of it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

from ripplet.errors import StateError
from ripplet.events import Id
from ripplet.service.answers import Refused
from ripplet.state.database import connect, transaction

MOST_LABELS = 2_000_000


class Labels:
    """A label per vertex, on disk and in memory."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = connect(path)
        self._db.execute("CREATE TABLE IF NOT EXISTS labels (id TEXT PRIMARY KEY, label TEXT NOT NULL) WITHOUT ROWID")
        found = self._db.execute("SELECT id, label FROM labels")
        self._labels: dict[Id, str] = {json.loads(name): label for name, label in found}
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
            if len(self._labels) + len(kept) > MOST_LABELS:
                raise Refused(413, f"expected at most {MOST_LABELS:,} labels in all")
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
