"""A short soak: traffic, reads and kills as in `make soak`; nothing acknowledged is lost, nothing applied twice."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
SMALL = {"minutes": 0.25, "kills": 2, "vertices": 1000, "arrivals": 25, "dim": 16, "snapshot-every": 5000}


def test_a_service_that_is_killed_under_traffic_ends_where_one_left_alone_does(tmp_path: Path) -> None:
    options = SMALL | {"json": tmp_path / "record.json", "picture": tmp_path / "soak.svg"}
    command = [
        sys.executable,
        str(SOAK),
        *(word for name, value in options.items() for word in (f"--{name}", str(value))),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "RIPPLET_BENCH_DIR": str(tmp_path)}, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["faults"] == []  # the digest, the place of every batch, every read of what was acknowledged
    assert record["killed"] == 2
    assert record["snapshots"] > 1
    assert record["anchors"] > 1
    assert min(record["reads"], record["searches"], record["looks_at_changes"]) > 0
    assert len(record["samples"]) > 5
    assert ElementTree.parse(tmp_path / "soak.svg").getroot().tag.endswith("svg")


def test_flat_is_judged_where_it_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    record = importlib.import_module("_soak_record")
    settled = [10 <= second < 40 or second >= 50 for second in range(101)]
    samples = [
        record.Sample(second, 200.0 + second if calm else 0.0, 50.0, 20, second, calm)
        for second, calm in enumerate(settled)
    ]
    log = [(second - 0.5, 0.010 if settled[second] else 9.0) for second in range(1, 101)]
    course = record.Course(samples, {"write": log}, begun=10.0)
    flat = course.flatness()
    assert flat["resident_mb"]["last_over_first"] == pytest.approx(286 / 225, rel=0.02)
    assert flat["resident_mb"]["fitted_change"] == pytest.approx(90 / 259, rel=0.05)
    assert flat["handles"] == {"first_third": 20, "last_third": 20, "last_over_first": 1, "fitted_change": 0}
    assert flat["write_p99_ms"]["last_third"] == pytest.approx(10)
    assert course.after_kills()["write_p99_ms"] == pytest.approx(9000)
