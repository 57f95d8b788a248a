from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments import reproduce
from ripplevec.lab.experiments.forecast import Forecast
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
    """The configurations that were run, in order; a wide window and a high dimension score well."""
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
    grid_full = GRID.replace("method: deepwalk", "method: deepwalk, dim: [10, 200]")
    files = {"grid": GRID, "grid_full": grid_full, "classification": CLASSIFICATION, "time": TIME, "extra": TIME}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return Plan(tmp_path / "results", folder=folder)


class Noted:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.left: list[tuple[str, int]] = []
        self.cells: list[tuple[str, int]] = []
        self.ended: list[StudyOutcome] = []

    def begins(self, study: str, left: Forecast) -> None:
        self.left.append((study, left.trials()))

    def did(self, cell: str, seconds: float, left: Forecast) -> None:
        self.cells.append((cell, left.trials()))

    def ends(self, outcome: StudyOutcome) -> None:
        self.ended.append(outcome)


def everything(plan: Plan, choice: RunOptions | None = None) -> Noted:
    noted = Noted()
    assert run_studies(plan, list(plan.studies().values()), choice or RunOptions(), noted) == noted.ended
    return noted


def with_grid(plan: Plan, grid: str) -> Plan:
    return Plan(plan.results, grid=grid, folder=plan.folder)


def tuned(plan: Plan) -> list[dict[str, Any]]:
    return [own for setting, _, own in plan.studies()["classification"].trials() if setting == "DeepWalk, tuned"]


def test_the_studies_lie_in_the_package_or_beside_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "src" / "ripplevec"
    source.mkdir(parents=True)
    monkeypatch.setattr(reproduce, "PACKAGE_FOLDER", source)
    assert reproduce.studies_folder() == tmp_path / "studies"
    (source / "studies").mkdir()
    assert reproduce.studies_folder() == source / "studies"


@pytest.mark.parametrize(("grid", "first"), [("tuned", "grid"), ("full", "grid_full")])
def test_the_real_studies_can_all_be_read_and_come_in_an_order_that_works(
    tmp_path: Path, grid: str, first: str
) -> None:
    studies = Plan(tmp_path, grid=grid).studies()
    names = list(studies)
    assert names[0] == first
    assert names[-2:] == ["time", "growth"]
    assert {*reproduce.FIRST, *reproduce.LAST} < set(names)
    used = {own.get("tuned_by") for own in studies["classification"].settings.values()} - {None}
    assert used == {first}


def test_the_full_grid_is_the_one_of_the_paper(tmp_path: Path) -> None:
    settings = Plan(tmp_path, grid="full").studies()["grid_full"].settings.values()
    of = {name: [own for own in settings if own["method"] == name] for name in ("deepwalk", "node2vec", "netmf")}
    assert [len(found) for found in of.values()] == [20 * 4 * 4, 4 * 4, 20 * 4]
    assert {own["dim"] for own in of["deepwalk"]} == set(range(10, 201, 10))
    assert {own["dim"] for own in of["node2vec"]} == {90}


def test_what_is_quick_is_a_part_of_some_studies_without_tuned_settings(tmp_path: Path) -> None:
    studies = Plan(tmp_path, quick=True).studies()
    assert "grid" not in studies
    for study in studies.values():
        assert (len(study.datasets), len(study.seeds)) == (2, 1)
        assert not any("tuned_by" in own for own in study.settings.values())


def test_studies_run_in_order_with_the_settings_chosen_before(plan: Plan, ran: list[dict[str, Any]]) -> None:
    noted = everything(plan)
    assert noted.left == [("grid", 16), ("classification", 14), ("extra", 2), ("time", 1)]
    assert [outcome.ran for outcome in noted.ended] == [2, 12, 1, 1]
    assert len(ran) == 16
    assert noted.cells[:2] == [("cora, DeepWalk: window 5, seed 0", 15), ("cora, DeepWalk: window 10, seed 0", 14)]
    assert [left for _, left in noted.cells] == list(range(15, -1, -1))
    assert [own["window"] for own in tuned(plan)] == [10, 10]
    outcome = noted.ended[1]
    assert outcome.table.read_text().startswith("# Scores")
    assert [path.name for path in outcome.pictures] == ["classification-micro.svg"]
    assert all(path.exists() for path in outcome.pictures)


def test_what_is_recorded_is_run_again_only_if_asked(plan: Plan, ran: list[dict[str, Any]]) -> None:
    everything(plan)
    again = everything(plan)
    assert [(outcome.cells, outcome.ran) for outcome in again.ended] == [(2, 0), (12, 0), (1, 0), (1, 0)]
    assert len(ran) == 16
    everything(plan, RunOptions(again=True))
    assert len(ran) == 32


def test_an_interruption_keeps_what_is_done(plan: Plan, ran: list[dict[str, Any]]) -> None:
    class Impatient(Noted):
        def did(self, cell: str, seconds: float, left: Forecast) -> None:
            if len(ran) == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_studies(plan, list(plan.studies().values()), RunOptions(), Impatient())
    assert [outcome.ran for outcome in everything(plan).ended] == [0, 9, 1, 1]
    assert len(ran) == 16


def test_the_full_grid_chooses_the_dimension_too_and_both_choices_stay_recorded(plan: Plan) -> None:
    full = with_grid(plan, "full")
    everything(plan)
    noted = everything(full)
    assert [(outcome.name, outcome.ran) for outcome in noted.ended[:2]] == [("grid_full", 4), ("classification", 2)]
    assert [(own["dim"], own["window"]) for own in tuned(full)] == [(200, 10), (200, 10)]
    assert [own["dim"] for own in tuned(plan)] == [90, 90]
    assert not plan.pending_trials(plan.studies().values())


def test_published_data_is_needed_and_generated_is_not() -> None:
    cells = [("", {"dataset": name}) for name in ("wiki", "preferential_attachment", "cora", "wiki")]
    assert required_datasets(cells) == ["cora", "wiki"]


def test_a_line_for_every_cell_where_nobody_else_is_told(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    record = run_study(plan.studies()["grid"], plan.results, RunOptions(only={"window": "5"}))
    assert len(record.trials) == 1
    assert capsys.readouterr().err.splitlines() == ["grid: cora, DeepWalk: window 5, seed 0: 0.0 s"]


def test_one_page_of_all_that_is_given(plan: Plan) -> None:
    everything(plan)
    path = reproduce.write_html_report(list(plan.studies().values()), plan.results)
    text = path.read_text()
    assert all(f'<section id="{name}">' in text for name in plan.studies())
