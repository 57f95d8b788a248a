"""Tests of the record of the crash test: totals are continued, and kills are counted by commit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest


def test_crash_record_counts_kills_of_older_records_as_of_an_unknown_commit(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, path = benchmark("_crash_record"), tmp_path / "crash.json"
    monkeypatch.setattr(module, "describe_environment", lambda: {"commit": "abc"})
    record = module.Record(path, seed=5)
    record.add(module.StreamResult("calls", 5, Counter({"a random time": 3})))
    assert json.loads(path.read_text())["by_commit"] == {"abc": 3}
    older = json.loads(path.read_text())
    del older["by_commit"], older["environment"]
    path.write_text(json.dumps(older))
    record = module.Record(path, seed=0)
    record.add(module.StreamResult("file", 6, Counter({"after a commit": 2})))
    totals = json.loads(path.read_text())
    assert totals["by_commit"] == {"abc": 2, "unknown": 3}
    assert sum(totals["by_commit"].values()) == totals["kills"]
