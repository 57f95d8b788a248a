"""Short file fuzz test (see `make fuzz`): damaged files are restored, reported or rejected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "file_fuzz.py"
CASES = os.environ.get("RIPPLEVEC_FUZZ_CASES", "120")


def test_file_fuzz_damaged_files_are_reported_or_rejected(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    command = [sys.executable, str(SCRIPT), "--cases", CASES, "--json", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads(record.read_text())
    assert found["faults"] == []
    assert found["endings"]["refused"] > 10
    assert found["endings"]["all of it"] > 10
