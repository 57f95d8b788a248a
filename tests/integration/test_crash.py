"""Real kills of a real process, the short form of `make crash`: nothing acknowledged is lost, nothing applied twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

CRASH = Path(__file__).resolve().parents[2] / "benchmarks" / "crash.py"


def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    sources = ["calls", "file"]
    if shutil.which("redis-server") and find_spec("redis"):
        sources.append("redis")
    options = {"kills": "20", "batches": "200", "sources": ",".join(sources), "json": str(tmp_path / "record")}
    command = [sys.executable, str(CRASH), *(word for name, value in options.items() for word in (f"--{name}", value))]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "record").read_text())
    assert record["faults"] == []
    assert record["kills"] == 20
    assert len(record["by_moment"]) > 3
    assert record["beginnings_from_a_snapshot"] > 0
