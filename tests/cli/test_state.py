from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ripplevec.cli.main import ExitCode, app, run
from ripplevec.durability.session import Session


@pytest.fixture
def place(tmp_path: Path) -> str:
    with Session(tmp_path / "state", dim=3, start_size=6) as session:
        for number in range(8):
            session.apply([(number, number + 1), (number, number + 3)], source="s", position=number)
        session.snapshot()
        for number in range(8, 12):
            session.apply([(number, number + 1)], source="s", position=number)
    return str(tmp_path / "state")


def invoke(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["state", *arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def spoil(place: str, statement: str) -> None:
    with closing(sqlite3.connect(Path(place) / "journal.sqlite")) as db:
        db.execute(statement)
        db.commit()


def test_inspect_for_people_and_programs(place: str) -> None:
    text = invoke("inspect", place)
    assert "not in use" in text
    assert "batches 1 to 12" in text
    assert "snapshot   batch 8" in text
    assert "source     s at 11" in text
    assert "dim = 3" in text
    assert json.loads(invoke("inspect", "--json", place))["journal"]["last"] == 12


def test_verify(place: str) -> None:
    good = json.loads(invoke("verify", "--json", place))
    assert (good["faults"], good["sequence"]) == ([], 12)
    assert good["digest"] in invoke("verify", place)
    spoil(place, "UPDATE batches SET payload = x'00' WHERE sequence = 10")
    assert "batch 10" in invoke("verify", place, code=ExitCode.BAD_INPUT)
    assert json.loads(invoke("verify", "--json", place, code=ExitCode.BAD_INPUT))["faults"]


def test_compact(place: str) -> None:
    digest = json.loads(invoke("verify", "--json", place))["digest"]
    assert "bytes" in invoke("compact", place)
    after = json.loads(invoke("inspect", "--json", place))
    assert after["journal"]["first"] == 9
    assert [snapshot["sequence"] for snapshot in after["snapshots"]] == [12, 8]
    assert json.loads(invoke("compact", "--json", place))["after"]["last"] == 12
    assert json.loads(invoke("verify", "--json", place))["digest"] == digest


def test_cut(place: str, capsys: Any) -> None:
    assert json.loads(invoke("cut", "--json", place)) == {"last": 12, "lost": 0, "notes": []}
    spoil(place, "UPDATE batches SET payload = x'00' WHERE sequence = 10")
    with pytest.raises(SystemExit) as left:
        run(["state", "compact", place])
    assert left.value.code == ExitCode.BAD_INPUT
    assert f"ripplevec state cut {place}" in capsys.readouterr().err
    assert "3 batches given up; the last one is batch 9" in invoke("cut", place)
    with Session(place) as session:
        assert (session.model.sequence, session.position("s")) == (9, 8)


@pytest.mark.parametrize("command", ["verify", "compact", "cut"])
def test_a_directory_in_use_is_left_alone(place: str, command: str, capsys: Any) -> None:
    with Session(place), pytest.raises(SystemExit) as left:
        run(["state", command, place])
    assert left.value.code == ExitCode.BAD_INPUT
    assert "in use by process" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "verify", "compact", "cut"])
def test_nothing_is_made_where_nothing_is(tmp_path: Path, command: str) -> None:
    with pytest.raises(SystemExit) as left:
        run(["state", command, str(tmp_path / "none")])
    assert left.value.code in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    assert list(tmp_path.iterdir()) == []
