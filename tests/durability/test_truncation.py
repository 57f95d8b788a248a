from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ripplevec.durability.session import Session
from ripplevec.durability.truncation import truncate_state
from ripplevec.errors import FormatError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with eight batches and a snapshot after the sixth."""
    with Session(tmp_path / "state", dim=3, start_size=6, anchor_lag=2) as session:
        for number in range(1, 9):
            session.apply([(number, number + 1), (number, number + 3)], key=f"k{number}")
            if number == 6:
                session.snapshot()
    return tmp_path / "state"


@pytest.mark.parametrize("empty", [False, True])
def test_session_without_its_journal_is_refused_until_everything_is_given_up(place: Path, empty: bool) -> None:
    (place / "journal.sqlite").unlink()
    if empty:
        (place / "journal.sqlite").touch()
    before = sorted(path.name for path in place.rglob("*"))
    with pytest.raises(FormatError, match=r"expected a journal beside 1 snapshots.*give up everything.*state cut"):
        Session(place, dim=3)
    assert sorted(path.name for path in place.rglob("*")) == before
    found = truncate_state(place)
    assert (found.last, found.lost) == (0, 8)
    assert (place / "snapshots.damaged" / "000000000006" / "manifest.json").exists()
    with Session(place, dim=3) as session:
        assert len(session.model) == 0


def test_cut_of_a_good_directory_changes_nothing(place: Path) -> None:
    assert truncate_state(place) == (8, 0, [])


def test_cut_gives_up_batches_that_are_known_to_be_missing(place: Path, tmp_path: Path) -> None:
    with Session(place) as session:
        for _ in range(2):
            session.apply([("x", "y")])
        shutil.copytree(place, tmp_path / "copy")
    (tmp_path / "copy" / "journal.sqlite-wal").unlink()
    with pytest.raises(FormatError, match="the last 2 are missing"):
        Session(tmp_path / "copy")
    found = truncate_state(tmp_path / "copy")
    assert (found.last, found.lost) == (8, 2)
    with Session(tmp_path / "copy") as session:
        assert session.model.sequence == 8


def test_cut_rewrites_a_file_whose_pages_contradict_each_other(place: Path) -> None:
    path = place / "journal.sqlite"
    data = bytearray(path.read_bytes())
    data[32:40] = bytes(7) + b"\1"  # a page is free, and it is not said which
    path.write_bytes(data)
    with pytest.raises(FormatError, match="ripplevec state cut"):
        Session(place)
    found = truncate_state(place)
    assert (found.last, found.lost) == (8, 0)
    with Session(place) as session:
        assert (session.model.sequence, session.find_key("k3")) == (8, 3)
