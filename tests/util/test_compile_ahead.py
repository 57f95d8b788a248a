from __future__ import annotations

import os
import subprocess
import sys
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ripplevec.embedder import Embedder
from ripplevec.rules import ripple
from ripplevec.util import compilation, compile_ahead

SLEEP = "import sys; sys.stdin.read()"  # ends when its standard input is closed
STORE_AND_SLEEP = "import os, sys; os.write(1, b'.'); sys.stdin.read()"


class Processes(list[Any]):
    """Records started processes, and starts others."""

    program = "pass"

    def __call__(self, command: list[str], **options: Any) -> Any:
        self.append((command, options))
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self.process


def wait_for_end() -> None:
    deadline = monotonic() + 60
    while compile_ahead.is_compiling_ahead():
        assert monotonic() < deadline
        sleep(0.01)


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
    compilation.wait_for_kernels()
    wait_for_end()


def test_compile_ahead_waits_for_the_kernels_of_batches_only(processes: Processes) -> None:
    processes.program = STORE_AND_SLEEP
    compile_ahead.start_compiling_ahead()
    compilation.wait_for_kernels()
    assert compile_ahead.is_compiling_ahead()
    processes.process.stdin.close()
    wait_for_end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_compile_ahead_in_a_forked_process_does_not_wait(processes: Processes) -> None:
    processes.program = SLEEP
    compile_ahead.start_compiling_ahead()
    child = os.fork()
    if not child:
        compilation.wait_for_kernels()
        os._exit(int(compile_ahead.is_compiling_ahead()))
    assert os.waitpid(child, 0)[1] == 0
    compile_ahead._end()


def test_arrival_while_its_kernel_is_compiled_gives_the_same_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]
    usual, waiting = (Embedder(dim=2, seed=1).fit(edges) for _ in range(2))
    monkeypatch.setattr(ripple, "is_compiling_ahead", lambda: True)
    early = waiting.add_vertex("e", ["a", "b"])
    monkeypatch.setattr(ripple, "is_compiling_ahead", lambda: False)
    assert np.array_equal(early, usual.add_vertex("e", ["a", "b"]))
    assert usual.digest() == waiting.digest()


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


def test_wait_for_all_kernels_returns_when_the_second_process_has_ended(processes: Processes) -> None:
    compile_ahead.wait_for_all_kernels()  # there is none
    processes.program = "import time; time.sleep(0.3)"
    compile_ahead.start_compiling_ahead()
    compile_ahead.wait_for_all_kernels()
    assert processes.process.poll() == 0
    assert not compile_ahead.is_compiling_ahead()


def test_compile_ahead_says_that_it_waits(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([False, True])
    stored = SimpleNamespace(wait=lambda seconds: next(answers))
    monkeypatch.setattr(compile_ahead, "_batch_kernels_stored", stored)
    compile_ahead.wait_for_batch_kernels()
    assert caplog.messages == ["still compiling: kernels of batches, in a second process"]


def test_compile_ahead_ends_its_process_at_exit(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEP], stdin=subprocess.PIPE)
    monkeypatch.setattr(compile_ahead, "_process", process)
    compile_ahead._end()
    assert process.returncode is not None
