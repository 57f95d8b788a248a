"""Runs of the tests in which a worker process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from crash_tolerant_scheduling import CrashTolerantScheduling

def pytest_xdist_make_scheduler(config, log):
    return CrashTolerantScheduling(config, log)
"""
QUICK = "def test_first(): pass\ndef test_second(): pass\n"
CRASHING = "import os\ndef test_before(): pass\ndef test_crash(): os._exit(1)\ndef test_after(): pass\n"


@pytest.mark.parametrize("position", [0, 6, 11])
def test_run_whose_worker_crashes_runs_all_other_tests_once(tmp_path: Path, position: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(12):
        (tmp_path / f"test_{number:02}.py").write_text(CRASHING if number == position else QUICK)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", "--timeout=0"]
    paths = ["--rootdir", str(tmp_path), "-c", "/dev/null", "-o", f"pythonpath={Path(__file__).parent}", str(tmp_path)]
    run = subprocess.run([*command, *paths], capture_output=True, text=True, timeout=300)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 24 passed" in run.stdout
    assert f"test_{position:02}.py::test_crash" in run.stdout
