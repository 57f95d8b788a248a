from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments import reproduce
from ripplevec.lab.experiments.__main__ import main, parse_filter
from ripplevec.lab.experiments.measurements.base import TrialResult
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.study import load_study


def test_main_writes_record_and_report(study_file: Path, tmp_path: Path) -> None:
    main([str(study_file)])
    assert sorted(file.name for file in (tmp_path / "results").iterdir()) == ["small.json", "small.md"]
    assert "(8 trials)" in (tmp_path / "results" / "small.md").read_text()


def test_main_options_select_trials_and_folder(study_file: Path, tmp_path: Path, calls: list[dict[str, Any]]) -> None:
    arguments = [str(study_file), "--only", "seed=0, dataset=cora", "--results", str(tmp_path / "else")]
    main(arguments)
    assert len(Record.read(tmp_path / "else" / "small.json").trials) == len(calls) == 2
    main([*arguments, "--again"])
    assert len(calls) == 4


def test_main_writes_pictures_next_to_record(study_file: Path, tmp_path: Path) -> None:
    study_file.write_text(study_file.read_text() + "plots: {score: {kind: bars, title: Scores, figure: score}}")
    main([str(study_file)])
    assert (tmp_path / "results" / "figures" / "small-score.svg").exists()


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]], ids=str)
def test_main_passes_jobs_to_runner(study_file: Path, jobs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[int] = []
    monkeypatch.setattr(reproduce, "run_trials", lambda trials, record, jobs, on_trial_done: requested.append(jobs))
    main([str(study_file), *jobs])
    assert requested == [2 if jobs else 1]


def test_main_applies_tuned_settings_from_results(study_file: Path) -> None:
    study_file.write_text(study_file.read_text().replace("times: 2", "method: deepwalk, tuned_by: grid"))
    with pytest.raises(SystemExit, match="run the study grid first"):
        main([str(study_file)])
    record = Record.read(study_file.parents[1] / "results" / "grid.json")
    grid = study_file.with_stem("grid")
    grid.write_text(
        study_file.read_text().replace("tuned_by: grid", "times: 4").replace("fake", "fake, method: deepwalk")
    )
    for _, _, tried in load_study(grid).trials():
        record.add(tried, TrialResult({"validation_micro": 1.0 + tried.get("times", 0)}, {}), 1.0, {})
    main([str(study_file)])
    trials = Record.read(record.path.parent / "small.json").trials.values()
    assert sorted(trial["figures"]["score"] for trial in trials if "method" in trial["configuration"]) == [4, 8, 8, 12]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--only", "seed"], "--only: expected name=value"),
        (["--only", "seed=9"], "only seed: expected one of 0, 1, got '9'"),
    ],
)
def test_main_with_invalid_filter_exits_with_one_line(study_file: Path, arguments: list[str], expected: str) -> None:
    with pytest.raises(SystemExit, match=expected):
        main([str(study_file), *arguments])


def test_main_with_missing_study_exits_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"ripplevec.lab.experiments: .*nowhere.yaml"):
        main([str(tmp_path / "nowhere.yaml")])


def test_only_keeps_commas_inside_a_value() -> None:
    assert parse_filter("setting=ripplevec, by index, seed=0") == {
        "setting": "ripplevec, by index",
        "seed": "0",
    }
