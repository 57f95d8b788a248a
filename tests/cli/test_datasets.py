from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ripplevec.cli.datasets import Bars
from ripplevec.cli.main import ExitCode, app, run
from ripplevec.lab import datasets


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("RIPPLEVEC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def fetched(monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "fetch", lambda name, progress: asked.append(name))
    return asked


def invoke(*arguments):
    done = CliRunner().invoke(app, ["datasets", *arguments], catch_exceptions=False)
    assert done.exit_code == ExitCode.OK
    return done


@pytest.mark.usefixtures("nowhere")
def test_a_table_for_people(fetched):
    done = invoke()
    row = next(line for line in done.stdout.splitlines() if "wiki" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["wiki", "2,405", "17", "17,981", "11,596", "1,165", "no"]
    assert "--download" in done.stderr
    assert fetched == []


@pytest.mark.usefixtures("nowhere")
def test_a_list_for_programs():
    listed = json.loads(invoke("--json").stdout)["datasets"]
    assert [entry["name"] for entry in listed] == list(datasets.available())
    assert not any(entry["present"] for entry in listed)
    assert all(file["path"] is None for entry in listed for file in entry["files"])


def test_what_is_here_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("ripplevec.lab.datasets.download.is_intact", lambda path, file: file.name.startswith("Cora"))
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    cora, wiki = json.loads(invoke("cora", "wiki", "--json").stdout)["datasets"]
    assert cora["present"]
    assert cora["files"][0]["path"] == str(tmp_path / "Cora_edgelist.txt")
    assert not wiki["present"]


@pytest.mark.usefixtures("nowhere")
def test_download_fetches_those_that_are_named_or_all(fetched):
    invoke("--download", "wiki", "cora")
    assert fetched == ["wiki", "cora"]
    fetched.clear()
    invoke("--download")
    assert fetched == list(datasets.available())


def test_every_file_has_its_bar():
    from rich.progress import Progress

    bars = Progress(disable=True)
    show = Bars(bars)
    for state in [("a", 1, None), ("a", 4, 10), ("b", 2, 2)]:
        show(*state)
    assert [(task.fields["note"], task.completed, task.total) for task in bars.tasks] == [("a", 4, 10), ("b", 2, 2)]


def test_an_unknown_name_is_one_line(capsys):
    with pytest.raises(SystemExit) as left:
        run(["datasets", "corra"])
    assert left.value.code == ExitCode.BAD_INPUT
    assert "name: expected one of 'cora'" in capsys.readouterr().err
