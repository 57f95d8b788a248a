from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ripplevec import Embedder
from ripplevec.cli.main import ExitCode, app, run
from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded
from ripplevec.durability.session import Session
from ripplevec.durability.session_model import ModelFactory, SessionModel
from ripplevec.errors import FormatError


@pytest.fixture(params=[None, 2], ids=["one machine", "shards"])
def model(request: pytest.FixtureRequest) -> ModelFactory:
    return SessionModel if request.param is None else Sharded(request.param, IN_PROCESS)


@pytest.fixture
def directory(tmp_path: Path, model: ModelFactory) -> str:
    with Session(tmp_path / "state", model=model, dim=3, start_size=6) as session:
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


def damage(directory: str, statement: str) -> None:
    with closing(sqlite3.connect(Path(directory) / "journal.sqlite")) as db:
        db.execute(statement)
        db.commit()


def test_inspect_prints_contents_as_text_or_json(directory: str) -> None:
    text = invoke("inspect", directory)
    assert "not in use" in text
    assert "batches 1 to 12" in text
    assert "snapshot   batch 8" in text
    assert "source     s at 11" in text
    assert "dim = 3" in text
    assert json.loads(invoke("inspect", "--json", directory))["journal"]["last"] == 12


def test_verify_damaged_batch_reports_fault(directory: str) -> None:
    result = json.loads(invoke("verify", "--json", directory))
    assert (result["faults"], result["sequence"]) == ([], 12)
    assert result["digest"] in invoke("verify", directory)
    damage(directory, "UPDATE batches SET payload = x'00' WHERE sequence = 10")
    assert "batch 10" in invoke("verify", directory, code=ExitCode.BAD_INPUT)
    assert json.loads(invoke("verify", "--json", directory, code=ExitCode.BAD_INPUT))["faults"]


def test_compact_drops_old_batches_and_keeps_digest(directory: str) -> None:
    digest = json.loads(invoke("verify", "--json", directory))["digest"]
    assert "bytes" in invoke("compact", directory)
    after = json.loads(invoke("inspect", "--json", directory))
    assert after["journal"]["first"] == 9
    assert [snapshot["sequence"] for snapshot in after["snapshots"]] == [12, 8]
    assert json.loads(invoke("compact", "--json", directory))["after"]["last"] == 12
    assert json.loads(invoke("verify", "--json", directory))["digest"] == digest


def test_cut_discards_batches_after_damage(directory: str, model: ModelFactory, capsys: Any) -> None:
    assert json.loads(invoke("cut", "--json", directory)) == {"last": 12, "lost": 0, "notes": []}
    damage(directory, "UPDATE batches SET payload = x'00' WHERE sequence = 10")
    with pytest.raises(SystemExit) as exit_:
        run(["state", "compact", directory])
    assert exit_.value.code == ExitCode.BAD_INPUT
    assert f"ripplevec state cut {directory}" in capsys.readouterr().err
    assert "discarded 3 batches; the last one is batch 9" in invoke("cut", directory)
    with Session(directory, model=model) as session:
        assert (session.model.sequence, session.position("s")) == (9, 8)


@pytest.mark.parametrize("command", ["verify", "compact", "cut"])
def test_command_on_directory_in_use_exits_with_bad_input(
    directory: str, model: ModelFactory, command: str, capsys: Any
) -> None:
    with Session(directory, model=model), pytest.raises(SystemExit) as exit_:
        run(["state", command, directory])
    assert exit_.value.code == ExitCode.BAD_INPUT
    assert "in use by process" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "verify", "compact", "cut"])
def test_command_on_missing_directory_creates_nothing(tmp_path: Path, command: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(["state", command, str(tmp_path / "none")])
    assert exit_.value.code in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    assert list(tmp_path.iterdir()) == []


def test_verify_of_a_saved_model_says_so_and_leaves_no_lock(tmp_path: Path) -> None:
    Embedder(dim=2).save(tmp_path / "model")
    with pytest.raises(FormatError, match=r"expected a session directory .*, got a saved model"):
        invoke("verify", str(tmp_path / "model"))
    assert not (tmp_path / "model/lock").exists()


def test_verify_of_another_directory_prints_one_fault_and_no_batch(tmp_path: Path) -> None:
    text = invoke("verify", str(tmp_path), code=ExitCode.BAD_INPUT)
    assert text.endswith(f"{tmp_path}: 1 fault, its state cannot be restored\n")
