"""Short power-cut and I/O-error tests (see `make crash`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NO_COMPILER = 77


def run_script(script: str, tmp_path: Path, *options: str) -> dict[str, object]:
    """Run a script that needs a C compiler, and return its record; skip the test without a compiler."""
    record = tmp_path / "record.json"
    command = [sys.executable, str(BENCHMARKS / script), *options, "--json", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode == NO_COMPILER:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found: dict[str, object] = json.loads(record.read_text())
    return found


def test_power_cuts_lose_no_acknowledged_batch(tmp_path: Path) -> None:
    found = run_script("power_cuts.py", tmp_path, "--points", "300")
    assert found["faults"] == []
    assert found["points"] == 300
    assert len(found["by_policy"]) == 5  # type: ignore[arg-type]
    assert found["recovered_from_a_snapshot"] > 50  # type: ignore[operator]


def test_io_errors_end_session_with_own_error_or_change_nothing(tmp_path: Path) -> None:
    found = run_script("io_errors.py", tmp_path, "--calls", "80", "--batches", "24")
    assert found["faults"] == []
    assert found["calls"] == 80
