from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Batch
from ripplevec.durability import journal_database
from ripplevec.durability.journal import JournalEntry
from ripplevec.errors import FormatError, StateError

LARGE = JournalEntry(Batch.of(list(range(50_000)), list(range(50_000))))
SMALL = JournalEntry(Batch.of(["a"], ["b"]))


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Files may not grow beyond 300 kB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("small_disk")
def test_a_write_that_fails_leaves_nothing_and_the_next_may_succeed(journal_at: Any) -> None:
    one = journal_at()
    one.append([SMALL])
    with pytest.raises(StateError, match=r"could not write.*nothing of it was kept"):
        one.append([LARGE])
    assert (one.last, one.doubtful) == (1, False)
    one.append([SMALL])
    assert [row.fault for row in one.rows()] == ["", ""]
    one.close()
    assert journal_at().last == 2


def test_a_full_disk_is_named(journal_at: Any) -> None:
    one = journal_at()
    one.append([SMALL])
    (pages,) = one._db.execute("PRAGMA page_count").fetchone()
    one._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to be out of room
    with pytest.raises(StateError, match=r"disk is full.*free some space"):
        one.append([LARGE])
    one.append([SMALL])
    assert one.last == 2


def test_a_failed_flush_leaves_doubt(journal_at: Any) -> None:
    one = journal_at()
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    error = StateError("could not write")
    error.__cause__ = fault
    one._look_again(error)
    assert one.doubtful


def test_older_versions_are_brought_up_to_date(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = journal_at()
    one.append([SMALL])
    one.close()

    def add_color(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE batches ADD COLUMN color TEXT DEFAULT 'blue'")

    def fail(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM batches")
        raise RuntimeError("interrupted")

    monkeypatch.setattr(journal_database, "check_schema", lambda db: None)
    monkeypatch.setattr(journal_database, "VERSION", 4)
    monkeypatch.setattr(journal_database, "MIGRATIONS", {2: add_color, 3: fail})
    with pytest.raises(RuntimeError):
        journal_at()
    monkeypatch.setitem(journal_database.MIGRATIONS, 3, lambda db: None)
    again = journal_at()
    assert again.meta["version"] == 4
    assert again._db.execute("SELECT color FROM batches").fetchall() == [("blue",)]


def test_a_newer_version_is_refused(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as future:
        future.setattr(journal_database, "VERSION", 3)
        journal_at().close()
    with pytest.raises(FormatError, match=r"newer Ripplevec \(journal 3; this one reads up to 2\).*upgrade"):
        journal_at()


def test_a_creation_that_was_interrupted_is_done_again(journal_at: Any, tmp_path: Path) -> None:
    journal_database.connect(tmp_path / "journal.sqlite").close()
    assert journal_at().last == 0


def test_a_log_left_behind_is_not_taken_for_that_of_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    Path(f"{path}-wal").write_bytes(b"old log")
    Path(f"{path}-shm").write_bytes(b"old index")
    journal_database.sibling_path(path, "new").write_bytes(b"new file")
    journal_database.settle(path)
    assert path.read_bytes() == b"new file"
    assert (tmp_path / "journal.sqlite.damaged-wal").read_bytes() == b"old log"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["journal.sqlite", "journal.sqlite.damaged-wal"]
    journal_database.sibling_path(path, "new").write_bytes(b"half a file")
    journal_database.settle(path)
    assert path.read_bytes() == b"new file"
    assert not journal_database.sibling_path(path, "new").exists()
