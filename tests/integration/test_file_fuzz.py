"""Damaged files of sessions and saved models: opened in part and told, or refused. More of them: `make fuzz`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[2] / "benchmarks" / "file_fuzz.py"
CASES = os.environ.get("RIPPLEVEC_FUZZ_CASES", "200")


def test_open_of_damaged_files_tells_or_refuses(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    command = [sys.executable, str(FUZZ), "--cases", CASES, "--json", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads(record.read_text())
    assert found["faults"] == []
    assert found["endings"]["refused"] > 10
    assert found["endings"]["all of it"] > 10
