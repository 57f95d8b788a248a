from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.durability.journal_integrity import LastBatchMarker, WalReport, scan_wal, update_checksum

TRANSACTIONS = 7


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    """Log as a killed process leaves it: seven transactions of several frames each."""
    database = tmp_path / "live.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE things (bytes BLOB)")
        for _ in range(TRANSACTIONS - 1):
            db.execute("INSERT INTO things VALUES (?)", (bytes(10_000),))
        shutil.copy(database, tmp_path / "copy.db")
        return Path(shutil.copy(f"{database}-wal", tmp_path / "copy.db-wal"))


def count_rows(wal: Path) -> int:
    """Return how many rows SQLite itself reads with this log."""
    with closing(sqlite3.connect(wal.with_name("copy.db"))) as db:
        return db.execute("SELECT count(*) FROM things").fetchone()[0]


def flip_bit(wal: Path, at: int) -> None:
    data = bytearray(wal.read_bytes())
    data[at] ^= 0x10
    wal.write_bytes(data)


def test_scan_wal_intact_log_counts_all_transactions(wal: Path) -> None:
    assert scan_wal(wal) == WalReport(TRANSACTIONS, 0, False)
    assert count_rows(wal) == TRANSACTIONS - 1


def test_scan_wal_missing_or_empty_log_counts_nothing(tmp_path: Path) -> None:
    assert scan_wal(tmp_path / "none") == WalReport(0, 0, False)
    (tmp_path / "empty").touch()
    assert scan_wal(tmp_path / "empty") == WalReport(0, 0, False)


@pytest.mark.parametrize("frame", range(3, 18))
def test_scan_wal_damaged_frame_counts_dropped_transactions(wal: Path, frame: int) -> None:
    flip_bit(wal, 32 + frame * (4096 + 24) + 1000)
    report = scan_wal(wal)
    assert report.valid + report.dropped == TRANSACTIONS
    assert report.dropped >= 1
    assert report.incomplete
    assert count_rows(wal) == report.valid - 1


@pytest.mark.parametrize("at", [0, 9, 17, 25, 31])
def test_scan_wal_damaged_header_drops_everything(wal: Path, at: int) -> None:
    flip_bit(wal, at)
    assert scan_wal(wal) == WalReport(0, TRANSACTIONS, True)


@pytest.mark.parametrize("cut", [1, 4000, 4121, 9000])
def test_scan_wal_truncated_log_is_incomplete(wal: Path, cut: int) -> None:
    wal.write_bytes(wal.read_bytes()[:-cut])
    assert scan_wal(wal) == WalReport(TRANSACTIONS - 1, 0, True)


def test_scan_wal_frames_of_earlier_log_are_ignored(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "live.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE things (bytes BLOB)")
        for _ in range(20):
            db.execute("INSERT INTO things VALUES (?)", (np.random.default_rng(0).bytes(10_000),))
        db.execute("PRAGMA wal_checkpoint(RESTART)")
        db.execute("INSERT INTO things VALUES (1)")
        assert scan_wal(tmp_path / "live.db-wal") == WalReport(1, 0, False)


@given(words=st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), max_size=20), start=st.integers(0, 2**32 - 1))
def test_update_checksum_matches_file_format(words: list[tuple[int, int]], start: int) -> None:
    sums = np.array([start, 7], np.uint32)
    update_checksum(np.array(words, np.uint32).reshape(-1), sums)
    first, second = start, 7
    for even, odd in words:
        first = (first + even + second) % 2**32
        second = (second + odd + first) % 2**32
    assert sums.tolist() == [first, second]


def test_marker_write_then_read_returns_last_number(tmp_path: Path) -> None:
    marker = LastBatchMarker(tmp_path / "last")
    assert marker.read() == 0
    for number in (1, 70_000, 12):
        marker.write(number, durably=number == 12)
        assert LastBatchMarker(tmp_path / "last").read() == number
    marker.close()
    marker.close()


@pytest.mark.parametrize("data", [b"", b"\0" * 24, b"x" * 24, b"\1" + bytes(7)])
def test_marker_damaged_file_reads_zero(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "last").write_bytes(data)
    assert LastBatchMarker(tmp_path / "last").read() == 0


def test_marker_symlink_is_neither_read_nor_written(tmp_path: Path) -> None:
    other = LastBatchMarker(tmp_path / "other")
    other.write(5)
    other.close()
    (tmp_path / "last").symlink_to(tmp_path / "other")
    marker = LastBatchMarker(tmp_path / "last")
    marker.write(9)
    assert (marker.read(), other.read()) == (0, 5)
    with pytest.raises(OSError, match="symbolic links"):
        marker.write(9, durably=True)
