from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec.durability.inspection import inspect_directory, verify_directory
from ripplevec.durability.session import Session
from ripplevec.errors import FormatError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with eight batches, snapshots after the third and the sixth, and a source."""
    with Session(tmp_path / "state", dim=3, start_size=6, anchor_lag=2) as session:
        for number in range(1, 9):
            session.apply([(number, number + 1), (number, number + 3)], source="s", position=[number])
            if number in (3, 6):
                session.snapshot()
    return tmp_path / "state"


def spoil(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / "journal.sqlite")) as db:
        db.execute(statement)
        db.commit()


def files(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file() and "-" not in path.name}


def test_a_directory_is_described(place: Path) -> None:
    found = inspect_directory(place)
    assert found["in_use_by"] is None
    assert (found["parameters"]["dim"], found["anchor_lag"], found["version"]) == (3, 2, 2)
    assert (found["journal"]["first"], found["journal"]["last"]) == (4, 8) or found["journal"]["first"] == 1
    assert [snapshot["sequence"] for snapshot in found["snapshots"]] == [6, 3]
    assert found["sources"] == {"s": [8]}
    with Session(place) as session:
        assert inspect_directory(place)["in_use_by"] == f"process {os.getpid()}"
        session.apply([("a", "b")])
        assert inspect_directory(place)["journal"]["last"] == 9


def test_what_is_no_directory_of_a_session_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FormatError, match="found nothing"):
            inspect_directory(path)
    assert verify_directory(tmp_path)["faults"]
    assert list(tmp_path.iterdir()) == []


def test_a_good_directory_is_good_and_stays_as_it_is(place: Path) -> None:
    before = files(place)
    found = verify_directory(place)
    with Session(place) as session:
        assert found == {
            "directory": str(place),
            "faults": [],
            "sequence": 8,
            "digest": session.model.digest(),
        }
    assert {name: data for name, data in files(place).items() if "lock" not in name} == {
        name: data for name, data in before.items() if "lock" not in name
    }


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE batches SET payload = x'00' WHERE sequence = 7", "batch 7 does not fit its checksum"),
        ("DELETE FROM batches WHERE sequence = 8", "batch 8 is missing"),
        ("UPDATE meta SET value = '5' WHERE name = 'last'", "does not fit its checksum"),
    ],
)
def test_faults_of_the_journal_are_found(place: Path, statement: str, fault: str) -> None:
    spoil(place, statement)
    assert any(fault in found for found in verify_directory(place)["faults"])


def test_faults_of_snapshots_are_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flip(name: str) -> None:
        path = place / "snapshots" / name / "vectors.npy"
        path.write_bytes(path.read_bytes()[:-1] + b"\x7f")

    flip("000000000006")
    found = verify_directory(place)
    assert "000000000006" in found["faults"][0]
    assert found["sequence"] == 8
    flip("000000000003")
    assert len(verify_directory(place)["faults"]) >= 2


def test_a_snapshot_that_the_batches_do_not_give_is_found(place: Path, tmp_path: Path) -> None:
    with Session(tmp_path / "other", dim=3, start_size=6, anchor_lag=2) as session:
        for number in range(6):
            session.apply([(number, number + 2)])
        session.snapshot()
    (place / "snapshots" / "000000000006").rename(tmp_path / "aside")
    (tmp_path / "other" / "snapshots" / "000000000006").rename(place / "snapshots" / "000000000006")
    faults: Any = verify_directory(place)["faults"]
    assert any("not what the batches up to it give" in fault for fault in faults)
