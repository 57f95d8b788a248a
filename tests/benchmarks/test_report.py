"""Tests of the shared code of the benchmarks: options, record and timing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_run_benchmark_prints_metrics_and_writes_record(
    benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    monkeypatch.setattr("sys.argv", ["benchmark", "--leaves", "7", "--json", str(path)])
    benchmark("_report").run_benchmark("About.", lambda size: {"leaves": size, "seconds": 0.25}, "leaves", 1)
    record = json.loads(path.read_text())
    assert record.pop("environment")["machine"]["cores"] > 0
    assert record == {"leaves": 7, "seconds": 0.25}
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["leaves", "7.00"], ["seconds", "0.25"]]


def test_run_parts_keeps_the_environment_of_each_part(
    benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, report = tmp_path / "record.json", benchmark("_report")
    path.write_text('{"first": 1.0, "old": 2.0, "environment": {"commit": "0"}}')
    for name, commit in (("first", "1"), ("second", "2")):
        monkeypatch.setattr(report, "describe_environment", lambda commit=commit: {"commit": commit})
        monkeypatch.setattr("sys.argv", ["benchmark", "--graphs", name, "--json", str(path)])
        report.run_parts("About.", lambda part, seeds: {part: float(seeds)}, "graphs", ["first", "second"], 3)
    assert json.loads(path.read_text()) == {
        "first": 3.0,
        "old": 2.0,
        "environment": {"commit": "0"},
        "second": 3.0,
        "environments": {"first": {"commit": "1"}, "second": {"commit": "2"}},
    }


def test_best_seconds_returns_the_shortest_timing(
    benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = benchmark("_report")
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr(report.time, "perf_counter", lambda: next(clock))
    assert report.best_seconds(lambda: None) == 2.0
