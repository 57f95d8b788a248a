from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ripplevec.durability.session import Session
from ripplevec.durability.truncation import truncate_state
from ripplevec.errors import FormatError


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """State directory with eight batches and a snapshot after the sixth."""
    with Session(tmp_path / "state", dim=3, start_size=6, anchor_lag=2) as session:
        for number in range(1, 9):
            session.apply([(number, number + 1), (number, number + 3)], key=f"k{number}")
            if number == 6:
                session.snapshot()
    return tmp_path / "state"


@pytest.mark.parametrize("empty", [False, True])
def test_truncate_state_missing_journal_discards_everything(state: Path, empty: bool) -> None:
    (state / "journal.sqlite").unlink()
    if empty:
        (state / "journal.sqlite").touch()
    before = sorted(path.name for path in state.rglob("*"))
    with pytest.raises(FormatError, match=r"expected a journal next to 1 snapshots.*discard everything.*state cut"):
        Session(state, dim=3)
    assert sorted(path.name for path in state.rglob("*")) == before
    result = truncate_state(state)
    assert (result.last, result.lost) == (0, 8)
    assert (state / "snapshots.damaged" / "000000000006" / "manifest.json").exists()
    with Session(state, dim=3) as session:
        assert len(session.model) == 0


def test_truncate_state_intact_directory_is_unchanged(state: Path) -> None:
    assert truncate_state(state) == (8, 0, [])


def test_truncate_state_missing_wal_discards_missing_batches(state: Path, tmp_path: Path) -> None:
    with Session(state) as session:
        for _ in range(2):
            session.apply([("x", "y")])
        shutil.copytree(state, tmp_path / "copy")
    (tmp_path / "copy" / "journal.sqlite-wal").unlink()
    with pytest.raises(FormatError, match="the last 2 are missing"):
        Session(tmp_path / "copy")
    result = truncate_state(tmp_path / "copy")
    assert (result.last, result.lost) == (8, 2)
    with Session(tmp_path / "copy") as session:
        assert session.model.sequence == 8


def test_truncate_state_inconsistent_pages_rewrites_journal(state: Path) -> None:
    path = state / "journal.sqlite"
    data = bytearray(path.read_bytes())
    data[32:40] = bytes(7) + b"\1"  # claims one free page, but the free list is empty
    path.write_bytes(data)
    with pytest.raises(FormatError, match="ripplevec state cut"):
        Session(state)
    result = truncate_state(state)
    assert (result.last, result.lost) == (8, 0)
    with Session(state) as session:
        assert (session.model.sequence, session.find_key("k3")) == (8, 3)
