from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ripplevec.durability.wal_check import LogReport, look_at_log

TRANSACTIONS = 7


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a process that was killed: seven transactions of several frames each."""
    place = tmp_path / "live.db"
    with closing(sqlite3.connect(place, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE things (bytes BLOB)")
        for _ in range(TRANSACTIONS - 1):
            db.execute("INSERT INTO things VALUES (?)", (bytes(10_000),))
        shutil.copy(place, tmp_path / "copy.db")
        return Path(shutil.copy(f"{place}-wal", tmp_path / "copy.db-wal"))


def rows(log: Path) -> int:
    """What SQLite itself makes of it."""
    with closing(sqlite3.connect(log.with_name("copy.db"))) as db:
        return db.execute("SELECT count(*) FROM things").fetchone()[0]


def flip(log: Path, at: int) -> None:
    data = bytearray(log.read_bytes())
    data[at] ^= 0x10
    log.write_bytes(data)


def test_a_good_log_is_good(log: Path) -> None:
    assert look_at_log(log) == LogReport(TRANSACTIONS, 0, False)
    assert rows(log) == TRANSACTIONS - 1


def test_no_log_and_an_empty_one_hold_nothing(tmp_path: Path) -> None:
    assert look_at_log(tmp_path / "none") == LogReport(0, 0, False)
    (tmp_path / "empty").touch()
    assert look_at_log(tmp_path / "empty") == LogReport(0, 0, False)


@pytest.mark.parametrize("frame", range(3, 18))
def test_what_sqlite_drops_in_silence_is_counted(log: Path, frame: int) -> None:
    flip(log, 32 + frame * (4096 + 24) + 1000)
    report = look_at_log(log)
    assert report.good + report.dropped == TRANSACTIONS
    assert report.dropped >= 1
    assert report.unfinished
    assert rows(log) == report.good - 1


@pytest.mark.parametrize("at", [0, 9, 17, 25, 31])
def test_a_damaged_head_drops_everything(log: Path, at: int) -> None:
    flip(log, at)
    assert look_at_log(log) == LogReport(0, TRANSACTIONS, True)


@pytest.mark.parametrize("cut", [1, 4000, 4121, 9000])
def test_a_torn_end_is_told(log: Path, cut: int) -> None:
    log.write_bytes(log.read_bytes()[:-cut])
    assert look_at_log(log) == LogReport(TRANSACTIONS - 1, 0, True)


def test_what_an_older_log_left_behind_is_no_damage(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "live.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE things (bytes BLOB)")
        for _ in range(20):
            db.execute("INSERT INTO things VALUES (?)", (np.random.default_rng(0).bytes(10_000),))
        db.execute("PRAGMA wal_checkpoint(RESTART)")
        db.execute("INSERT INTO things VALUES (1)")
        assert look_at_log(tmp_path / "live.db-wal") == LogReport(1, 0, False)
