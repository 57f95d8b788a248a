from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ripplevec.cli.datasets import DownloadBars
from ripplevec.cli.main import ExitCode, app, run
from ripplevec.lab import datasets


@pytest.fixture
def _no_local_data(tmp_path, monkeypatch):
    monkeypatch.delenv("RIPPLEVEC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def fetched(monkeypatch):
    names = []
    monkeypatch.setattr(datasets, "fetch", lambda name, progress: names.append(name))
    return names


def invoke(*arguments):
    done = CliRunner().invoke(app, ["datasets", *arguments], catch_exceptions=False)
    assert done.exit_code == ExitCode.OK
    return done


@pytest.mark.usefixtures("_no_local_data")
def test_datasets_prints_table_and_download_hint(fetched):
    done = invoke()
    row = next(line for line in done.stdout.splitlines() if "wiki" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["wiki", "2,405", "17", "17,981", "11,596", "1,165", "no"]
    assert "--download" in done.stderr
    assert fetched == []


@pytest.mark.usefixtures("_no_local_data")
def test_datasets_json_lists_all_data_sets():
    listed = json.loads(invoke("--json").stdout)["datasets"]
    assert [entry["name"] for entry in listed] == list(datasets.available())
    assert not any(entry["present"] for entry in listed)
    assert all(file["path"] is None for entry in listed for file in entry["files"])


def test_datasets_json_tells_which_files_are_present(tmp_path, monkeypatch):
    monkeypatch.setattr("ripplevec.lab.datasets.download.is_intact", lambda path, file: file.name.startswith("Cora"))
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    cora, wiki = json.loads(invoke("cora", "wiki", "--json").stdout)["datasets"]
    assert cora["present"]
    assert cora["files"][0]["path"] == str(tmp_path / "Cora_edgelist.txt")
    assert not wiki["present"]


@pytest.mark.usefixtures("_no_local_data")
def test_download_fetches_named_data_sets_or_all(fetched):
    invoke("--download", "wiki", "cora")
    assert fetched == ["wiki", "cora"]
    fetched.clear()
    invoke("--download")
    assert fetched == list(datasets.available())


def test_download_bars_show_one_bar_per_file():
    from rich.progress import Progress

    bars = Progress(disable=True)
    show = DownloadBars(bars)
    for progress in [("a", 1, None), ("a", 4, 10), ("b", 2, 2)]:
        show(*progress)
    assert [(task.fields["note"], task.completed, task.total) for task in bars.tasks] == [("a", 4, 10), ("b", 2, 2)]


def test_datasets_unknown_name_prints_one_line(capsys):
    with pytest.raises(SystemExit) as exit_:
        run(["datasets", "corra"])
    assert exit_.value.code == ExitCode.BAD_INPUT
    assert "name: expected one of 'cora'" in capsys.readouterr().err
