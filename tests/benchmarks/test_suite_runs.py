"""Tests of the repeated runs of the test suite: what is counted, and that a record is extended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

def test_that_passes(): pass

def test_that_fails(): assert False

def test_that_is_skipped(): pytest.skip("always")

@pytest.fixture
def broken(): raise OSError

def test_with_an_error(broken): pass
"""


def run_tests(tests: Path, record: Path) -> int:
    command = [sys.executable, str(ROOT / "benchmarks" / "suite_runs.py"), "--busy", "1", "--json", str(record)]
    # The options are those of an independent suite: one process, and none of this project's plugins or settings.
    alone = [str(tests), "-n0", f"--rootdir={tests.parent}", "-c", "/dev/null", "-p", "no:cacheprovider"]
    return subprocess.run([*command, *alone], check=False, timeout=300, capture_output=True).returncode


def test_every_run_is_added_to_the_record_with_its_failed_tests(tmp_path: Path) -> None:
    tests, record = tmp_path / "test_sample.py", tmp_path / "record.json"
    tests.write_text(TESTS)
    assert run_tests(tests, record) == 1
    (first,) = json.loads(record.read_text())["runs"]
    assert (first["passed"], first["skipped"], first["busy_processes"]) == (1, 1, 1)
    assert first["failed"] == ["test_sample.test_that_fails", "test_sample.test_with_an_error"]
    assert first["minutes"] > 0

    tests.write_text("def test_that_passes(): pass")
    assert run_tests(tests, record) == 0
    runs = json.loads(record.read_text())["runs"]
    assert runs[0] == first
    assert (runs[1]["passed"], runs[1]["failed"], runs[1]["exit_code"]) == (1, [], 0)
