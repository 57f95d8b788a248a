from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.datasets import available
from ripplevec.lab.experiments.forecast import Forecast
from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.record import Record, configuration_key
from ripplevec.lab.experiments.runner import Trial

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
    monkeypatch.setattr("ripplevec.lab.experiments.forecast.monotonic", lambda: 100.0)
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
