from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments import reproduce
from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.reproduce import (
    Plan,
    RunOptions,
    StudyOutcome,
    required_datasets,
    run_studies,
    run_study,
)
from ripplevec.lab.experiments.runner import Forecast, Trial

GRID = """
title: Settings
datasets: [cora]
seeds: [0]
parameters: {kind: counted, start: 0.5}
grids:
  DeepWalk: {method: deepwalk, window: [5, 10]}
figures: {validation_micro: A score}
"""
CLASSIFICATION = """
title: Scores
datasets: [cora]
seeds: [0, 1]
parameters: {kind: counted, dim: 90}
settings:
  ripplevec: {method: ripplevec}
  rule paper: {method: paper}
  DeepWalk: {method: deepwalk, window: 7}
  NetMF: {method: netmf, window: 6}
  DeepWalk, tuned: {method: deepwalk, tuned_by: grid}
  neighbor mean: {method: neighbor_mean}
figures: {current_micro@50: Micro-F1}
plots:
  micro: {kind: shares, figure: current_micro, title: Micro-F1}
quick: {datasets: [cora], seeds: [0], settings: [ripplevec]}
"""
TIME = """
title: Seconds
datasets: [cora]
seeds: [0]
parameters: {kind: counted}
figures: {ripplevec_times_faster: Times faster}
"""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the configurations that are run, in order; a wide window and a high dimension score well."""
    seen: list[dict[str, Any]] = []

    def run(own: dict[str, Any]) -> TrialResult:
        seen.append(own)
        score = float(own.get("window", 20) + own.get("dim", 0) / 10 + own["seed"])
        return TrialResult({"validation_micro": score, "current_micro@50": score, "ripplevec_times_faster": 4.0}, {})

    monkeypatch.setitem(MEASUREMENTS, "counted", Measurement(lambda own: None, run))
    return seen


@pytest.fixture
def plan(tmp_path: Path, ran: list[dict[str, Any]]) -> Plan:
    folder = tmp_path / "studies"
    folder.mkdir()
    files = {"grid": GRID, "classification": CLASSIFICATION, "time": TIME, "extra": TIME}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return Plan(tmp_path / "results", folder=folder)


class RecordingObserver:
    """A run observer that records its calls."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []
        self.trials: list[tuple[str, int]] = []
        self.ended: list[StudyOutcome] = []

    def study_started(self, study: str, forecast: Forecast) -> None:
        self.started.append((study, forecast.remaining_trials()))

    def trial_done(self, trial: str, seconds: float, forecast: Forecast) -> None:
        self.trials.append((trial, forecast.remaining_trials()))

    def study_done(self, outcome: StudyOutcome) -> None:
        self.ended.append(outcome)


def run_all(plan: Plan, options: RunOptions | None = None) -> RecordingObserver:
    observer = RecordingObserver()
    assert run_studies(plan, list(plan.studies().values()), options or RunOptions(), observer) == observer.ended
    return observer


def tuned(plan: Plan) -> list[dict[str, Any]]:
    return [own for setting, _, own in plan.studies()["classification"].trials() if setting == "DeepWalk, tuned"]


def test_studies_folder_is_in_package_or_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "src" / "ripplevec"
    source.mkdir(parents=True)
    monkeypatch.setattr(reproduce, "PACKAGE_FOLDER", source)
    assert reproduce.studies_folder() == tmp_path / "studies"
    (source / "studies").mkdir()
    assert reproduce.studies_folder() == source / "studies"


def test_plan_reads_all_studies_in_working_order(tmp_path: Path) -> None:
    studies = Plan(tmp_path).studies()
    names = list(studies)
    assert names[0] == "grid"
    assert names[-2:] == ["time", "growth"]
    assert {*reproduce.FIRST_STUDIES, *reproduce.LAST_STUDIES} < set(names)
    used = {own.get("tuned_by") for own in studies["classification"].settings.values()} - {None}
    assert used == {"grid"}


def test_plan_quick_studies_have_two_data_sets_and_no_tuned_settings(tmp_path: Path) -> None:
    studies = Plan(tmp_path, quick=True).studies()
    assert "grid" not in studies
    for study in studies.values():
        assert (len(study.datasets), len(study.seeds)) == (2, 1)
        assert not any("tuned_by" in own for own in study.settings.values())


def test_run_studies_runs_in_order_with_tuned_settings(plan: Plan, ran: list[dict[str, Any]]) -> None:
    observer = run_all(plan)
    assert observer.started == [("grid", 16), ("classification", 14), ("extra", 2), ("time", 1)]
    assert [outcome.ran for outcome in observer.ended] == [2, 12, 1, 1]
    assert len(ran) == 16
    assert observer.trials[:2] == [("cora, DeepWalk: window 5, seed 0", 15), ("cora, DeepWalk: window 10, seed 0", 14)]
    assert [left for _, left in observer.trials] == list(range(15, -1, -1))
    assert [own["window"] for own in tuned(plan)] == [10, 10]
    outcome = observer.ended[1]
    assert outcome.table.read_text().startswith("# Scores")
    assert [path.name for path in outcome.pictures] == ["classification-micro.svg"]
    assert all(path.exists() for path in outcome.pictures)


def test_run_studies_repeats_recorded_trials_only_with_again(plan: Plan, ran: list[dict[str, Any]]) -> None:
    run_all(plan)
    again = run_all(plan)
    assert [(outcome.trials, outcome.ran) for outcome in again.ended] == [(2, 0), (12, 0), (1, 0), (1, 0)]
    assert len(ran) == 16
    run_all(plan, RunOptions(again=True))
    assert len(ran) == 32


def test_run_studies_interrupted_keeps_finished_trials(plan: Plan, ran: list[dict[str, Any]]) -> None:
    class InterruptingObserver(RecordingObserver):
        def trial_done(self, trial: str, seconds: float, forecast: Forecast) -> None:
            if len(ran) == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_studies(plan, list(plan.studies().values()), RunOptions(), InterruptingObserver())
    assert [outcome.ran for outcome in run_all(plan).ended] == [0, 9, 1, 1]
    assert len(ran) == 16


def test_required_datasets_lists_published_ones_only() -> None:
    trials = [Trial("", {"dataset": name}) for name in ("wiki", "preferential_attachment", "cora", "wiki")]
    assert required_datasets(trials) == ["cora", "wiki"]


def test_run_study_without_callback_prints_line_per_trial(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    record = run_study(plan.studies()["grid"], plan.results, RunOptions(only={"window": "5"}))
    assert len(record.trials) == 1
    assert capsys.readouterr().err.splitlines() == ["grid: cora, DeepWalk: window 5, seed 0: 0.0 s"]


def test_write_html_report_contains_all_studies(plan: Plan) -> None:
    run_all(plan)
    path = reproduce.write_html_report(list(plan.studies().values()), plan.results)
    text = path.read_text()
    assert all(f'<section id="{name}">' in text for name in plan.studies())
