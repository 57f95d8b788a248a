from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ripplevec.cli.main import ExitCode, app, run
from ripplevec.cli.reproduce import Bar
from ripplevec.lab.experiments import reproduce
from ripplevec.lab.experiments.forecast import Forecast
from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.reproduce import StudyOutcome

GROWTH = """
title: Growth
datasets: [preferential_attachment]
seeds: [0]
parameters: {kind: growth, dim: 8, arrivals: 50, threads: 1}
settings:
  200 vertices: {vertices: 200}
figures: {arrival_us: An arrival}
plots:
  arrival: {kind: growth, title: An arrival, figures: {arrival_us: an arrival}}
"""
COUNTED = """
title: Counted
datasets: [cora]
seeds: [0, 1, 2]
parameters: {kind: counted, method: ripplevec}
settings: {ripplevec: {method: ripplevec}}
figures: {current_micro@50: Micro-F1}
quick: {seeds: [0]}
"""


@pytest.fixture(autouse=True)
def fetched(tmp_path, monkeypatch):
    """Two studies in a folder of their own, and the data sets that were asked for."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "growth.yaml").write_text(GROWTH)
    (tmp_path / "studies" / "classification.yaml").write_text(COUNTED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "PACKAGE_FOLDER", tmp_path)
    monkeypatch.setitem(MEASUREMENTS, "counted", Measurement(lambda own: None, counted))
    asked = []
    monkeypatch.setattr("ripplevec.lab.datasets.fetch", lambda name, progress: asked.append(name))
    return asked


def counted(own):
    return TrialResult({"current_micro@50": 80.0 + own["seed"]}, {})


def invoke(*arguments):
    done = CliRunner().invoke(app, ["reproduce", "--jobs", "1", *arguments], catch_exceptions=False)
    assert done.exit_code == ExitCode.OK
    return done


def leave(*arguments):
    with pytest.raises(SystemExit) as left:
        run(["reproduce", "--jobs", "1", *arguments])
    return left.value.code


def recorded(*arguments):
    return [study["recorded"] for study in json.loads(invoke("--list", "--json", *arguments).stdout)["studies"]]


def test_a_small_growing_graph_from_its_study_to_the_page():
    done = invoke("growth", "--json")
    told = json.loads(done.stdout)
    (study,) = told["studies"]
    assert (study["name"], study["cells"], study["ran"]) == ("growth", 1, 1)
    assert told["micro_f1_at_50"] == {}
    assert "200 vertices" in Path(study["table"]).read_text()
    assert [Path(path).exists() for path in study["pictures"]] == [True]
    page = Path(told["report"]).read_text()
    assert '<section id="growth">' in page
    assert '<section id="classification">' not in page
    assert done.stderr.startswith("growth: 1 cells, ")
    assert done.stderr.count("\n") == 1


def test_all_studies_and_a_table_for_people(fetched):
    done = invoke()
    assert [line.split(":")[0] for line in done.stderr.splitlines()[:2]] == ["classification", "growth"]
    assert fetched == ["cora"]
    row = next(line for line in done.stdout.splitlines() if "cora" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["cora", "81.0", "–", "–", "–", "–", "–"]
    assert "results/report.html" in done.stderr.replace("\\", "/")


def test_the_best_of_the_others_has_its_name_and_how_far_ours_is_above(tmp_path):
    others = "ripplevec}, LINE: {method: line, seeds: [0]}, spectral: {method: spectral}}"
    (tmp_path / "studies" / "classification.yaml").write_text(COUNTED.replace("ripplevec}}", others))
    lines = [line.split("│")[1:-1] for line in invoke("classification").stdout.splitlines() if line.startswith("│")]
    cells = [" ".join(" ".join(parts).split()) for parts in zip(*lines, strict=True)]
    assert cells == ["cora", "81.0", "80.0 LINE (+0.0)", "–", "–", "81.0 spectral (+0.0)", "–"]  # LINE: of its one seed


def test_what_is_recorded_is_not_run_again(fetched):
    invoke("classification")
    fetched.clear()
    assert recorded() == [3, 0]
    assert json.loads(invoke("classification", "--json").stdout)["studies"][0]["ran"] == 0
    assert fetched == []
    assert json.loads(invoke("classification", "--json", "--again").stdout)["studies"][0]["ran"] == 3


def test_quick_is_a_part_with_results_of_its_own(tmp_path):
    told = json.loads(invoke("--quick", "--json").stdout)
    assert [(study["name"], study["cells"]) for study in told["studies"]] == [("classification", 1)]
    assert Path(told["report"]) == Path("results/quick/report.html")
    invoke("--quick", "--results", "elsewhere")
    assert (tmp_path / "elsewhere" / "classification.json").exists()


def test_the_list_for_people():
    shown = invoke("--list").stdout
    row = next(line for line in shown.splitlines() if "growth" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["growth", "Growth", "1", "0"]
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clasification"], "study: expected one of 'classification', 'growth', got 'clasification'"),
        (["growth", "--quick"], "study: expected one of 'classification', got 'growth'"),
        (["--grid", "huge"], "--grid: expected one of 'tuned', 'full', got 'huge'"),
    ],
)
def test_what_is_not_known_is_one_line(capsys, arguments, message):
    assert leave(*arguments) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == f"ripplevec: {message}\n"


def test_data_that_cannot_be_had_is_missed_before_anything_runs(monkeypatch, capsys):
    from ripplevec.lab.datasets.download import MissingDataError

    def fetch(name, progress):
        raise MissingDataError(f"{name} is not there")

    monkeypatch.setattr("ripplevec.lab.datasets.fetch", fetch)
    invoke("growth")
    capsys.readouterr()
    assert leave() == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == "ripplevec: cora is not there\n"
    assert recorded() == [0, 1]


@pytest.mark.parametrize(
    ("again", "line"), [([], "the same command goes on"), (["--again"], "without --again goes on")]
)
def test_an_interruption_keeps_what_is_done_and_says_how_to_go_on(monkeypatch, capsys, again, line):
    def interrupted(own):
        if own["seed"] == 1:
            raise KeyboardInterrupt
        return counted(own)

    monkeypatch.setitem(MEASUREMENTS, "counted", Measurement(lambda own: None, interrupted))
    assert leave("classification", *again) == ExitCode.INTERRUPTED
    shown = capsys.readouterr().err
    assert line in shown
    assert shown.count("\n") == 1
    assert recorded("classification") == [1]


def test_one_bar_over_all_studies(monkeypatch):
    from rich.console import Console
    from rich.progress import Progress

    monkeypatch.setattr("ripplevec.lab.experiments.forecast.monotonic", lambda: 100.0)
    bars = Progress(disable=True, console=Console(stderr=True, quiet=True))
    bar, left = Bar(bars), Forecast([])
    cells = [("", {"kind": "counted", "dataset": "cora", "seed": seed}) for seed in range(5)]
    left.set_remaining(cells)
    bar.study_started("grid", left)
    (task,) = bars.tasks
    assert (task.description, task.completed, task.total) == ("grid", 0, 5)
    assert task.fields["ends"] is None, "nothing is known yet"
    left.add_finished(cells[0][1], 1.25)
    bar.trial_done("cora, DeepWalk, seed 0", 1.25, left)
    assert (task.completed, task.total) == (1, 5)
    assert task.fields["note"] == "cora, DeepWalk, seed 0: 1.2 s"
    assert task.fields["ends"] == 105
    bar.study_done(StudyOutcome("grid", 1, 1, 1.25, Path("grid.md"), []))
    left.set_remaining(cells + cells[:2])
    bar.study_started("time", left)
    assert (task.description, task.completed, task.total) == ("time", 1, 8)
