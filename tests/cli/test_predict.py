"""The commands `ripplevec score` and `ripplevec recommend` print the results of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ripplevec.cli.main import ExitCode, app, run
from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded
from ripplevec.durability.session import Session
from ripplevec.durability.session_model import SessionModel
from ripplevec.embedder import Embedder
from ripplevec.errors import FormatError

EDGES = [(number, (number + step) % 30) for number in range(30) for step in (1, 2, 7)] + [("7", 3)]


@pytest.fixture(params=["saved", "session", "shards"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A model of ids 0 … 29 and the text "7", saved, or in a session."""
    target = tmp_path / "model"
    if request.param == "saved":
        model = Embedder(dim=4, threads=1, start_size=8, anchor_growth=0)
        model.partial_fit(EDGES)
        model.save(target)
    else:
        factory = SessionModel if request.param == "session" else Sharded(2, IN_PROCESS)
        with Session(target, model=factory, dim=4, start_size=8, anchor_growth=0) as session:
            session.apply(EDGES)
    return target


@pytest.fixture
def model() -> Embedder:
    model = Embedder(dim=4, threads=1, start_size=8, anchor_growth=0)
    model.partial_fit(EDGES)
    return model


def invoke(*arguments: Any, code: int = 0) -> list[str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout.splitlines()


def test_score_prints_a_line_per_pair(directory: Path, tmp_path: Path, model: Embedder) -> None:
    (tmp_path / "pairs.csv").write_text("src,dst\n0,9\n4,25\n")
    expected = model.score([(0, 9), (4, 25)])
    lines = [line.split(",") for line in invoke("score", directory, tmp_path / "pairs.csv")]
    assert [line[:2] for line in lines] == [["0", "9"], ["4", "25"]]
    assert [float(line[2]) for line in lines] == pytest.approx(expected.tolist(), abs=1e-5)
    parsed = [json.loads(line) for line in invoke("score", directory, tmp_path / "pairs.csv", "--json")]
    assert [line["score"] for line in parsed] == pytest.approx(expected.tolist(), abs=1e-6)


def test_score_takes_columns_and_header_as_options(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("hero2,hero1,weight\n9,0,likes\n25,4,likes\n")
    options = ["--src", "hero1", "--dst", "hero2", "--weight", "none"]
    assert [line.split(",")[:2] for line in invoke("score", directory, path, *options)] == [["0", "9"], ["4", "25"]]
    assert len(invoke("score", directory, path, "--header", *options[4:])) == 2


def test_score_names_the_options_of_the_command(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("user,item,rating\n9,0,likes\n")
    with pytest.raises(
        FormatError, match=r"Name the columns: --src NAME --dst NAME --weight NAME --time NAME\. .*edge: --no-header"
    ):
        invoke("score", directory, tmp_path / "pairs.csv")


def test_recommend_prints_candidates_of_each_vertex(directory: Path, tmp_path: Path, model: Embedder) -> None:
    (tmp_path / "among.txt").write_text("3\n11\n20\n22\n")
    lines = invoke("recommend", directory, "0", "7", "-k", 2, "--among", tmp_path / "among.txt", "--json")
    expected = model.recommend([0, "7"], 2, among=[3, 11, 20, 22])  # "7" exists as text, which has precedence
    for line, vertex, found in zip(map(json.loads, lines), (0, "7"), expected, strict=True):
        assert line["vertex"] == vertex
        assert [name for name, _ in line["recommended"]] == [name for name, _ in found]
    assert invoke("recommend", directory, "0", "-k", 1)[0].split(",")[0] == "0"


def test_recommend_with_neighbors_includes_them(directory: Path, model: Embedder) -> None:
    found = [json.loads(invoke("recommend", directory, "0", "-k", 3, "--neighbors", "--json")[0])["recommended"]]
    assert [name for name, _ in found[0]] == [name for name, _ in model.recommend(0, 3, exclude=None)]


def test_unknown_vertex_ends_with_one_line(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        run(["recommend", str(directory), "nobody"])
    assert done.value.code == ExitCode.BAD_INPUT
    assert "nobody" in capsys.readouterr().err
