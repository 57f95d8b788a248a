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
from ripplevec.errors import StateError

LARGE_ENTRY = JournalEntry(Batch.of(list(range(50_000)), list(range(50_000))))
SMALL_ENTRY = JournalEntry(Batch.of(["a"], ["b"]))


@pytest.fixture
def file_size_limit() -> Iterator[None]:
    """Limit the size of files to 300 kB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("file_size_limit")
def test_translate_errors_failed_write_saves_nothing_and_next_succeeds(journal_at: Any) -> None:
    journal = journal_at()
    journal.append([SMALL_ENTRY])
    with pytest.raises(StateError, match=r"could not write.*Nothing was saved"):
        journal.append([LARGE_ENTRY])
    assert (journal.last, journal.commit_uncertain) == (1, False)
    journal.append([SMALL_ENTRY])
    assert [row.fault for row in journal.read_rows()] == ["", ""]
    journal.close()
    assert journal_at().last == 2


def test_translate_errors_full_disk_names_remedy(journal_at: Any, connections: list[Any]) -> None:
    journal = journal_at()
    journal.append([SMALL_ENTRY])
    (pages,) = connections[-1].execute("PRAGMA page_count").fetchone()
    connections[-1].execute(f"PRAGMA max_page_count = {pages}")  # makes SQLite report a full disk
    with pytest.raises(StateError, match=r"disk is full.*free some space"):
        journal.append([LARGE_ENTRY])
    journal.append([SMALL_ENTRY])
    assert journal.last == 2


def test_journal_failed_fsync_is_uncertain(journal_at: Any, connections: list[Any]) -> None:
    journal = journal_at()
    journal.append([SMALL_ENTRY])
    assert not journal.commit_uncertain
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    connections[-1].error_before_commit = fault
    with pytest.raises(StateError, match=r"could not write.*unknown whether the data was saved.*reopen"):
        journal.append([SMALL_ENTRY])
    assert (journal.last, journal.commit_uncertain) == (1, True)


def test_journal_interrupted_creation_is_repeated(journal_at: Any, tmp_path: Path) -> None:
    journal_database.connect(tmp_path / "journal.sqlite").close()
    assert journal_at().last == 0


def test_finish_replacement_moves_leftover_wal_away(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    Path(f"{path}-wal").write_bytes(b"old log")
    Path(f"{path}-shm").write_bytes(b"old index")
    journal_database.sibling_path(path, "new").write_bytes(b"new file")
    journal_database.finish_replacement(path)
    assert path.read_bytes() == b"new file"
    assert (tmp_path / "journal.sqlite.damaged-wal").read_bytes() == b"old log"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["journal.sqlite", "journal.sqlite.damaged-wal"]
    journal_database.sibling_path(path, "new").write_bytes(b"partial file")
    journal_database.finish_replacement(path)
    assert path.read_bytes() == b"new file"
    assert not journal_database.sibling_path(path, "new").exists()
