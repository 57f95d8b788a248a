from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.datasets import available
from ripplevec.lab.experiments.forecast import Forecast
from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.record import Record, configuration_key

EDGES = {name: info.edges for name, info in available().items()}


def cell(**own: Any) -> dict[str, Any]:
    return {"kind": "shares", "method": "line", "dataset": "cora", "seed": 0} | own


def recorded(*cells: tuple[dict[str, Any], float]) -> Record:
    entries = {configuration_key(own): {"configuration": own, "seconds": seconds} for own, seconds in cells}
    return Record(Path("record.json"), entries)


def expected(record: Record, own: dict[str, Any], jobs: int = 1) -> float | None:
    forecast = Forecast([record], jobs)
    forecast.plan([("", own)])
    return forecast.seconds()


def test_the_cells_most_like_a_cell_tell_what_it_takes() -> None:
    record = recorded(
        (cell(window=5, seed=1), 10.0),
        (cell(window=5, seed=2), 20.0),
        (cell(window=7), 60.0),
        (cell(dataset="wiki", method="netmf"), 1.0),
        (cell(dataset="wiki", method="netmf", kind="validation"), 100.0),
    )
    assert expected(record, cell(window=5, seed=9)) == 15, "the same but for the seed"
    assert expected(record, cell(window=8)) == 30, "the same kind, method and data"
    per_edge = 90 / (3 * EDGES["cora"])
    assert expected(record, cell(dataset="blog")) == pytest.approx(per_edge * EDGES["blog"]), "by edges elsewhere"
    by_kind = 91 / (3 * EDGES["cora"] + EDGES["wiki"])
    assert expected(record, cell(method="paper")) == pytest.approx(by_kind * EDGES["cora"])
    of_all = 191 / (3 * EDGES["cora"] + 2 * EDGES["wiki"])
    assert expected(record, cell(kind="links")) == pytest.approx(of_all * EDGES["cora"])


def test_generated_data_is_as_large_as_it_is_asked_for_or_like_the_published() -> None:
    record = recorded((cell(kind="growth", dataset="preferential_attachment", vertices=1000), 2.0))
    assert expected(record, cell(kind="growth", dataset="preferential_attachment", vertices=50_000)) == 100
    mean = sum(EDGES.values()) / len(EDGES)
    assert expected(recorded((cell(), 1.0)), cell(dataset="nested_communities")) == pytest.approx(mean / EDGES["cora"])


def test_cells_run_side_by_side_unless_they_measure_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEASUREMENTS, "clock", Measurement(lambda own: None, lambda own: TrialResult({}, {}), exclusive=True))
    record = recorded((cell(), 8.0), (cell(kind="clock"), 30.0))
    assert expected(record, cell(seed=3), jobs=4) == 2
    assert expected(record, cell(seed=3, kind="clock"), jobs=4) == 30


def test_every_cell_that_is_done_is_learned_from() -> None:
    forecast = Forecast([])
    forecast.plan([("", cell(seed=seed)) for seed in range(4)])
    assert (forecast.trials(), forecast.seconds(), forecast.ends()) == (4, None, None)
    forecast.done(cell(seed=0), 10.0)
    assert (forecast.trials(), forecast.seconds()) == (3, 30)
    forecast.done(cell(seed=1), 20.0)
    assert (forecast.trials(), forecast.seconds()) == (2, 30)


def test_the_end_is_on_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.experiments.forecast.monotonic", lambda: 100.0)
    forecast = Forecast([recorded((cell(), 7.0))])
    forecast.plan([("", cell(seed=1))])
    assert forecast.ends() == 107


def test_what_is_left_can_be_said_anew_and_two_studies_may_have_the_same_cell() -> None:
    forecast = Forecast([recorded((cell(), 5.0))])
    forecast.plan([("", cell())])
    forecast.plan([("", cell()), ("", cell()), ("", cell(seed=1))])
    assert (forecast.trials(), forecast.seconds()) == (3, 15)
    forecast.done(cell(), 5.0)
    assert (forecast.trials(), forecast.seconds()) == (2, 10)
