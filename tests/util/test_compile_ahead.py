from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ripplevec.util import compilation, compile_ahead

SLEEP = "import sys; sys.stdin.read()"  # ends when its standard input is closed


class Processes(list[Any]):
    """Records started processes instead of starting them."""

    def __call__(self, command: list[str], **options: Any) -> Any:
        self.append((command, options))
        return subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    started = Processes()
    monkeypatch.delenv(compile_ahead.SWITCH, raising=False)
    monkeypatch.setattr(compile_ahead, "_process", None)
    monkeypatch.setattr(compile_ahead, "_started", False)
    monkeypatch.setattr(compile_ahead, "resolve_threads", lambda threads: 2)
    monkeypatch.setattr(compile_ahead, "_popen", started)
    monkeypatch.setattr(compile_ahead.atexit, "register", lambda function: None)
    return started


def test_compile_ahead_starts_one_process_and_waits_for_it(processes: Processes) -> None:
    for _ in range(2):
        compile_ahead.start_compiling_ahead()
    ((command, options),) = processes
    assert command == [sys.executable, "-m", "ripplevec.cli.arrival_kernels"]
    assert options["env"][compile_ahead.SWITCH] == "0"
    assert compile_ahead.is_compiling_ahead()
    compilation.wait_for_kernels()
    assert not compile_ahead.is_compiling_ahead()


def test_compile_ahead_starts_no_process_if_it_is_turned_off(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(compile_ahead.SWITCH, "0")
    compile_ahead.start_compiling_ahead()
    assert not processes


def test_compile_ahead_starts_no_process_on_one_core(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_ahead, "resolve_threads", lambda threads: 1)
    compile_ahead.start_compiling_ahead()
    assert not processes


def test_compile_ahead_without_processes_leaves_the_work_to_this_one(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise OSError("no processes left")

    monkeypatch.setattr(compile_ahead, "_popen", fail)
    compile_ahead.start_compiling_ahead()
    compilation.wait_for_kernels()
    assert not compile_ahead.is_compiling_ahead()


def test_compile_ahead_says_that_it_waits(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow:
        stdin = None
        waits = 0

        def wait(self, timeout: float) -> None:
            self.waits += 1
            if self.waits == 1:
                raise subprocess.TimeoutExpired("compile", timeout)

    monkeypatch.setattr(compile_ahead, "_process", Slow())
    compile_ahead.finish_compiling_ahead()
    assert caplog.messages == ["still compiling: kernels of arrivals, in a second process"]


def test_compile_ahead_ends_its_process_at_exit(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEP], stdin=subprocess.PIPE)
    monkeypatch.setattr(compile_ahead, "_process", process)
    compile_ahead._end()
    assert process.returncode is not None
