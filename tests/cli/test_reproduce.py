from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ripplevec.cli.main import ExitCode, app, run
from ripplevec.cli.reproduce import TrialBar
from ripplevec.lab.experiments import reproduce
from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.reproduce import StudyOutcome
from ripplevec.lab.experiments.runner import Forecast

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
CLASSIFICATION = """
title: Classification
datasets: [cora]
seeds: [0, 1, 2]
parameters: {kind: fake, method: ripplevec}
settings: {ripplevec: {method: ripplevec}}
figures: {current_micro@50: Micro-F1}
quick: {seeds: [0]}
"""


@pytest.fixture(autouse=True)
def fetched(tmp_path, monkeypatch):
    """Provide two studies in a temporary folder; the names of the data sets that would have been fetched."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "growth.yaml").write_text(GROWTH)
    (tmp_path / "studies" / "classification.yaml").write_text(CLASSIFICATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "PACKAGE_FOLDER", tmp_path)
    monkeypatch.setitem(MEASUREMENTS, "fake", Measurement(lambda parameters: None, fake_measurement))
    names = []
    monkeypatch.setattr("ripplevec.lab.datasets.fetch", lambda name, progress: names.append(name))
    return names


def fake_measurement(parameters):
    return TrialResult({"current_micro@50": 80.0 + parameters["seed"]}, {})


def invoke(*arguments):
    done = CliRunner().invoke(app, ["reproduce", "--jobs", "1", *arguments], catch_exceptions=False)
    assert done.exit_code == ExitCode.OK
    return done


def run_and_get_exit_code(*arguments):
    with pytest.raises(SystemExit) as exit_:
        run(["reproduce", "--jobs", "1", *arguments])
    return exit_.value.code


def count_recorded(*arguments):
    return [study["recorded"] for study in json.loads(invoke("--list", "--json", *arguments).stdout)["studies"]]


def test_reproduce_one_study_writes_table_pictures_and_page():
    done = invoke("growth", "--json")
    summary = json.loads(done.stdout)
    (study,) = summary["studies"]
    assert (study["name"], study["cells"], study["ran"]) == ("growth", 1, 1)
    assert summary["micro_f1_at_50"] == {}
    assert "200 vertices" in Path(study["table"]).read_text()
    assert [Path(path).exists() for path in study["pictures"]] == [True]
    page = Path(summary["report"]).read_text()
    assert '<section id="growth">' in page
    assert '<section id="classification">' not in page
    assert done.stderr.startswith("growth: 1 trials, ")
    assert done.stderr.count("\n") == 1


def test_reproduce_all_studies_prints_table(fetched):
    done = invoke()
    assert [line.split(":")[0] for line in done.stderr.splitlines()[:2]] == ["classification", "growth"]
    assert fetched == ["cora"]
    row = next(line for line in done.stdout.splitlines() if "cora" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["cora", "81.0", "–", "–", "–", "–", "–"]
    assert "results/report.html" in done.stderr.replace("\\", "/")


def test_reproduce_table_shows_best_baselines_and_differences(tmp_path):
    others = "ripplevec}, LINE: {method: line, seeds: [0]}, spectral: {method: spectral}}"
    (tmp_path / "studies" / "classification.yaml").write_text(CLASSIFICATION.replace("ripplevec}}", others))
    lines = [line.split("│")[1:-1] for line in invoke("classification").stdout.splitlines() if line.startswith("│")]
    cells = [" ".join(" ".join(parts).split()) for parts in zip(*lines, strict=True)]
    assert cells == ["cora", "81.0", "80.0 LINE (+0.0)", "–", "–", "81.0 spectral (+0.0)", "–"]  # LINE has one seed


def test_reproduce_skips_recorded_trials_unless_again(fetched):
    invoke("classification")
    fetched.clear()
    assert count_recorded() == [3, 0]
    assert json.loads(invoke("classification", "--json").stdout)["studies"][0]["ran"] == 0
    assert fetched == []
    assert json.loads(invoke("classification", "--json", "--again").stdout)["studies"][0]["ran"] == 3


def test_reproduce_quick_runs_a_part_with_separate_results(tmp_path):
    summary = json.loads(invoke("--quick", "--json").stdout)
    assert [(study["name"], study["cells"]) for study in summary["studies"]] == [("classification", 1)]
    assert Path(summary["report"]) == Path("results/quick/report.html")
    invoke("--quick", "--results", "other")
    assert (tmp_path / "other" / "classification.json").exists()


def test_reproduce_list_prints_studies_and_runs_nothing():
    shown = invoke("--list").stdout
    row = next(line for line in shown.splitlines() if "growth" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["growth", "Growth", "1", "0"]
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clasification"], "study: expected one of 'classification', 'growth', got 'clasification'"),
        (["growth", "--quick"], "study: expected one of 'classification', got 'growth'"),
    ],
)
def test_reproduce_unknown_name_prints_one_line(capsys, arguments, message):
    assert run_and_get_exit_code(*arguments) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == f"ripplevec: {message}\n"


def test_reproduce_missing_data_fails_before_any_trial(monkeypatch, capsys):
    from ripplevec.lab.datasets.download import MissingDataError

    def fetch(name, progress):
        raise MissingDataError(f"{name} is not there")

    monkeypatch.setattr("ripplevec.lab.datasets.fetch", fetch)
    invoke("growth")
    capsys.readouterr()
    assert run_and_get_exit_code() == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == "ripplevec: cora is not there\n"
    assert count_recorded() == [0, 1]


@pytest.mark.parametrize(
    ("again", "line"), [([], "run the same command\n"), (["--again"], "run the same command without --again\n")]
)
def test_reproduce_interrupted_keeps_finished_trials_and_tells_how_to_resume(monkeypatch, capsys, again, line):
    def interrupted(parameters):
        if parameters["seed"] == 1:
            raise KeyboardInterrupt
        return fake_measurement(parameters)

    monkeypatch.setitem(MEASUREMENTS, "fake", Measurement(lambda parameters: None, interrupted))
    assert run_and_get_exit_code("classification", *again) == ExitCode.INTERRUPTED
    shown = capsys.readouterr().err
    assert line in shown
    assert shown.count("\n") == 1
    assert count_recorded("classification") == [1]


def test_trial_bar_counts_trials_of_all_studies(monkeypatch):
    from rich.console import Console
    from rich.progress import Progress

    monkeypatch.setattr("ripplevec.lab.experiments.runner.monotonic", lambda: 100.0)
    bars = Progress(disable=True, console=Console(stderr=True, quiet=True))
    bar, forecast = TrialBar(bars), Forecast([])
    trials = [("", {"kind": "fake", "dataset": "cora", "seed": seed}) for seed in range(5)]
    forecast.set_remaining(trials)
    bar.study_started("grid", forecast)
    (task,) = bars.tasks
    assert (task.description, task.completed, task.total) == ("grid", 0, 5)
    assert task.fields["ends"] is None, "no trial has been timed yet"
    forecast.add_finished(trials[0][1], 1.25)
    bar.trial_done("cora, DeepWalk, seed 0", 1.25, forecast)
    assert (task.completed, task.total) == (1, 5)
    assert task.fields["note"] == "cora, DeepWalk, seed 0: 1.2 s"
    assert task.fields["ends"] == 105
    bar.study_done(StudyOutcome("grid", 1, 1, 1.25, Path("grid.md"), []))
    forecast.set_remaining(trials + trials[:2])
    bar.study_started("time", forecast)
    assert (task.description, task.completed, task.total) == ("time", 1, 8)
