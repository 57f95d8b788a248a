from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ripplevec import Embedder
from ripplevec.cli.main import ExitCode, app, run


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    edges = [(vertex, (vertex + step) % 30) for vertex in range(30) for step in (1, 2)]
    Embedder(dim=4).fit([*edges, ("ann", 0), ("ann", 1), ("7", 3)]).save(path)
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, ["nearest", *map(str, arguments)], catch_exceptions=False)


def test_nearest_prints_cosines_and_ids(directory):
    model = Embedder.load(directory)
    lines = invoke(directory, "ann", "-k", 3).stdout.splitlines()
    assert [line.split() for line in lines] == [
        [f"{cosine:.4f}", str(vertex)] for vertex, cosine in model.nearest("ann", 3)
    ]


@pytest.mark.parametrize(("argument", "vertex"), [("8", 8), ("7", "7"), ("ann", "ann")])
def test_nearest_json_prefers_the_text_id(directory, argument, vertex):
    shown = json.loads(invoke(directory, argument, "--json").stdout)
    expected = Embedder.load(directory).nearest(vertex)
    assert shown == {"id": vertex, "nearest": [list(pair) for pair in expected]}


@pytest.mark.parametrize("vertex", ["bob", "99"])
def test_nearest_of_unknown_vertex_prints_one_line(directory, capsys, vertex):
    with pytest.raises(SystemExit) as exit_:
        run(["nearest", str(directory), vertex])
    assert exit_.value.code == ExitCode.BAD_INPUT
    assert f"unknown vertex '{vertex}'" in capsys.readouterr().err


def test_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "ripplevec", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ripplevec ")


def test_nearest_by_attributes_compares_attributes_only(tmp_path):
    tags = {"ann": {"jazz": 1}, "bob": {"chess": 1}, "cleo": {"jazz": 2}}
    Embedder(dim=4).fit([("ann", "bob"), ("bob", "cleo")], attributes=tags).save(tmp_path / "model")
    (line,) = invoke(tmp_path / "model", "ann", "-k", 1, "--by-attributes").stdout.splitlines()
    assert line.split()[1] == "cleo"


def test_nearest_help_says_that_the_text_id_comes_first():
    assert "digits mean the text id" in " ".join(invoke("--help").output.replace("│", " ").split())
