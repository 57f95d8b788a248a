"""A short soak: traffic, reads and kills as in `make soak`; nothing acknowledged is lost, nothing applied twice."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
SMALL = {"minutes": 0.25, "kills": 2, "vertices": 1000, "arrivals": 25, "dim": 16, "snapshot-every": 5000}


def run_part(folder: Path, **options: Any) -> dict[str, Any]:
    named = SMALL | {"json": folder / "record.json", "picture": folder / "soak.svg", "state": folder / "kept"} | options
    words = [word for name, value in named.items() for word in (f"--{name}", str(value))]
    done = subprocess.run([sys.executable, str(SOAK), *words], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "record.json").read_text())


def test_a_service_that_is_killed_under_traffic_ends_where_one_left_alone_does(tmp_path: Path) -> None:
    (part,) = run_part(tmp_path)["parts"]
    assert part["faults"] == []  # the digest, the place of every batch, every read of what was acknowledged
    assert (part["killed"], part["continued"], part["batches_before"]) == (2, False, 0)
    assert part["snapshots"] > 1
    assert part["anchors"] > 1
    assert min(part["reads"], part["searches"], part["looks_at_changes"]) > 0
    assert len(part["samples"]) > 5
    assert ElementTree.parse(tmp_path / "soak.svg").getroot().tag.endswith("svg")
    record = run_part(tmp_path, minutes=0.1, kills=0)
    assert record["parts"][0] == part
    assert (record["parts"][1]["continued"], record["parts"][1]["batches_before"]) == (True, part["batches"])
    assert record["overall"]["faults"] == []
    assert record["overall"]["batches"] == sum(each["batches"] for each in record["parts"])
    assert record["hours"] == pytest.approx(0.35 / 60, abs=0.001)


def test_percentiles_over_parts_are_those_of_all_latencies_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    parts = importlib.import_module("_soak_parts")
    latencies = np.random.default_rng(0).lognormal(2, 1, 10_000)
    found = [{"latency_bins": {"write": parts.bins(half)}} for half in np.split(latencies, 2)]
    percentiles = parts._percentiles(found, "write")
    for share in (50, 99, 99.9):
        exact = np.percentile(latencies, share)
        assert exact * 0.99 <= percentiles[f"p{share:g}"] <= exact * 1.06


def test_slope_of_memory_is_that_of_the_settled_samples_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    parts = importlib.import_module("_soak_parts")
    samples = [
        [
            {"seconds": second, "resident_mb": 500 + 2 * (before + second / 3600), "settled": True}
            for second in range(60)
        ]
        for before in (0.0, 0.5)
    ]
    samples[0].append({"seconds": 61, "resident_mb": 9000.0, "settled": False})
    assert parts.slope([{"minutes": 30, "samples": each} for each in samples]) == pytest.approx(2)


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
