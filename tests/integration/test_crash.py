"""Short crash test (see `make crash`): kills lose no acknowledged batch and apply none twice."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CRASH = Path(__file__).resolve().parents[2] / "benchmarks" / "crash.py"
MAX_RUNS = 4


def run_crash_test(folder: Path, **options: Any) -> dict[str, Any]:
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, str(CRASH), *words, "--json", str(folder / "record")]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads((folder / "record").read_text())


@pytest.mark.timeout(1800)
def test_crash_twenty_kills_cause_no_faults(tmp_path: Path) -> None:
    sources = ["calls", "file"]
    if shutil.which("redis-server") and find_spec("redis"):
        sources.append("redis")
    for runs in range(1, MAX_RUNS + 1):
        record = run_crash_test(tmp_path, kills=20, sources=",".join(sources))
        assert record["faults"] == []
        assert record["kills"] == 20 * runs
        assert len(record["by_moment"]) > 3
        if record["openings_from_a_snapshot"]:  # on a busy machine, kills may come before the first snapshot
            break
    assert record["openings_from_a_snapshot"] > 0


def test_crash_kills_of_a_session_on_shards_cause_no_faults(tmp_path: Path) -> None:
    record = run_crash_test(tmp_path, kills=4, sources="calls", batches=40, shards=2)
    assert (record["faults"], record["kills"]) == ([], 4)


def test_crash_existing_record_is_continued_with_next_seed(tmp_path: Path) -> None:
    first = run_crash_test(tmp_path, kills=3, sources="calls", batches=60, seed=7)
    record = run_crash_test(tmp_path, kills=2, sources="calls", batches=60)
    assert (first["kills"], record["kills"]) == (3, 5)
    assert record["streams"] > first["streams"]
    assert record["next_seed"] == 7 + record["streams"]
    assert record["batches"] == 60 * record["streams"]
    assert sum(record["by_moment"].values()) == sum(record["by_source"].values()) == 5


def test_crash_state_that_differs_from_reference_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the import sets it
    monkeypatch.syspath_prepend(CRASH.parent)
    crash, record = importlib.import_module("crash"), importlib.import_module("_crash_record")

    class OtherReference:
        def digest(self, seed: int, batches: int, sequence: int) -> str:
            return "other"

    worker = crash.Worker.__new__(crash.Worker)
    worker.recovered, worker.final, worker.acknowledged, worker.faults = (3, "digest", 0), None, 3, []
    result = record.StreamResult("calls", 0, acknowledged=4)
    crash.StreamRunner(OtherReference(), 60, {})._compare(result, worker)
    assert result.faults == [
        "batches: expected at least 4 acknowledged, got 3",
        "digest after batch 3: expected other, got digest",
    ]
