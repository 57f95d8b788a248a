"""Tampered saved models whose checksums fit: each is refused or works. More of them: `make fuzz`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[2] / "benchmarks" / "load_fuzz.py"
CASES = os.environ.get("RIPPLEVEC_FUZZ_CASES", "300")


def test_load_of_tampered_models_refuses_or_works(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    command = [sys.executable, str(FUZZ), "--cases", CASES, "--json", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    last = record.with_suffix(".last")
    crashed = f"crashed at {last.read_text()}" if last.exists() else ""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{crashed}"
    found = json.loads(record.read_text())
    assert found["faults"] == []
    assert min(found["outcomes"].values()) > int(CASES) // 20  # both happen
