from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ripplevec.errors import InvalidValueError, RipplevecError
from ripplevec.lab.datasets import available
from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.record import Record, configuration_key
from ripplevec.lab.experiments.runner import (
    Forecast,
    Trial,
    _iterate_results,
    _one_blas_thread,
    _process_pool,
    find_pending,
    run_trials,
)
from ripplevec.lab.experiments.study import Study, load_study

Calls = list[dict[str, Any]]

REAL = {"kind": "validation", "dataset": "nested_communities", "method": "spectral", "dim": 2, "start": 0.1}
"""A trial that a worker process can run too, which does not see what a test patches."""


@pytest.fixture
def study(study_file: Path) -> Study:
    return load_study(study_file)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record.read(tmp_path / "small.json")


def test_run_trials_runs_every_trial_once(study: Study, record: Record, calls: Calls) -> None:
    run_trials(find_pending(study, record), record)
    assert calls == [configuration for _, _, configuration in study.trials()]
    again = Record.read(record.path)
    assert again.trials == record.trials
    assert find_pending(study, again) == []


def test_find_pending_with_filter_returns_matching_trials(study: Study, record: Record, calls: Calls) -> None:
    some = find_pending(study, record, {"seed": "1", "setting": "double"})
    assert [name for name, _ in some] == ["cora, double, seed 1", "blog, double, seed 1"]
    run_trials(some, record)
    assert {(call["seed"], call["times"]) for call in calls} == {(1, 2)}
    assert len(find_pending(study, record)) == 6


def test_find_pending_with_again_includes_recorded_trials(study: Study, record: Record, calls: Calls) -> None:
    run_trials(find_pending(study, record), record)
    run_trials(find_pending(study, record, {"dataset": "cora"}, again=True), record)
    assert (len(calls), len(record.trials)) == (12, 8)


def test_run_trials_describes_environment_once_before_first_trial(
    study: Study, record: Record, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[int] = []
    monkeypatch.setattr(
        "ripplevec.lab.experiments.runner.describe_environment", lambda: requested.append(len(calls)) or {}
    )
    run_trials(find_pending(study, record), record)
    run_trials(find_pending(study, record), record)
    assert requested == [0], "and never if there is nothing to run"


def test_run_trials_calls_back_after_recording(study: Study, record: Record, calls: Calls) -> None:
    reported: list[tuple[str, int]] = []
    run_trials(
        find_pending(study, record),
        record,
        on_trial_done=lambda trial, _: reported.append((trial.name, len(Record.read(record.path).trials))),
    )
    assert reported[:2] == [("cora, plain, seed 0", 1), ("blog, plain, seed 0", 2)]
    assert len(reported) == 8


def test_run_trials_reports_recorded_seconds(study: Study, record: Record) -> None:
    reported: list[float] = []
    run_trials(find_pending(study, record), record, on_trial_done=lambda _, seconds: reported.append(seconds))
    assert reported == [trial["seconds"] for trial in record.trials.values()]


def test_run_trials_keeps_results_before_error(
    study: Study, record: Record, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = MEASUREMENTS["fake"]

    def fails_on_blog(configuration: dict[str, Any]) -> TrialResult:
        if configuration["dataset"] == "blog":
            raise RuntimeError("power cut")
        return fake.run(configuration)

    monkeypatch.setitem(MEASUREMENTS, "fake", Measurement(fake.check, fails_on_blog))
    with pytest.raises(RuntimeError, match="power cut"):
        run_trials(find_pending(study, record), record)
    assert len(find_pending(study, Record.read(record.path))) == 7


def test_find_pending_merges_equal_settings(study_file: Path, record: Record) -> None:
    study_file.write_text(study_file.read_text().replace("{times: 2}", "{}"))
    assert len(find_pending(load_study(study_file), record)) == 4


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"seed": "7"}, "only seed: expected one of 0, 1, got '7'"),
        ({"seed": "0", "setting": "treble"}, "only setting: expected one of plain, double, got 'treble'"),
        ({"sed": "0"}, "only: expected names among kind, start, dataset, seed, setting, times, got 'sed'"),
        ({"setting": "plain", "times": "2"}, "only: expected a combination of values that some trial has, got"),
    ],
)
def test_find_pending_without_match_lists_available_values(
    study: Study, record: Record, only: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=f"^{message}"):
        find_pending(study, record, only)


