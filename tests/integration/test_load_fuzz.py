"""Short load fuzz test (see `make fuzz`): changed models with valid checksums are rejected or work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "load_fuzz.py"
CASES = os.environ.get("RIPPLEVEC_FUZZ_CASES", "150")


def test_load_fuzz_changed_models_are_rejected_or_work(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    command = [sys.executable, str(SCRIPT), "--cases", CASES, "--json", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    last = record.with_suffix(".last")
    crashed = f"crashed at {last.read_text()}" if last.exists() else ""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{crashed}"
    found = json.loads(record.read_text())
    assert found["faults"] == []
    assert min(found["outcomes"].values()) > int(CASES) // 20  # both outcomes occur
