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


def test_best_seconds_returns_the_shortest_timing(
    benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = benchmark("_report")
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr(report.time, "perf_counter", lambda: next(clock))
    assert report.best_seconds(lambda: None) == 2.0