def test_run_trials_with_untuned_setting_runs_nothing(record: Record, calls: Calls) -> None:
    plain = {"kind": "fake", "dataset": "cora", "seed": 0}
    tuned = plain | {"method": "deepwalk", "tuned_by": "grid"}
    with pytest.raises(InvalidValueError, match=r"settings of deepwalk on cora \(run the study grid first"):
        run_trials([Trial("one", plain), Trial("two", tuned)], record)
    assert not calls


def test_run_trials_runs_exclusive_trials_last_in_this_process(
    record: Record, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: list[tuple[int, int]] = []

    def timed(configuration: dict[str, Any]) -> TrialResult:
        clock.append((os.getpid(), len(record.trials)))
        return TrialResult({}, {})

    monkeypatch.setitem(MEASUREMENTS, "clock", Measurement(lambda configuration: None, timed, exclusive=True))
    configurations = [
        {"kind": kind, "dataset": "cora", "seed": seed} for kind, seed in (("clock", 0), ("clock", 1), ("fake", 0))
    ]
    run_trials([Trial(str(configuration), configuration) for configuration in configurations], record, jobs=2)
    assert [call["kind"] for call in calls] == ["fake"]
    assert clock == [(os.getpid(), 1), (os.getpid(), 2)]


def test_run_trials_in_parallel_gives_same_metrics(record: Record, tmp_path: Path) -> None:
    trials = [Trial(f"seed {seed}", {**REAL, "seed": seed}) for seed in (0, 1)]
    reported: list[str] = []
    run_trials(trials, record, jobs=2, on_trial_done=lambda trial, _: reported.append(trial.name))
    alone = Record.read(tmp_path / "alone.json")
    run_trials(trials, alone)
    assert sorted(reported) == ["seed 0", "seed 1"]
    assert record.trials.keys() == alone.trials.keys()
    for key, cell in alone.trials.items():
        assert record.trials[key]["parameters"] == cell["parameters"]
        for name in ("validation_micro", "validation_macro"):
            assert record.trials[key]["figures"][name] == pytest.approx(cell["figures"][name])


def test_run_trials_keeps_parallel_results_of_failed_run(record: Record) -> None:
    trials = [
        Trial("fails at once", {**REAL, "dataset": "nowhere", "seed": 0}),
        Trial("takes longer", {**REAL, "seed": 0}),
    ]
    with pytest.raises(InvalidValueError, match=r"expected one of .*got 'nowhere'"):
        run_trials(trials, record, jobs=2)
    assert [cell["configuration"]["dataset"] for cell in Record.read(record.path).trials.values()] == [
        "nested_communities"
    ]


def test_run_trials_with_killed_worker_suggests_fewer_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.experiments.runner._time_trial", os._exit)  # what it is given is its exit status
    with pytest.raises(RipplevecError, match=r"again with fewer than --jobs 2"):
        list(_iterate_results([Trial("one", 1), Trial("two", 1)], jobs=2))  # type: ignore[list-item]


@pytest.mark.parametrize("here", [None, "2"])
def test_worker_processes_use_one_blas_thread(here: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if here:
        monkeypatch.setenv("OMP_NUM_THREADS", here)
    with _process_pool(1) as pool:
        with _one_blas_thread():
            requested = pool.submit(os.getenv, "OMP_NUM_THREADS")
        assert requested.result() == "1"
    assert os.environ.get("OMP_NUM_THREADS") == here


EDGES = {name: info.edges for name, info in available().items()}


def configuration(**parameters: Any) -> dict[str, Any]:
    return {"kind": "shares", "method": "line", "dataset": "cora", "seed": 0} | parameters


def make_record(*trials: tuple[dict[str, Any], float]) -> Record:
    entries = {configuration_key(key): {"configuration": key, "seconds": seconds} for key, seconds in trials}
    return Record(Path("record.json"), entries)


def expected_seconds(record: Record, trial: dict[str, Any], jobs: int = 1) -> float | None:
    forecast = Forecast([record], jobs)
    forecast.set_remaining([Trial("", trial)])
    return forecast.remaining_seconds()


def test_forecast_uses_most_similar_recorded_trials() -> None:
    record = make_record(
        (configuration(window=5, seed=1), 10.0),
        (configuration(window=5, seed=2), 20.0),
        (configuration(window=7), 60.0),
        (configuration(dataset="wiki", method="netmf"), 1.0),
        (configuration(dataset="wiki", method="netmf", kind="validation"), 100.0),
    )
    assert expected_seconds(record, configuration(window=5, seed=9)) == 15, "the same but for the seed"
    assert expected_seconds(record, configuration(window=8)) == 30, "the same kind, method and data"
    per_edge = 90 / (3 * EDGES["cora"])
    assert expected_seconds(record, configuration(dataset="blog")) == pytest.approx(per_edge * EDGES["blog"]), (
        "by edges elsewhere"
    )
    by_kind = 91 / (3 * EDGES["cora"] + EDGES["wiki"])
    assert expected_seconds(record, configuration(method="paper")) == pytest.approx(by_kind * EDGES["cora"])
    of_all = 191 / (3 * EDGES["cora"] + 2 * EDGES["wiki"])
    assert expected_seconds(record, configuration(kind="links")) == pytest.approx(of_all * EDGES["cora"])


def test_forecast_uses_vertices_or_mean_size_for_generated_data() -> None:
    record = make_record((configuration(kind="growth", dataset="preferential_attachment", vertices=1000), 2.0))
    assert (
        expected_seconds(record, configuration(kind="growth", dataset="preferential_attachment", vertices=50_000))
        == 100
    )
    mean = sum(EDGES.values()) / len(EDGES)
    assert expected_seconds(
        make_record((configuration(), 1.0)), configuration(dataset="nested_communities")
    ) == pytest.approx(mean / EDGES["cora"])


def test_forecast_divides_time_by_jobs_except_exclusive_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        MEASUREMENTS, "clock", Measurement(lambda own: None, lambda own: TrialResult({}, {}), exclusive=True)
    )
    record = make_record((configuration(), 8.0), (configuration(kind="clock"), 30.0))
    assert expected_seconds(record, configuration(seed=3), jobs=4) == 2
    assert expected_seconds(record, configuration(seed=3, kind="clock"), jobs=4) == 30


def test_forecast_learns_from_finished_trials() -> None:
    forecast = Forecast([])
    forecast.set_remaining([Trial("", configuration(seed=seed)) for seed in range(4)])
    assert (forecast.remaining_trials(), forecast.remaining_seconds(), forecast.expected_end()) == (4, None, None)
    forecast.add_finished(configuration(seed=0), 10.0)
    assert (forecast.remaining_trials(), forecast.remaining_seconds()) == (3, 30)
    forecast.add_finished(configuration(seed=1), 20.0)
    assert (forecast.remaining_trials(), forecast.remaining_seconds()) == (2, 30)


def test_forecast_expected_end_uses_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.experiments.runner.monotonic", lambda: 100.0)
    forecast = Forecast([make_record((configuration(), 7.0))])
    forecast.set_remaining([Trial("", configuration(seed=1))])
    assert forecast.expected_end() == 107


def test_forecast_set_remaining_replaces_and_counts_duplicates() -> None:
    forecast = Forecast([make_record((configuration(), 5.0))])
    forecast.set_remaining([Trial("", configuration())])
    forecast.set_remaining([Trial("", configuration()), Trial("", configuration()), Trial("", configuration(seed=1))])
    assert (forecast.remaining_trials(), forecast.remaining_seconds()) == (3, 15)
    forecast.add_finished(configuration(), 5.0)
    assert (forecast.remaining_trials(), forecast.remaining_seconds()) == (2, 10)
