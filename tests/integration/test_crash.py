"""Real kills of a real process, the short form of `make crash`: nothing acknowledged is lost, nothing applied twice."""

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


def kill_often(folder: Path, **options: Any) -> dict[str, Any]:
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, str(CRASH), *words, "--json", str(folder / "record")]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "record").read_text())


def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    sources = ["calls", "file"]
    if shutil.which("redis-server") and find_spec("redis"):
        sources.append("redis")
    record = kill_often(tmp_path, kills=20, sources=",".join(sources))
    assert record["faults"] == []
    assert record["kills"] == 20
    assert len(record["by_moment"]) > 3
    assert record["openings_from_a_snapshot"] > 0


def test_record_of_kills_that_is_there_is_continued_with_the_next_seed(tmp_path: Path) -> None:
    first = kill_often(tmp_path, kills=3, sources="calls", batches=60, seed=7)
    record = kill_often(tmp_path, kills=2, sources="calls", batches=60)
    assert (first["kills"], record["kills"]) == (3, 5)
    assert record["streams"] > first["streams"]
    assert record["next_seed"] == 7 + record["streams"]
    assert record["batches"] == 60 * record["streams"]
    assert sum(record["by_moment"].values()) == sum(record["by_source"].values()) == 5


def test_stream_whose_state_differs_from_the_reference_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # set by the import
    monkeypatch.syspath_prepend(CRASH.parent)
    crash, record = importlib.import_module("crash"), importlib.import_module("_crash_record")

    class Other:
        def digest(self, seed: int, batches: int, sequence: int) -> str:
            return "other"

    life = crash.Life.__new__(crash.Life)
    life.begun, life.done, life.acknowledged, life.faults = (3, "digest", 0), None, 3, []
    one = record.Stream("calls", 0, acknowledged=4)
    crash.Player(Other(), 60, {})._compare(one, life)
    assert one.faults == [
        "batch 4 was acknowledged, and only 3 are there",
        "digest after batch 3: expected other, got digest",
    ]
