from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec.durability.maintenance import inspect_directory, truncate_state, verify_directory
from ripplevec.durability.session import Session
from ripplevec.errors import FormatError


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """State directory with eight batches from one source, and snapshots after the third and the sixth."""
    with Session(tmp_path / "state", dim=3, start_size=6) as session:
        for number in range(1, 9):
            session.apply([(number, number + 1), (number, number + 3)], source="s", position=[number])
            if number in (3, 6):
                session.snapshot()
    return tmp_path / "state"


def run_sql(state: Path, statement: str) -> None:
    with closing(sqlite3.connect(state / "journal.sqlite")) as db:
        db.execute(statement)
        db.commit()


def read_files(state: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file() and "-" not in path.name}


def test_inspect_directory_reports_content_while_in_use(state: Path) -> None:
    description = inspect_directory(state)
    assert description["in_use_by"] is None
    assert (description["parameters"]["dim"], description["version"]) == (3, 2)
    assert (description["journal"]["first"], description["journal"]["last"]) == (4, 8) or description["journal"][
        "first"
    ] == 1
    assert [snapshot["sequence"] for snapshot in description["snapshots"]] == [6, 3]
    assert description["sources"] == {"s": [8]}
    with Session(state) as session:
        assert inspect_directory(state)["in_use_by"] == f"process {os.getpid()}"
        session.apply([("a", "b")])
        assert inspect_directory(state)["journal"]["last"] == 9


def test_inspect_directory_without_journal_raises_format_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FormatError, match="got nothing"):
            inspect_directory(path)
    assert verify_directory(tmp_path)["faults"]
    assert list(tmp_path.iterdir()) == []


def test_verify_directory_intact_state_has_no_faults_and_is_unchanged(state: Path) -> None:
    before = read_files(state)
    result = verify_directory(state)
    with Session(state) as session:
        assert result == {
            "directory": str(state),
            "faults": [],
            "sequence": 8,
            "digest": session.model.digest(),
        }
    assert {name: data for name, data in read_files(state).items() if "lock" not in name} == {
        name: data for name, data in before.items() if "lock" not in name
    }


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE batches SET payload = x'00' WHERE sequence = 7", "batch 7 does not match its checksum"),
        ("DELETE FROM batches WHERE sequence = 8", "batch 8 is missing"),
        ("UPDATE meta SET value = '5' WHERE name = 'last'", "does not match its checksum"),
    ],
)
def test_verify_directory_damaged_journal_reports_fault(state: Path, statement: str, fault: str) -> None:
    run_sql(state, statement)
    assert any(fault in reported for reported in verify_directory(state)["faults"])


def test_verify_directory_damaged_snapshot_reports_fault(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damage(name: str) -> None:
        path = state / "snapshots" / name / "vectors.npy"
        path.write_bytes(path.read_bytes()[:-1] + b"\x7f")

    damage("000000000006")
    result = verify_directory(state)
    assert "000000000006" in result["faults"][0]
    assert result["sequence"] == 8
    damage("000000000003")
    assert len(verify_directory(state)["faults"]) >= 2


def test_verify_directory_foreign_snapshot_reports_fault(state: Path, tmp_path: Path) -> None:
    with Session(tmp_path / "other", dim=3, start_size=6) as session:
        for number in range(6):
            session.apply([(number, number + 2)])
        session.snapshot()
    (state / "snapshots" / "000000000006").rename(tmp_path / "aside")
    (tmp_path / "other" / "snapshots" / "000000000006").rename(state / "snapshots" / "000000000006")
    faults: Any = verify_directory(state)["faults"]
    assert any("differs from the state after replaying the batches" in fault for fault in faults)


@pytest.fixture
def keyed_state(tmp_path: Path) -> Path:
    """State directory with eight batches and a snapshot after the sixth."""
    with Session(tmp_path / "state", dim=3, start_size=6) as session:
        for number in range(1, 9):
            session.apply([(number, number + 1), (number, number + 3)], key=f"k{number}")
            if number == 6:
                session.snapshot()
    return tmp_path / "state"


@pytest.mark.parametrize("empty", [False, True])
def test_truncate_state_missing_journal_discards_everything(keyed_state: Path, empty: bool) -> None:
    (keyed_state / "journal.sqlite").unlink()
    if empty:
        (keyed_state / "journal.sqlite").touch()
    before = sorted(path.name for path in keyed_state.rglob("*"))
    with pytest.raises(FormatError, match=r"expected a journal next to 1 snapshots.*discard everything.*state cut"):
        Session(keyed_state, dim=3)
    assert sorted(path.name for path in keyed_state.rglob("*")) == before
    result = truncate_state(keyed_state)
    assert (result.last, result.lost) == (0, 8)
    assert (keyed_state / "snapshots.damaged" / "000000000006" / "manifest.json").exists()
    with Session(keyed_state, dim=3) as session:
        assert len(session.model) == 0


def test_truncate_state_intact_directory_is_unchanged(keyed_state: Path) -> None:
    assert truncate_state(keyed_state) == (8, 0, [])


def test_truncate_state_missing_wal_discards_missing_batches(keyed_state: Path, tmp_path: Path) -> None:
    with Session(keyed_state) as session:
        for _ in range(2):
            session.apply([("x", "y")])
        shutil.copytree(keyed_state, tmp_path / "copy")
    (tmp_path / "copy" / "journal.sqlite-wal").unlink()
    with pytest.raises(FormatError, match="the last 2 are missing"):
        Session(tmp_path / "copy")
    result = truncate_state(tmp_path / "copy")
    assert (result.last, result.lost) == (8, 2)
    with Session(tmp_path / "copy") as session:
        assert session.model.sequence == 8


def test_truncate_state_inconsistent_pages_rewrites_journal(keyed_state: Path) -> None:
    path = keyed_state / "journal.sqlite"
    data = bytearray(path.read_bytes())
    data[32:40] = bytes(7) + b"\1"  # claims one free page, but the free list is empty
    path.write_bytes(data)
    with pytest.raises(FormatError, match="ripplevec state cut"):
        Session(keyed_state)
    result = truncate_state(keyed_state)
    assert (result.last, result.lost) == (8, 0)
    with Session(keyed_state) as session:
        assert (session.model.sequence, session.find_key("k3")) == (8, 3)
