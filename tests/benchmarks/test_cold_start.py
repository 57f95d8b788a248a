from __future__ import annotations

import os


def test_cold_start_example_reports_its_steps_in_order(benchmark, monkeypatch):
    monkeypatch.setenv("RIPPLEVEC_COMPILE_AHEAD", "0")
    marks = benchmark("cold_start").run_example(os.environ.get("NUMBA_CACHE_DIR", ""))
    steps = ["import", "fit", "first_vector", "first_arrival", "example"]
    assert list(marks) == [*(name for step in steps for name in (step, f"{step}_processor")), "processor"]
    for kind in ("", "_processor"):
        seconds = [marks[step + kind] for step in steps]
        assert seconds == sorted(seconds)


def test_cold_start_record_names_every_case(benchmark, monkeypatch):
    runs = []

    def run_example(cache, **environment):
        runs.append((cache, environment))
        return {"fit": float(len(runs))}

    cold_start = benchmark("cold_start")
    monkeypatch.setattr(cold_start, "run_example", run_example)
    metrics = cold_start.measure(2)
    assert metrics.pop("load_average") >= 0
    assert metrics == {"cold_fit": 1.0, "alone_fit": 2.0, "warm_fit": 3.0}
    (together, _), (alone, without), *warm = runs
    assert together != alone
    assert without == {"RIPPLEVEC_COMPILE_AHEAD": "0"}
    assert warm == [(together, {})] * 2
