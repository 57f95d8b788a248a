"""Tests of the command `ripplevec replay`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ripplevec.cli import main
from ripplevec.cli.main import ExitCode
from ripplevec.durability.session import Session
from ripplevec.replay import targets


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,time\n" + "".join(f"v{i},v{i + 1},{i}\n" for i in range(30)))
    return str(path)


def run(*arguments: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(main.app, ["replay", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_replay_file_to_directory_creates_session(file: str, tmp_path: Path) -> None:
    _, stderr = run(file, "--to", str(tmp_path / "state"), "--rate", "3000", "--dim", "4")
    assert "30 events in 1 batch," in stderr
    assert "events/s" in stderr
    with Session(tmp_path / "state") as session:
        assert len(session.model) == 31
        assert session.model.dim == 4


def test_replay_json_prints_summary(file: str, tmp_path: Path) -> None:
    stdout, _ = run(file, "--to", str(tmp_path / "state"), "--speed", "1e6", "--limit", "20", "--json")
    summary = json.loads(stdout)
    assert (summary["events"], summary["asked_speed"], summary["interrupted"]) == (20, 1e6, False)
    assert summary["rate"] > 0


def test_replay_built_in_graph_to_directory_creates_session(tmp_path: Path) -> None:
    graph = ("--built-in", "--vertices", "60", "--at-once", "100", "--seed", "5", "--dim", "4")
    _, stderr = run(*graph, "--to", str(tmp_path / "state"), "--speed", "1e6")
    assert "events/s" in stderr
    with Session(tmp_path / "state") as session:
        assert 55 <= len(session.model) <= 60
        assert session.model.seed == 5


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("FILE",),
        ("FILE", "--rate", "1", "--speed", "1"),
        ("FILE", "--built-in"),
        ("--rate", "1"),
        ("FILE", "--rate", "1", "--limit", "0"),
    ],
)
def test_replay_wrong_usage_exits_with_usage_code(arguments: tuple[str, ...], file: str, tmp_path: Path) -> None:
    words = [file if word == "FILE" else word for word in arguments]
    run(*words, "--to", str(tmp_path / "state"), code=ExitCode.USAGE)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("options", [("--rate", "0"), ("--speed", "-1"), ("--rate", "nan")])
def test_replay_impossible_pace_exits_with_bad_input(options: tuple[str, ...], file: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as exit_:
        main.run(["replay", file, "--to", str(tmp_path / "state"), *options])
    assert exit_.value.code == ExitCode.BAD_INPUT


def test_replay_interrupted_prints_summary_and_exits_with_130(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    def send(self: object, batch: object) -> None:
        if sent:
            raise KeyboardInterrupt
        sent.append(batch)

    monkeypatch.setattr(targets.DirectoryTarget, "send", send)
    _, stderr = run(file, "--to", str(tmp_path / "state"), "--rate", "1e6", "--batch-size", "10", code=130)
    assert "10 events in 1 batch," in stderr


def test_replay_with_attributes_sends_them_with_their_vertices(file: str, tmp_path: Path) -> None:
    table = tmp_path / "vertices.csv"
    names = sorted({name for line in Path(file).read_text().splitlines()[1:] for name in line.split(",")[:2]})
    table.write_text("id,color\n" + "".join(f"{name},{'red' if n % 2 else 'blue'}\n" for n, name in enumerate(names)))
    words = ("--to", str(tmp_path / "state"), "--rate", "3000", "--dim", "4", "--attribute-dim", "2")
    run(file, *words, "--batch-size", "10", "--attributes", str(table))
    with Session(tmp_path / "state") as session:
        assert session.model.diagnostics()["attributed"] == len(session.model) == len(names)


def test_replay_without_a_rate_says_what_to_add(file: str) -> None:
    _, stderr = run(file, code=ExitCode.USAGE)
    assert "--rate 100" in stderr
    assert "neither" in stderr
