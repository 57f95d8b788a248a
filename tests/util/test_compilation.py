from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ripplevec.util import compilation
from ripplevec.util.compilation import CompilationReporter, report_compilation, working_clock

ROOT = Path(__file__).resolve().parents[2]


def compile_event(module: str) -> Any:
    kernel = SimpleNamespace(__module__=module, __name__="kernel")
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=kernel)})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(compilation, "perf_counter", lambda: now[0])
    return now


def test_measured_compilation_takes_less_than_a_minute_as_the_message_says() -> None:
    record = json.loads((ROOT / "results/cold_start.json").read_text())
    assert 10 < max(record["cold_processor"], record["alone_processor"]) < 60


def test_reporter_logs_the_first_compilation_and_then_every_few_seconds(
    clock: list[float], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "start_compiling_ahead", lambda: None)
    reporter = CompilationReporter()
    for seconds in (0, 1, 11, 12):
        clock[0] = seconds
        reporter.on_start(compile_event("ripplevec.graph"))
        reporter.on_end(compile_event("ripplevec.graph"))
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "once on this machine: up to about a minute of processor time" in caplog.messages[0]
    assert "still compiling: kernels=2" in caplog.messages[1]


@pytest.mark.parametrize("module", ["umap.layouts", None])
def test_reporter_does_not_log_kernels_of_other_modules(caplog: pytest.LogCaptureFixture, module: Any) -> None:
    CompilationReporter().on_start(compile_event(module))
    assert not caplog.records


def test_reporter_counts_the_time_of_nested_compilations_once(clock: list[float]) -> None:
    reporter = CompilationReporter()
    reporter.on_start(compile_event("ripplevec"))
    clock[0] = 2
    reporter.on_start(compile_event("ripplevec"))
    clock[0] = 3
    assert reporter.seconds() == 3
    reporter.on_end(compile_event("ripplevec"))
    reporter.on_end(compile_event("ripplevec"))
    clock[0] = 9
    assert (reporter.seconds(), reporter.kernels) == (3, 2)


def test_working_clock_stands_still_during_compilation(clock: list[float]) -> None:
    began = working_clock()
    clock[0] = 1
    report_compilation().on_start(compile_event("other"))
    clock[0] = 5
    report_compilation().on_end(compile_event("other"))
    clock[0] = 6
    assert working_clock() - began == 2


def test_process_with_an_empty_cache_prints_a_notice(tmp_path: Any) -> None:
    code = """
from numba import njit
from ripplevec.util.compilation import report_compilation
report_compilation()
kernel = njit(lambda x: x + 1)
kernel.py_func.__module__ = "ripplevec.test"
kernel(1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("compiling kernels, once on this machine")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("module", "starts"), [("ripplevec.graph._id_kernels", True), ("ripplevec.lab.line", False)])
def test_reporter_starts_the_second_process_with_the_first_kernels_of_a_model(
    module: str, starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[bool] = []
    monkeypatch.setattr(compilation, "start_compiling_ahead", lambda: started.append(True))
    CompilationReporter().on_start(compile_event(module))
    assert bool(started) == starts


def test_reporter_counts_the_time_of_waiting_for_another_process(clock: list[float]) -> None:
    reporter = CompilationReporter()
    with reporter.waiting():
        clock[0] = 4
    clock[0] = 9
    assert (reporter.seconds(), reporter.kernels) == (4, 0)
